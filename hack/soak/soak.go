// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/testing/crdfixture"
)

const (
	// equalWithin bounds the time until the informers equal the server after a fault, on a
	// busy machine.
	equalWithin = 3 * time.Minute
	// endWithin bounds the time until they have stopped and released everything.
	endWithin = time.Minute
	// mostGrowth bounds the growth of the live heap, whose number of objects is bounded.
	mostGrowth = 32 << 20
)

// Options of a soak.
type Options struct {
	// For is the duration of the faults. The start and the end are not included.
	For time.Duration
	// Seed of all choices.
	Seed uint64
	// Logger of the informers and of the faults. Zero: none.
	Logger logr.Logger
	// Output receives the progress of building missing binaries. nil: os.Stderr.
	Output io.Writer
}

// soak is one run: a control plane, writers, and informers between them.
type soak struct {
	Options
	env       *envtest.Environment
	network   envtest.Network // of the informers
	factory   *informer.SharedInformerFactory
	followers []follower
	outside   *client.Client // of the writers
	turns     chan struct{}  // a writer sends to it while it writes
	report    Report
}

// writers is the number of concurrent writers.
const writers = 4

// Soak starts a control plane, injects faults for opts.For, and ends everything. Its error
// says what the informers held or received wrongly, what leaked, or what could not be done.
// The report is always valid.
func Soak(ctx context.Context, opts Options) (Report, error) {
	s := &soak{Options: opts, turns: make(chan struct{}, writers), report: Report{Seed: opts.Seed, writes: new(atomic.Uint64)}}
	begun := time.Now()
	before := goroutines()
	err := s.run(ctx)
	if err == nil {
		err = nothingLeft(before)
	}
	s.report.Took, s.report.Err = time.Since(begun), err
	return s.report, err
}

func (s *soak) run(ctx context.Context) (err error) {
	parts := crdfixture.New(partKind, map[string]any{"value": crdfixture.String}, nil)
	s.env, err = envtest.Start(ctx, envtest.Options{CRDObjects: []runtime.Object{parts}, Output: s.Output})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.env.Stop()) }()
	cfg := s.env.Config()
	writing, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err
	}
	defer utilnet.CloseIdleConnectionsFor(writing.Transport)
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	if s.outside, err = client.New(cfg, scheme, client.Options{}); err != nil {
		return err
	}
	for _, name := range namespaces {
		ns := &corev1.Namespace{}
		ns.Name = name
		if err := s.outside.Create(ctx, ns); err != nil {
			return err
		}
	}
	watching := s.env.Config()
	watching.Dial = s.network.Dial
	if s.factory, err = informer.NewSharedInformerFactory(watching, scheme, informer.Options{Logger: s.Logger}); err != nil {
		return err
	}
	if s.followers, err = followAll(s.factory); err != nil {
		return err
	}
	return s.live(ctx)
}

// live runs the informers.
func (s *soak) live(ctx context.Context) error {
	running, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	var group sync.WaitGroup
	group.Go(func() { ended <- s.factory.Run(running) })
	err := s.trouble(running)
	s.report.count(s)
	end()
	select {
	case ranInto := <-ended:
		group.Wait()
		return errors.Join(err, ranInto)
	case <-time.After(endWithin):
		return errors.Join(err, fmt.Errorf("end the informers: they still run after %v", endWithin))
	}
}

// trouble runs writers, injects faults, and then compares.
func (s *soak) trouble(ctx context.Context) error {
	syncing, cancel := context.WithTimeout(ctx, equalWithin)
	defer cancel()
	if _, err := s.factory.WaitForSync(syncing); err != nil {
		return err
	}
	writing, quiet := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer quiet()
	for n := range uint64(writers) {
		group.Go(func() { s.write(writing, n+1) })
	}
	if err := s.strike(ctx, 0); err != nil { // a first one to warm up
		return err
	}
	s.report.HeapBefore = liveHeap()
	deadline := time.Now().Add(s.For)
	for n := uint64(1); time.Now().Before(deadline); n++ {
		if err := s.strike(ctx, n); err != nil {
			return err
		}
	}
	quiet()
	group.Wait()
	if err := s.compare(ctx); err != nil {
		return err
	}
	s.report.HeapAfter = liveHeap()
	if grown := s.report.HeapAfter - s.report.HeapBefore; grown > mostGrowth {
		return fmt.Errorf("the live heap has grown by %d MiB, from %d MiB, with a bounded number of objects", grown>>20, s.report.HeapBefore>>20)
	}
	return nil
}

// compare waits, within a bound, until every cache and what every handler received equals a
// fresh list. There are no writes meanwhile.
func (s *soak) compare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, equalWithin)
	defer cancel()
	for _, f := range s.followers {
		want, err := f.fresh(ctx, s.outside)
		if err != nil {
			return fmt.Errorf("compare %s: %w", f, err)
		}
		for {
			err := f.equals(want)
			if err == nil {
				break
			}
			if !pause(ctx, 20*time.Millisecond) {
				return fmt.Errorf("compare %s with a fresh list: %w", f, err)
			}
		}
	}
	return nil
}

// pause waits for d and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
