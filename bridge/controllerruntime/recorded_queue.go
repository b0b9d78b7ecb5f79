// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	clientqueue "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/source"
)

// recording returns q, whose runs are recorded if there is a console.
func recording[K comparable](name string, q *queue[K]) clientqueue.TypedRateLimitingInterface[K] {
	if m := mirrorOf(name, q); m != nil {
		return &recordedQueue[K]{q, m}
	}
	return q
}

// recordedQueue is a queue whose workers a mirror follows.
type recordedQueue[K comparable] struct {
	*queue[K]
	mirror *mirror[K]
}

var _ priorityqueue.PriorityQueue[string] = (*recordedQueue[string])(nil)

// Get implements priorityqueue.PriorityQueue.
func (q *recordedQueue[K]) Get() (key K, shutdown bool) {
	key, _, shutdown = q.GetWithPriority()
	return key, shutdown
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *recordedQueue[K]) GetWithPriority() (key K, priority int, shutdown bool) {
	if key, priority, shutdown = q.queue.GetWithPriority(); !shutdown {
		q.mirror.begin(key)
	}
	return key, priority, shutdown
}

// Done implements priorityqueue.PriorityQueue.
func (q *recordedQueue[K]) Done(key K) {
	q.mirror.end(key)
	q.queue.Done(key)
}

// Forget implements priorityqueue.PriorityQueue.
func (q *recordedQueue[K]) Forget(key K) {
	if w := q.mirror.mine(key); w != nil {
		w.forgot = true
	}
	q.queue.Forget(key)
}

// Add implements priorityqueue.PriorityQueue.
func (q *recordedQueue[K]) Add(key K) {
	q.mirror.news(key)
	q.queue.Add(key)
}

// AddAfter implements priorityqueue.PriorityQueue.
func (q *recordedQueue[K]) AddAfter(key K, d time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: d}, key)
}

// AddRateLimited implements priorityqueue.PriorityQueue.
func (q *recordedQueue[K]) AddRateLimited(key K) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, key)
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *recordedQueue[K]) AddWithOpts(o priorityqueue.AddOpts, keys ...K) {
	for _, key := range keys {
		if w := q.mirror.mine(key); w != nil { // the result of the reconcile
			w.limited, w.after = o.RateLimited, o.After
		} else {
			q.mirror.news(key)
		}
	}
	q.queue.AddWithOpts(o, keys...)
}

// explaining is an event handler whose additions to queues have causes.
type explaining struct {
	toolscache.ResourceEventHandler
	of *entry
}

// OnAdd implements cache.ResourceEventHandler.
func (h explaining) OnAdd(obj any, initial bool) {
	during(h.cause(kube.Added, nil, obj, initial), func() { h.ResourceEventHandler.OnAdd(obj, initial) })
}

// OnUpdate implements cache.ResourceEventHandler.
func (h explaining) OnUpdate(old, obj any) {
	during(h.cause(kube.Updated, old, obj, false), func() { h.ResourceEventHandler.OnUpdate(old, obj) })
}

// OnDelete implements cache.ResourceEventHandler.
func (h explaining) OnDelete(obj any) {
	during(h.cause(kube.Deleted, obj, nil, false), func() { h.ResourceEventHandler.OnDelete(obj) })
}

// cause returns a function that returns why an event adds keys.
func (h explaining) cause(did kube.EventType, old, obj any, initial bool) func() source.Cause {
	return func() source.Cause {
		if unknown, ok := old.(toolscache.DeletedFinalStateUnknown); ok {
			old = unknown.Obj
		}
		e := kube.Event[kube.Object]{Type: did, Initial: initial}
		for _, one := range []struct {
			from any
			to   *kube.Object
		}{{old, &e.Old}, {obj, &e.New}} {
			if o, ok := one.from.(kube.Object); ok {
				*one.to, e.Key = o, kube.KeyOf(o)
			}
		}
		e.Resync = e.Old != nil && e.New != nil && e.Old.GetResourceVersion() == e.New.GetResourceVersion()
		return source.CauseWithChanges("kind "+h.of.kind.Kind, h.of.kind.GroupKind(), e)
	}
}
