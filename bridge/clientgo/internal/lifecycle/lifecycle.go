// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle has the common parts of client-go's informer factories: one
// informer per key, Start for those that wait, Shutdown when they have ended.
//
//	Informer(key, make) ──▶ waits ──Start──▶ runs until the context ends ──▶ Shutdown returns
//
// # Concurrency
//
// All methods are safe for concurrent use. Informer can block on make, called
// by another goroutine, and Shutdown on what Start started.
//
// # Testing
//
// It is tested with the factories that embed it.
package lifecycle

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
)

// Options of a factory.
type Options struct {
	// RunOnStart makes the first Start run the flyball factory.
	RunOnStart bool
	// Name is released by Shutdown. Nil: none.
	Name *cache.InformerName
	// Logger for the errors of that run, and of the informers if the context of
	// Start has none.
	Logger logr.Logger
}

// Starter is implemented by flyball's informers besides client-go's interface.
type Starter interface{ Start() error }

// Factory has the informers of a client-go factory by key. Make it with New.
type Factory[K comparable] struct {
	flyball *informer.SharedInformerFactory
	opts    Options
	running sync.WaitGroup // started by Start
	mu      struct {
		sync.Mutex
		informers map[K]*entry
		runs      bool // a Start runs the flyball factory
		ending    bool
	}
}

// entry is the informer of a key. The factory's lock guards all but once.
type entry struct {
	once     sync.Once
	informer cache.SharedIndexInformer // nil: being made
	started  bool
}

// New returns a factory over f. It starts nothing.
func New[K comparable](f *informer.SharedInformerFactory, opts Options) *Factory[K] {
	out := &Factory[K]{flyball: f, opts: opts}
	out.mu.informers = make(map[K]*entry)
	return out
}

// Informer returns the informer of key, made by the first call. Nil: there is
// none, and make is nil.
func (f *Factory[K]) Informer(key K, make func() cache.SharedIndexInformer) cache.SharedIndexInformer {
	e := f.entry(key, make != nil)
	if e == nil {
		return nil
	}
	if make != nil {
		e.once.Do(func() { f.made(e, make()) })
	}
	return f.informer(e)
}

// entry returns the entry of key; nil: there is none, and add is false.
func (f *Factory[K]) entry(key K, add bool) *entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.mu.informers[key]
	if e == nil && add {
		e = &entry{}
		f.mu.informers[key] = e
	}
	return e
}

func (f *Factory[K]) made(e *entry, i cache.SharedIndexInformer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.informer = i
}

func (f *Factory[K]) informer(e *entry) cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return e.informer
}

// Start is StartWithContext for a channel.
func (f *Factory[K]) Start(stop <-chan struct{}) { f.StartWithContext(wait.ContextForChannel(stop)) }

// StartWithContext starts the informers that were requested but not started.
// They end with ctx. It does not block. As in client-go, informers requested
// later wait for the next Start.
func (f *Factory[K]) StartWithContext(ctx context.Context) {
	if _, err := logr.FromContext(ctx); err != nil {
		ctx = logr.NewContext(ctx, f.opts.Logger)
	}
	waiting, run, ok := f.begin()
	if !ok {
		return
	}
	defer f.running.Done()
	for _, i := range waiting {
		if own, ok := i.(Starter); ok {
			_ = own.Start() // RunWithContext logs the error
		}
		f.running.Go(func() { i.RunWithContext(ctx) })
	}
	if run {
		f.running.Go(func() { f.run(ctx) })
	}
}

// begin returns the informers to start, and whether to run the flyball factory.
// It returns false after Shutdown. Otherwise Shutdown waits for running.
func (f *Factory[K]) begin() (waiting []cache.SharedIndexInformer, run, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.ending {
		return nil, false, false
	}
	f.running.Add(1)
	for _, e := range f.mu.informers {
		if e.informer != nil && !e.started {
			e.started = true
			waiting = append(waiting, e.informer)
		}
	}
	run = f.opts.RunOnStart && !f.mu.runs
	f.mu.runs = f.mu.runs || run
	return waiting, run, true
}

func (f *Factory[K]) run(ctx context.Context) {
	if err := f.flyball.Run(ctx); err != nil {
		f.opts.Logger.Error(err, "The flyball factory stopped; with RunOnStart do not run it elsewhere")
	}
}

// Shutdown waits for what Start started; the contexts must end for that.
// Nothing can be started any more. It releases the Name of the Options.
func (f *Factory[K]) Shutdown() {
	f.mu.Lock()
	f.mu.ending = true
	f.mu.Unlock()
	f.running.Wait()
	f.opts.Name.Release()
}

// Started returns the started informers.
func (f *Factory[K]) Started() map[K]cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[K]cache.SharedIndexInformer, len(f.mu.informers))
	for key, e := range f.mu.informers {
		if e.started {
			out[key] = e.informer
		}
	}
	return out
}
