// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"runtime/debug"
	"sync"

	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/stacks"
)

type worker[K comparable] struct {
	mu struct {
		sync.Mutex
		goroutine stacks.ID
		run       *run[K] // nil: none
	}
}

func (w *worker[K]) hold(r *run[K]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.run = r
}

func (w *worker[K]) held() *run[K] {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.run
}

// work waits for the sources, then starts the workers and, when ctx ends, waits for
// their reconciles.
func (c *Controller[K]) work(ctx context.Context) {
	defer c.queue.ShutDown()
	select {
	case <-c.synced:
	case <-ctx.Done():
		return
	}
	drained, cutOff := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cutOff(nil)

	idle := make(chan struct{})
	var watch, workers sync.WaitGroup
	watch.Go(func() { c.watchdog.watch(ctx, c.own, c.cutOff, cutOff, idle) })
	for i := range c.watchdog.workers {
		workers.Go(func() { c.serve(ctx, drained, &c.watchdog.workers[i], &workers) })
	}
	<-ctx.Done()
	c.queue.ShutDown()
	workers.Wait()
	close(idle)
	watch.Wait()
}

// serve is the loop of a worker. If a reconcile ends the goroutine with runtime.Goexit,
// as a test's FailNow does, a new one replaces it.
func (c *Controller[K]) serve(ctx, drained context.Context, w *worker[K], workers *sync.WaitGroup) {
	ended := false
	defer func() {
		if !ended {
			workers.Go(func() { c.serve(ctx, drained, w, workers) })
		}
	}()
	w.mu.Lock()
	w.mu.goroutine = stacks.Self()
	w.mu.Unlock()
	keys := c.queue.Keys()
	if sim, is := c.sim.(simhook.Replay); is {
		keys = c.known.next(ctx, sim, c.name)
	}
	for key := range keys {
		in, leave, unplaced := c.sharded.enter(drained, key)
		if leave == nil {
			continue
		}
		if c.some.Load() && c.keep(key) {
			leave()
			continue
		}
		if c.sim != nil {
			simulated[K]{c}.reportTaken(key)
			c.sim.Step(ctx, "pick up", c.name+" "+keyText(key))
		}
		if ctx.Err() != nil {
			leave()
			break // waiting keys come again after the next start
		}
		c.handle(in, key, w, leave, unplaced)
	}
	ended = true
}

// handle reconciles a key that the worker w has taken, and then calls leave. With a panic that came
// before the reconcile fails by it.
func (c *Controller[K]) handle(ctx context.Context, key K, w *worker[K], leave func(), before *PanicError) {
	defer leave()
	c.waits.end(key)
	r := c.newRun(ctx, key)
	if c.wrote != nil {
		c.wrote.Begin(key)
	}
	for _, p := range c.probes {
		p.begin(r)
	}
	w.hold(r)
	c.watchdog.expect()
	res, err, returned := Result{}, error(nil), false
	defer func() {
		if !returned {
			err = &PanicError{Stack: string(debug.Stack())}
		}
		w.hold(nil)
		c.finish(r, res, err)
		if p, ok := err.(*PanicError); ok && returned && c.crashOnPanic {
			panic(p.Value)
		}
	}()
	if before != nil {
		err = before
	} else {
		res, err = c.call(r)
	}
	returned = true
}

// call calls the user's function. A panic is its error.
func (c *Controller[K]) call(r *run[K]) (res Result, err error) {
	if p := guarded(func() {
		if c.sim != nil {
			c.sim.Reconcile(r, c.name, keyText(r.key))
		}
		res, err = c.reconcile(r, r.key)
	}); p != nil {
		err = p
	}
	return res, err
}
