// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate"
)

// Program is what is replayed.
type Program struct {
	Manager     manager.Options // but for the connection, the ports and the logger
	Definitions []*unstructured.Unstructured
	Setup       func(*manager.Manager) error
	Logger      logr.Logger
}

// Run replays a recording in the bubble that it is called in. The error is a *Difference, or why the
// program does not run.
func Run(ctx context.Context, b *recording.Bundle, prog Program) (Result, error) {
	server, network := simulate.New(simulate.Options{Seed: 1, Namespaces: namespaces(b.Entries)}), simulate.NewNetwork()
	for _, definition := range prog.Definitions {
		if _, err := server.Put(definition); err != nil {
			return Result{}, err
		}
	}
	if err := serveKinds(server, b.Entries); err != nil {
		return Result{}, err
	}
	transport := network.Transport()
	p := newPlayer(b, prog.Manager.Scheme, transport)
	opts := prog.Manager
	opts.Config = &rest.Config{Host: "http://recorded", Transport: p, UserAgent: "replay"}
	opts.MetricsAddress, opts.HealthAddress, opts.Record = "0", "0", manager.Record{}
	opts.Logger = prog.Logger
	mgr, err := manager.New(opts)
	if err != nil {
		return Result{}, err
	}
	if err := prog.Setup(mgr); err != nil {
		return Result{}, fmt.Errorf("setup: %w", err)
	}
	if err := p.informers.start(b.Entries); err != nil {
		return Result{}, err
	}
	var all sync.WaitGroup
	serving, stopServing := context.WithCancel(ctx)
	defer all.Wait()
	defer stopServing()
	all.Go(func() { _ = server.Run(serving, network.Listener()) }) // ends with serving
	running, stop := context.WithCancel(simhook.With(ctx, p))
	ended, exit := make(chan struct{}), error(nil)
	all.Go(func() {
		defer close(ended)
		exit = mgr.Run(running)
	})
	r, err := p.started(running, ended, mgr)
	if err == nil {
		r, err = p.play(running, ended)
	}
	stop()
	<-ended
	transport.CloseIdleConnections()
	if exit != nil {
		err = errors.Join(err, exit)
	}
	return r, err
}

// started waits for the workers of the controllers of the recording.
func (p *player) started(ctx context.Context, ended <-chan struct{}, mgr *manager.Manager) (Result, error) {
	for waited := time.Duration(0); ; waited += time.Second {
		missing := ""
		p.mu.Lock()
		for _, c := range p.controllers() {
			if p.mu.next[c] == nil {
				missing = c
			}
		}
		p.mu.Unlock()
		if missing == "" {
			return Result{}, nil
		}
		if waited >= starting {
			return Result{}, p.notStarted(missing, mgr)
		}
		if err := p.rest(ctx, ended, time.Now().Add(time.Second)); err != nil {
			return Result{}, err
		}
	}
}

// notStarted says why a controller does not work.
func (p *player) notStarted(missing string, mgr *manager.Manager) error {
	var have []string
	for _, c := range mgr.Snapshot().Controllers {
		have = append(have, c.Name)
		if c.Name != missing {
			continue
		}
		for _, i := range mgr.Snapshot().Informers {
			if !i.Synced {
				return fmt.Errorf("controller %q does not start: its informer of %s is not synced; the recording may be of a program that did not have it", missing, i.Kind)
			}
		}
		return fmt.Errorf("controller %q does not start", missing)
	}
	return fmt.Errorf("the recording is of the program %q and has reconciles of controller %q, which the set-up does not make; it makes %q", p.bundle.Program, missing, have)
}
