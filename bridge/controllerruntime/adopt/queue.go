// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	theirs "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/internal/taskgroup"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// out is where a source adds keys during its run.
type out struct {
	add   func(reconcile.Key, source.Cause)
	calls taskgroup.Calls // open while the source runs
	mu    struct {
		sync.Mutex
		later map[reconcile.Key]*delayed
	}
}

// delayed is the earliest addition of a key that is to come.
type delayed struct {
	at    time.Time
	timer *time.Timer
}

func newOut(add func(reconcile.Key, source.Cause)) *out {
	o := &out{add: add}
	o.mu.later = make(map[reconcile.Key]*delayed)
	return o
}

// close waits for who adds, and drops what is to be added later.
func (o *out) close() {
	o.calls.Close()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.mu.later {
		l.timer.Stop()
	}
}

func (o *out) now(key reconcile.Key, cause source.Cause) {
	if o.calls.Begin() {
		defer o.calls.End()
		o.add(key, cause)
	}
}

// after adds key once, at the earliest of the times that are asked for until then.
func (o *out) after(d time.Duration, key reconcile.Key, cause source.Cause) {
	if !o.calls.Begin() {
		return
	}
	defer o.calls.End()
	o.mu.Lock()
	defer o.mu.Unlock()
	l := &delayed{at: time.Now().Add(d)}
	if known := o.mu.later[key]; known != nil {
		if !l.at.Before(known.at) {
			return
		}
		known.timer.Stop()
	}
	o.mu.later[key] = l
	l.timer = time.AfterFunc(d, func() {
		o.mu.Lock()
		if o.mu.later[key] == l {
			delete(o.mu.later, key)
		}
		o.mu.Unlock()
		o.now(key, cause)
	})
}

// queue is what handlers and sources of controller-runtime are given in place of a queue: they can only add to it.
type queue struct {
	out   *out
	cause source.Cause // without an object: that is the key's
}

var _ workqueue.TypedRateLimitingInterface[theirs.Request] = queue{}

// causeOf returns the cause of a key.
func (q queue) causeOf(r theirs.Request) source.Cause {
	c := q.cause
	if c.Object == (reconcile.Key{}) {
		c.Object = r.NamespacedName
	}
	return c
}

// Add implements workqueue.TypedInterface.
func (q queue) Add(r theirs.Request) { q.out.now(r.NamespacedName, q.causeOf(r)) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q queue) AddAfter(r theirs.Request, d time.Duration) {
	if d <= 0 {
		q.Add(r)
		return
	}
	q.out.after(d, r.NamespacedName, q.causeOf(r))
}

// AddRateLimited is Add: a backoff is the controller's, for what has failed.
func (q queue) AddRateLimited(r theirs.Request) { q.Add(r) }

// Forget does nothing.
func (queue) Forget(theirs.Request) {}

// NumRequeues returns 0.
func (queue) NumRequeues(theirs.Request) int { return 0 }

// Len returns 0: what is added is the controller's.
func (queue) Len() int { return 0 }

// Get returns nothing.
func (queue) Get() (r theirs.Request, shutdown bool) { return r, true }

// Done does nothing.
func (queue) Done(theirs.Request) {}

// ShutDown does nothing.
func (queue) ShutDown() {}

// ShutDownWithDrain does nothing.
func (queue) ShutDownWithDrain() {}

// ShuttingDown reports whether the run of the source has ended.
func (q queue) ShuttingDown() bool {
	runs := q.out.calls.Begin()
	if runs {
		q.out.calls.End()
	}
	return !runs
}
