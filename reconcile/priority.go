// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// LowPriority is the priority of keys that a source names for its first list or for a
// resync, unless Options.PrioritizeBy says otherwise. All other keys have 0. It is
// controller-runtime's.
const LowPriority = -100

// PriorityQueue is a Queue that knows priorities. *workqueue.Queue is one.
// Of another one, such as client-go's, the order is its own.
type PriorityQueue[K comparable] interface {
	Queue[K]
	// AddWith is Add, AddAfter and AddRateLimited with a priority. AddAfter and
	// AddRateLimited of a held key keep the one that it was handed out with.
	AddWith(key K, opts workqueue.AddOptions)
}

var _ PriorityQueue[string] = (*workqueue.Queue[string])(nil)

// ByNamespace is for Options.FairBy: a namespace's keys are a flow.
func ByNamespace(key Key) string { return key.Namespace }

// DefaultPriority is LowPriority for what was there at the start and for resyncs, and
// 0 for all else.
func DefaultPriority(cause source.Cause) int {
	if cause.Initial || cause.Resync {
		return LowPriority
	}
	return 0
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
	if s, ok := c.queue.(interface{ Snapshot() workqueue.Snapshot[K] }); ok {
		return s.Snapshot()
	}
	return workqueue.Snapshot[K]{}
}
