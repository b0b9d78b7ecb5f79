// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientqueue "k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	request "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/kube"
)

// ShardedOptions returns the options of a controller of mgr, which must be of Sharded, whose
// requests are of any type: by returns what the shard of a request is the hash of, such as the
// namespace of its object. Not ok: the request is dropped. If by panics, the reconcile does. Its
// queue is one of NewQueue unless o has one. Options of a controller.NewUnmanaged may be completed
// too. With a nil by one replica reconciles all requests.
func ShardedOptions[K comparable](
	mgr ctrl.Manager, o controller.TypedOptions[K], by func(req K) (value string, ok bool),
) (controller.TypedOptions[K], error) {
	r, is := mgr.(*replica)
	switch {
	case !is:
		return o, fmt.Errorf("complete the options of a controller: "+
			"the manager is a %T; make it with bridge.Sharded", mgr)
	case o.Reconciler == nil:
		return o, errors.New("complete the options of a controller: it has no Reconciler; set it before")
	}
	where := func(K) (int, bool) { return 0, true }
	if by != nil {
		where = func(req K) (int, bool) {
			value, ok := by(req)
			return shards.Of(value, r.Shards), ok
		}
	}
	if o.NewQueue == nil {
		o.NewQueue = NewQueue[K]
	}
	s := newSharded(r, where, o.Reconciler)
	o.Reconciler, o.NewQueue = s, s.queueOf(o.NewQueue)
	return o, nil
}

// sharing is a *sharded for any type of requests.
type sharing interface{ synced() <-chan struct{} }

// sharded is the reconciler of a controller, and decides what its queue hands out.
//
//	queue: Get ── admits ──▶ worker ──▶ Reconcile ── enter ──▶ the program's reconciler
//	                │                                  │
//	                └─ the shard is not held ──▶ kept ◀─┘ ── held ──▶ queue: Add
type sharded[K comparable] struct {
	next  request.TypedReconciler[K]
	mark  func(ctx context.Context, req K) context.Context // for next; nil: as it is
	keys  *shards.Keys[K]
	of    *replica
	ready chan struct{} // closed when a worker asks for a request
	once  sync.Once     // closes ready
}

func newSharded[K comparable](
	r *replica, where func(req K) (shard int, ok bool), next request.TypedReconciler[K],
) *sharded[K] {
	return &sharded[K]{
		next: next, keys: shards.NewKeys(r.agent.Guard(), where), of: r, ready: make(chan struct{}),
	}
}

// synced is closed when the sources of the controller have synced: its workers begin then.
func (s *sharded[K]) synced() <-chan struct{} { return s.ready }

// Reconcile implements reconcile.TypedReconciler.
func (s *sharded[K]) Reconcile(ctx context.Context, req K) (request.Result, error) {
	in, leave, _ := s.keys.Enter(ctx, req)
	if leave == nil {
		return request.Result{}, nil
	}
	defer leave()
	in, end := context.WithCancelCause(in)
	defer end(nil)
	defer s.of.whenWorkEnds(func() { end(errStopping) })()
	if s.mark != nil {
		in = s.mark(in, req)
	}
	return s.next.Reconcile(in, req)
}

// admits reports whether req may be reconciled now. A panic of the program's function that places
// req is left to Reconcile, whose panics controller-runtime expects.
func (s *sharded[K]) admits(req K) (admitted bool) {
	defer func() {
		if recover() != nil {
			admitted = true
		}
	}()
	_, leave, _ := s.keys.Enter(context.Background(), req)
	if leave == nil {
		return false
	}
	leave()
	return true
}

// queueMaker is the type of NewQueue in a controller's options.
type queueMaker[K comparable] = func(
	name string, limiter clientqueue.TypedRateLimiter[K],
) clientqueue.TypedRateLimitingInterface[K]

// queueOf returns newQueue for queues that hand out only what may be reconciled.
func (s *sharded[K]) queueOf(newQueue queueMaker[K]) queueMaker[K] {
	return func(
		name string, limiter clientqueue.TypedRateLimiter[K],
	) clientqueue.TypedRateLimitingInterface[K] {
		made := newQueue(name, limiter)
		q, is := made.(priorityqueue.PriorityQueue[K])
		if !is {
			q = plain[K]{made}
		}
		stop := s.keys.Follow(func(reqs []K) {
			for _, req := range reqs {
				q.Add(req)
			}
		})
		return &shardedQueue[K]{PriorityQueue: q, of: s, stop: stop}
	}
}

// shardedQueue is a queue that hands out the requests of held shards.
type shardedQueue[K comparable] struct {
	priorityqueue.PriorityQueue[K]
	of   *sharded[K]
	stop func()
}

// Get implements priorityqueue.PriorityQueue.
func (q *shardedQueue[K]) Get() (req K, shutdown bool) {
	req, _, shutdown = q.GetWithPriority()
	return req, shutdown
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *shardedQueue[K]) GetWithPriority() (req K, priority int, shutdown bool) {
	q.of.once.Do(func() { close(q.of.ready) })
	for {
		req, priority, shutdown = q.PriorityQueue.GetWithPriority()
		if shutdown || q.of.admits(req) {
			return req, priority, shutdown
		}
		q.Forget(req)
		q.Done(req)
	}
}

// ShutDown implements priorityqueue.PriorityQueue.
func (q *shardedQueue[K]) ShutDown() {
	q.stop()
	q.PriorityQueue.ShutDown()
}

// plain is a queue without priorities.
type plain[K comparable] struct {
	clientqueue.TypedRateLimitingInterface[K]
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q plain[K]) AddWithOpts(o priorityqueue.AddOpts, reqs ...K) {
	for _, req := range reqs {
		switch {
		case o.RateLimited:
			q.AddRateLimited(req)
		case o.After > 0:
			q.AddAfter(req, o.After)
		default:
			q.Add(req)
		}
	}
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q plain[K]) GetWithPriority() (req K, priority int, shutdown bool) {
	req, shutdown = q.Get()
	return req, 0, shutdown
}

// uidOf returns the UID of an object of a kind, in whatever form it is cached; not ok: there is
// none. If that depends on a write whose outcome is not known yet, again is called when it is. It
// does not block.
func (c *kinds) uidOf(kind schema.GroupKind, key client.ObjectKey, again func()) (uid string, ok bool) {
	var pending *kube.NotSettledError
	for _, e := range c.openedOf(kind) {
		obj, err := e.lister.Get(kube.Key(key))
		if obj != nil {
			return string(obj.GetUID()), true
		}
		if e, is := errors.AsType[*kube.NotSettledError](err); is {
			pending = e
		}
	}
	if pending != nil && pending.When != nil {
		pending.When(again)
	}
	return "", false
}

func (c *kinds) openedOf(kind schema.GroupKind) (found []*entry) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i, s := range c.mu.entries {
		if e := s.opened.Load(); e != nil && i.kind.GroupKind() == kind {
			found = append(found, e)
		}
	}
	return found
}
