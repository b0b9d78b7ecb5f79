// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"time"

	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// LowPriority is the priority of keys that a source adds for its first list or for a
// resync, unless Options.PrioritizeBy returns another. All other keys have 0. It is the
// value of controller-runtime.
const LowPriority = -100

// PriorityQueue is a Queue with priorities. *workqueue.Queue is one. Other queues, such
// as client-go's, have their own order.
type PriorityQueue[K comparable] interface {
	Queue[K]
	// AddWith is Add, AddAfter and AddRateLimited with a priority. AddAfter and
	// AddRateLimited of a held key keep the priority with which it was handed out.
	AddWith(key K, opts workqueue.AddOptions)
}

var _ PriorityQueue[string] = (*workqueue.Queue[string])(nil)

// ByNamespace is a function for Options.FairBy that makes the keys of a namespace one
// flow.
func ByNamespace(key Key) string { return key.Namespace }

// DefaultPriority returns LowPriority for the initial list and for resyncs, and 0
// otherwise.
func DefaultPriority(cause source.Cause) int {
	if cause.Initial || cause.Resync {
		return LowPriority
	}
	return 0
}

// add is called by sources with their keys.
func (c *Controller[K]) add(key K, cause source.Cause) {
	if c.sim != nil {
		c.reportAdded(key, cause)
	}
	if c.wrote != nil && !cause.Resync {
		c.wrote.News(key)
	}
	if cause.Renewed() && concerns(key, cause.Object) {
		c.queue.Forget(key)
		c.queue.Withdraw(key)
	}
	c.causes.add(key, cause, time.Now())
	p := c.priority(key, cause)
	if c.traces != nil {
		c.traces.recordEvent(key, cause, p)
	}
	if p != 0 && c.ordered != nil {
		c.ordered.AddWith(key, workqueue.AddOptions{Priority: p})
		return
	}
	c.queue.Add(key)
}

// concerns reports whether key names object. It is true for keys of other types than
// Key, which are opaque.
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

// caught is deferred around functions of the user whose panic must not end a source.
func (c *Controller[K]) caught(what string, key K) {
	if v := recover(); v != nil {
		c.own.Error(&PanicError{Value: v}, what, "key", keyText(key))
	}
}

// again makes key run again according to opts, with the given priority or that of its
// run.
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

// QueuedKeys is QueueSnapshot for code that does not know the type of the keys: they are those of the
// logs. Paused keys that were woken are among them, with the state "paused".
func (c *Controller[K]) QueuedKeys() []workqueue.KeyState[string] {
	keys := c.QueueSnapshot().Keys
	out := make([]workqueue.KeyState[string], len(keys))
	for i, k := range keys {
		out[i] = workqueue.KeyState[string]{
			Key: keyText(k.Key), State: k.State, Age: k.Age, Attempts: k.Attempts, Due: k.Due, Priority: k.Priority, Flow: k.Flow,
		}
	}
	return c.mark(out)
}

// QueueSnapshot returns each key in the queue with its state: what it waits for, its
// priority, its flow, and how often it has failed. It copies all keys under a lock;
// Snapshot has only the numbers. It is zero if the queue, such as client-go's, has no
// snapshot.
func (c *Controller[K]) QueueSnapshot() workqueue.Snapshot[K] {
	if s, ok := c.queue.(interface{ Snapshot() workqueue.Snapshot[K] }); ok {
		return s.Snapshot()
	}
	return workqueue.Snapshot[K]{}
}
