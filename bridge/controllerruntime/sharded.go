// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientqueue "k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	request "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/internal/ownership"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/kube"
)

// ShardedOptions returns the options of a controller of mgr, which must be of Sharded, whose
// requests are of any type: by returns what the shard of a request is the hash of, such as the
// namespace of its object. Not ok: the request is dropped. Its queue is one of NewQueue unless o
// has one. Options of a controller.NewUnmanaged may be completed too. With a nil by one replica
// reconciles all requests.
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
	where := func(K) (int, error) { return 0, nil }
	if by != nil {
		where = func(req K) (int, error) {
			value, ok := by(req)
			if !ok {
				return 0, errNoObject
			}
			return shards.Of(value, r.Shards), nil
		}
	}
	if o.NewQueue == nil {
		o.NewQueue = NewQueue[K]
	}
	s := newSharded(r.agent.Guard(), where, o.Reconciler)
	o.Reconciler, o.NewQueue = s, s.queueOf(o.NewQueue)
	return o, nil
}

// errNoObject means that a request is of no object that this replica has.
var errNoObject = errors.New("no object")

// place returns the shard of a request.
type place[K comparable] func(req K) (shard int, err error)

// sharing is a *sharded for any type of requests.
type sharing interface{ synced() <-chan struct{} }

// sharded is the reconciler of a controller, and decides what its queue hands out.
//
//	queue: Get ── admits ──▶ worker ──▶ Reconcile ── enter ──▶ the program's reconciler
//	                │                                  │
//	                └─ the shard is not held ──▶ later ◀┘ ── held ──▶ queue: Add
type sharded[K comparable] struct {
	next  request.TypedReconciler[K]
	place place[K]
	mark  func(ctx context.Context, req K) context.Context // for next; nil: as it is
	guard *ownership.Guard
	ready chan struct{} // closed when a worker asks for a request
	once  sync.Once     // closes ready
	mu    struct {
		sync.Mutex
		// later are requests that came while their shards were not held. It is not always the
		// informers that bring them when one is: kinds that are not divided stay as they are.
		later map[K]struct{}
		add   func(K) // nil: the queue does not run
	}
}

func newSharded[K comparable](
	guard *ownership.Guard, where place[K], next request.TypedReconciler[K],
) *sharded[K] {
	s := &sharded[K]{next: next, place: where, guard: guard, ready: make(chan struct{})}
	s.mu.later = map[K]struct{}{}
	return s
}

// synced is closed when the sources of the controller have synced: its workers begin then.
func (s *sharded[K]) synced() <-chan struct{} { return s.ready }

// Reconcile implements reconcile.TypedReconciler.
func (s *sharded[K]) Reconcile(ctx context.Context, req K) (request.Result, error) {
	in, leave := s.enter(ctx, req)
	if leave == nil {
		return request.Result{}, nil
	}
	defer leave()
	if s.mark != nil {
		in = s.mark(in, req)
	}
	return s.next.Reconcile(in, req)
}

// admits reports whether req may be reconciled now.
func (s *sharded[K]) admits(req K) bool {
	_, leave := s.enter(context.Background(), req)
	if leave == nil {
		return false
	}
	leave()
	return true
}

// enter begins the reconcile of req. A nil leave: this replica must not reconcile it now.
func (s *sharded[K]) enter(ctx context.Context, req K) (in context.Context, leave func()) {
	shard, err := s.place(req)
	if err != nil {
		s.await(req, err)
		return nil, nil
	}
	for {
		if in, leave, _ = s.guard.Enter(ctx, shard); leave != nil {
			return in, leave
		}
		s.keep(req)
		if !s.guard.Works(shard) || !s.forget(req) {
			return nil, nil // it is added when the shard is held, or has been
		}
	}
}

// await adds req again when the state of its object is known, if that is why it has no place.
func (s *sharded[K]) await(req K, err error) {
	if pending, is := errors.AsType[*kube.NotSettledError](err); is && pending.When != nil {
		pending.When(func() { s.push(req) })
	}
}

func (s *sharded[K]) keep(req K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.later[req] = struct{}{}
}

// forget ends keep. It reports whether req was kept.
func (s *sharded[K]) forget(req K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, kept := s.mu.later[req]
	delete(s.mu.later, req)
	return kept
}

// follow sets what adds requests to the queue. Nil: it does not run.
func (s *sharded[K]) follow(add func(K)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.add = add
}

// push adds req to the queue, if that runs.
func (s *sharded[K]) push(req K) {
	s.mu.Lock()
	add := s.mu.add
	s.mu.Unlock()
	if add != nil {
		add(req)
	}
}

// turn adds what was kept for shards that are held now, and forgets what has no object any more.
func (s *sharded[K]) turn() {
	s.mu.Lock()
	kept := slices.Collect(maps.Keys(s.mu.later))
	s.mu.Unlock()
	for _, req := range kept {
		shard, err := s.place(req)
		_, pending := errors.AsType[*kube.NotSettledError](err)
		if pending || err == nil && !s.guard.Works(shard) {
			continue
		}
		if s.forget(req) && err == nil {
			s.push(req)
		}
	}
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
		s.follow(q.Add)
		return &shardedQueue[K]{PriorityQueue: q, of: s, stop: s.guard.Changed(s.turn)}
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
	q.of.follow(nil)
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

// uidOf returns the UID of an object of a kind, in whatever form it is cached. It does not block.
func (c *kinds) uidOf(kind schema.GroupKind, key client.ObjectKey) (uid string, err error) {
	err = errNoObject
	for _, e := range c.openedOf(kind) {
		obj, failed := e.lister.Get(kube.Key(key))
		if obj != nil {
			return string(obj.GetUID()), nil
		}
		if _, pending := errors.AsType[*kube.NotSettledError](failed); pending {
			err = failed
		}
	}
	return "", err
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
