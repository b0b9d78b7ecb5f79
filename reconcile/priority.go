// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"

	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// LowPriority is the priority of keys that a source names for its first list or for a
// resync, unless PrioritizeBy says otherwise. All other keys have 0. It is
// controller-runtime's.
const LowPriority = -100

// PriorityQueue is a Queue that knows priorities and flows. *workqueue.Queue is one.
// Of another one, such as client-go's, the order is its own.
type PriorityQueue[K comparable] interface {
	Queue[K]
	// AddWith is Add, AddAfter and AddRateLimited with a priority. AddAfter and
	// AddRateLimited of a held key keep the one that it was handed out with.
	AddWith(key K, opts workqueue.AddOptions)
	// FairBy has the flows of keys take turns.
	FairBy(flow func(key K) string)
}

var _ PriorityQueue[string] = (*workqueue.Queue[string])(nil)

// PrioritizeBy has f say with which priority a key is added, of what is named by a
// source or after a conflict: higher ones are reconciled first, but none for ever (see
// promise W8 of package workqueue). Priorities are from -128 to 127. A retry has the
// priority of the run before it, or Result.Priority. f is called whenever a key is
// named, must not block, and may be called from any goroutine; if it panics the
// priority is 0. Without PrioritizeBy it is DefaultPriority. A nil f, a call after the
// controller has begun, and a queue that is no PriorityQueue are remembered: Err and
// Run return them.
func (c *Controller[K]) PrioritizeBy(f func(key K, cause source.Cause) int) {
	if f == nil {
		c.misused(errors.New("prioritize: the function is nil; give one of key and cause, or leave it out"))
		return
	}
	if !c.setOrder(f, nil) {
		c.misused(errors.New("prioritize: the controller has begun to run; call PrioritizeBy before"))
	}
}

// FairBy has the flows that keys belong to take turns, among keys of one priority: so
// that no namespace, tenant or cluster waits for a flood of another's keys. flow names
// the flow of a key, always the same for the same key, such as ByNamespace does; if it
// panics that is "". It must not block and may be called from any goroutine. A nil flow,
// a call after the controller has begun, and a queue that is no PriorityQueue are
// remembered: Err and Run return them.
func (c *Controller[K]) FairBy(flow func(key K) string) {
	if flow == nil {
		c.misused(errors.New("fair: the function is nil; give one that names the flow of a key, such as reconcile.ByNamespace"))
		return
	}
	if !c.setOrder(nil, flow) {
		c.misused(errors.New("fair: the controller has begun to run; call FairBy before"))
	}
}

// ByNamespace is for FairBy.
func ByNamespace(key Key) string { return key.Namespace }

// DefaultPriority is LowPriority for what was there at the start and for resyncs, and
// 0 for all else.
func DefaultPriority(cause source.Cause) int {
	if cause.Initial || cause.Resync {
		return LowPriority
	}
	return 0
}

// setOrder keeps what is not nil, unless something has begun, and reports whether it did.
func (c *Controller[K]) setOrder(prioritize func(K, source.Cause) int, flow func(K) string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.began != 0 {
		return false
	}
	if prioritize != nil {
		c.mu.prioritize = prioritize
	}
	if flow != nil {
		c.mu.flow = flow
	}
	return true
}

// orderMisuseLocked is what is asked of a queue that cannot do it.
func (c *Controller[K]) orderMisuseLocked() error {
	if _, ok := c.queue.(PriorityQueue[K]); ok || c.mu.prioritize == nil && c.mu.flow == nil {
		return nil
	}
	return errors.New("PrioritizeBy and FairBy need a queue that knows priorities and flows; leave them out, or UseQueue with one of package workqueue")
}

// prepareOrder hands the queue what FairBy was given.
func (c *Controller[K]) prepareOrder() {
	c.mu.Lock()
	flow := c.mu.flow
	c.prioritize = c.mu.prioritize
	c.mu.Unlock()
	c.ordered, _ = c.queue.(PriorityQueue[K])
	if flow == nil || c.ordered == nil {
		return
	}
	c.ordered.FairBy(func(key K) (name string) {
		defer c.caught("the function that names flows panicked; the key is of none", key)
		return flow(key)
	})
}

// add is what sources name their keys to.
func (c *Controller[K]) add(key K, cause source.Cause) {
	if c.sim != nil {
		c.noteAdded(key, cause)
	}
	if cause.Renewed() && concerns(key, cause.Object) {
		c.queue.Forget(key)
		c.queue.Withdraw(key)
	}
	p := c.priority(key, cause)
	if c.traces != nil {
		c.traces.heard(key, cause, p)
	}
	if p != 0 && c.ordered != nil {
		c.ordered.AddWith(key, workqueue.AddOptions{Priority: p})
		return
	}
	c.queue.Add(key)
}

// concerns reports whether key names object. Of keys that are no Key nobody can tell:
// then each object concerns them.
func concerns[K comparable](key K, object Key) bool {
	k, ok := any(key).(Key)
	return !ok || k == object
}

func (c *Controller[K]) priority(key K, cause source.Cause) (p int) {
	if c.prioritize == nil {
		return DefaultPriority(cause)
	}
	defer c.caught("the function that gives priorities panicked; the priority is 0", key)
	return c.prioritize(key, cause)
}

// caught is deferred around functions of the user that must not end a source.
func (c *Controller[K]) caught(what string, key K) {
	if v := recover(); v != nil {
		c.own.Error(&PanicError{Value: v}, what, "key", keyText(key))
	}
}

// again has key run again as opts says, with the priority that its run had, or with
// the one given.
func (c *Controller[K]) again(key K, opts workqueue.AddOptions, priority *int) {
	switch {
	case priority != nil && c.ordered != nil:
		opts.Priority = *priority
		c.ordered.AddWith(key, opts)
	case opts.RateLimited:
		c.queue.AddRateLimited(key)
	default:
		c.queue.AddAfter(key, opts.After)
	}
}

// QueueSnapshot is each key that the queue knows, and where it stands: what it waits
// for, with which priority, in which flow, how often it has failed. It copies all keys
// under a lock: Snapshot has the numbers alone. It is zero if the queue, such as client-go's,
// does not say.
func (c *Controller[K]) QueueSnapshot() workqueue.Snapshot[K] {
	c.mu.Lock()
	q := c.queue
	c.mu.Unlock()
	if s, ok := q.(interface{ Snapshot() workqueue.Snapshot[K] }); ok {
		return s.Snapshot()
	}
	return workqueue.Snapshot[K]{}
}
