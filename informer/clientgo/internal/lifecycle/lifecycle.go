// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle has what client-go's informer factories have in common: one
// informer per key, Start for those that wait, Shutdown once they have ended.
//
//	Informer(key, make) ──▶ waits ──Start──▶ runs until the context ends ──▶ Shutdown returns
//
// # Concurrency
//
// All methods are safe for concurrent use. Informer and Shutdown may block: the
// one for make, called by another goroutine, the other for what Start started.
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
	// RunOnStart has the first Start run the flyball factory.
	RunOnStart bool
	// Name that Shutdown releases. Nil: none.
	Name *cache.InformerName
	// Logger for the errors of that run, and of the informers where the context of
	// Start brings none.
	Logger logr.Logger
}

// Starter is what flyball's informers are beside client-go's interface.
type Starter interface{ Start() error }

// Factory has the informers of a factory of client-go's kind, by key. Make it
// with New.
type Factory[K comparable] struct {
	flyball *informer.SharedInformerFactory
	opts    Options
	running sync.WaitGroup // what Start started
	mu      struct {
		sync.Mutex
		informers map[K]*entry
		runs      bool // the flyball factory is run by a Start
		ending    bool
	}
}

// entry is the informer of a key. The factory's lock guards all but once.
type entry struct {
	once     sync.Once
	informer cache.SharedIndexInformer // nil: it is being made
	started  bool
}

// New returns a factory over f. It starts nothing.
func New[K comparable](f *informer.SharedInformerFactory, opts Options) *Factory[K] {
	out := &Factory[K]{flyball: f, opts: opts}
	out.mu.informers = make(map[K]*entry)
	return out
}

// Informer is the informer of key, which the first call for it makes. Nil: there
// is none, and make is nil.
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

// entry is the one of key; nil: there is none, and none is to be made.
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

// StartWithContext starts the informers that have been asked for and have not
// been started. They end with ctx. It does not block. As in client-go, an
// informer that is asked for later waits for the next Start.
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
			_ = own.Start() // RunWithContext says what is wrong
		}
		f.running.Go(func() { i.RunWithContext(ctx) })
	}
	if run {
		f.running.Go(func() { f.run(ctx) })
	}
}

// begin takes the informers that are to be started, and whether the flyball
// factory is to be run. Not ok: Shutdown has been called, which else waits until
// running is done.
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

// Shutdown waits for what Start started, whose contexts must end for that;
// nothing can be started any more. It releases the Name of the Options.
func (f *Factory[K]) Shutdown() {
	f.mu.Lock()
	f.mu.ending = true
	f.mu.Unlock()
	f.running.Wait()
	f.opts.Name.Release()
}

// Started are the informers that a Start has started.
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
