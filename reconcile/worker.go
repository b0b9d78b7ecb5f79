// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// run is one reconcile that is running.
type run struct {
	id    string
	since time.Time
}

// work waits for the sources, then starts the workers and, when ctx ends, waits for
// the reconciles that they hold.
func (c *Controller[K]) work(ctx context.Context) error {
	defer c.queue.ShutDown()
	if !c.awaitSources(ctx) {
		return nil
	}
	close(c.synced)
	drained, cutOff := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cutOff(nil)

	var workers sync.WaitGroup
	for range c.workers {
		workers.Go(func() { c.serve(ctx, drained, &workers) })
	}
	<-ctx.Done()
	c.queue.ShutDown()
	stop := afterFunc(max(c.drain, 0), func() {
		c.reportLate()
		cutOff(ErrStopped)
	})
	workers.Wait()
	stop()
	return nil
}

// serve is a worker. Should a reconcile end the worker's goroutine, by
// runtime.Goexit as a test's FailNow does, another takes its place.
func (c *Controller[K]) serve(ctx, drained context.Context, workers *sync.WaitGroup) {
	ended := false
	defer func() {
		if !ended {
			workers.Go(func() { c.serve(ctx, drained, workers) })
		}
	}()
	watch := newWatchdog(c.soft)
	for key := range c.queue.Keys() {
		if ctx.Err() != nil {
			break // what waits at the end comes again after the next start
		}
		c.handle(drained, key, watch)
	}
	ended = true
}

// handle reconciles key once and settles what follows.
func (c *Controller[K]) handle(ctx context.Context, key K, watch *watchdog) {
	this := run{id: reconcileID(), since: time.Now()}
	log := c.log.WithValues("key", keyText(key), "reconcileID", this.id)
	ctx, cancel := c.deadline(logr.NewContext(ctx, log))
	defer cancel()
	c.began(key, this)
	stop := watch.begin(func(stack string) {
		c.counters.overdue.Add(1)
		log.Info("reconcile has passed its soft deadline and still runs", "softDeadline", c.soft, "stack", stack)
	})
	res, err, returned := Result{}, error(nil), false
	defer func() {
		if !returned {
			err = &PanicError{Stack: string(debug.Stack())}
		}
		stop()
		c.ended(key, this)
		c.settle(ctx, key, res, err)
		if p, ok := err.(*PanicError); ok && returned && c.crashOnPanic {
			panic(p.Value)
		}
	}()
	if p := guarded(func() { res, err = c.reconcile(ctx, key) }); p != nil {
		err = p
	}
	returned = true
}

// deadline is ctx with the hard deadline.
func (c *Controller[K]) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.hard < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, c.hard, &DeadlineError{Limit: c.hard})
}

// began notes the run of key, which ends the wait for the cache after the run before.
func (c *Controller[K]) began(key K, r run) {
	c.mu.Lock()
	c.mu.running[key] = r
	stop := c.mu.waits[key]
	delete(c.mu.waits, key)
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func (c *Controller[K]) ended(key K, r run) {
	c.counters.observe(time.Since(r.since))
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.running, key)
}

// reportLate names the reconciles that the time for draining was too short for.
func (c *Controller[K]) reportLate() {
	for _, r := range c.running() {
		c.log.Info("reconcile still runs at the end of the time for draining, cancelling it",
			"key", r.Key, "reconcileID", r.ID, "running", time.Since(r.Since).Round(time.Millisecond), "drainTimeout", max(c.drain, 0))
	}
}

// reconcileID is 16 random hexadecimal digits, the first not below 8.
func reconcileID() string { return strconv.FormatUint(rand.Uint64()|1<<63, 16) }

// guarded calls f and returns its panic. Of runtime.Goexit it knows nothing.
func guarded(f func()) (p *PanicError) {
	defer func() {
		if v := recover(); v != nil {
			p = &PanicError{Value: v, Stack: string(debug.Stack())}
		}
	}()
	f()
	return nil
}
