// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	request "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/stacks"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// Recorded returns r, whose results, errors and requests the console of AddConsole shows. Without it
// the console sees what the worker does to the queue: a failure has no text there, and requests that a
// reconcile sends from other goroutines are missing. Without a console it only calls r.
func Recorded[K comparable](r request.TypedReconciler[K]) request.TypedReconciler[K] {
	return recorded[K]{r}
}

type recorded[K comparable] struct{ request.TypedReconciler[K] }

// Reconcile implements reconcile.TypedReconciler.
func (r recorded[K]) Reconcile(ctx context.Context, key K) (res request.Result, err error) {
	w := workOf()
	if w == nil {
		return r.TypedReconciler.Reconcile(ctx, key)
	}
	returned := false
	defer func() {
		if !returned { // controller-runtime recovers, and logs the panic
			err := errors.New("it panicked; the log has the stack")
			w.result = func() (reconcile.Result, error) { return reconcile.Result{}, err }
		}
	}()
	res, err = r.TypedReconciler.Reconcile(w.in(ctx), key)
	returned = true
	ours, failed := resultOf(res), err
	if errors.Is(err, request.TerminalError(nil)) {
		failed = reconcile.Terminal(err)
	}
	w.result = func() (reconcile.Result, error) { return ours, failed }
	return res, err
}

func resultOf(res request.Result) reconcile.Result {
	//lint:ignore SA1019 programs still use it
	return reconcile.Result{RequeueAfter: max(res.RequeueAfter, 0), Retry: res.Requeue}
}

// The errors of reconcilers without Recorded.
var (
	errRequeued = errors.New("it returned an error, which the log has, or Requeue; bridge.Recorded shows which")
	errTerminal = errors.New("it returned a terminal error, which the log has; bridge.Recorded shows it")
)

// work is a key that a worker of controller-runtime has. Its goroutine alone uses it, but for the
// channels.
type work struct {
	task         contextvalues.Task // set before began is closed
	began, ended chan struct{}      // closed by a worker of the mirror
	over         chan struct{}      // closed by Done
	result       func() (reconcile.Result, error)
	// What the worker has done to the queue.
	forgot, limited bool
	after           time.Duration
}

// in returns ctx as that of the reconcile.
func (w *work) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextvalues.TaskKey{}, w.task)
}

// returned returns what the reconciler has returned, as far as it is known.
func (w *work) returned() (reconcile.Result, error) {
	switch {
	case w.result != nil:
		return w.result()
	case w.limited:
		return reconcile.Result{}, errRequeued
	case w.forgot:
		return reconcile.Result{RequeueAfter: w.after}, nil
	}
	return reconcile.Result{}, reconcile.Terminal(errTerminal)
}

// mostMirrored is how many reconciles of a controller are recorded at a time.
const mostMirrored = 32

// mirror makes a controller of package reconcile do what the workers of controller-runtime do: each of
// its reconciles lasts as long as one of theirs and ends alike. It is that controller's queue, which
// hands out what they have taken, and decides nothing. So the controller records their runs.
//
//	their worker: Get ──begin──▶ Keys ──▶ reconcile ─ waits ─▶ finish ──▶ ended
//	              Done ──end────────────────────────────▲               │ the key is free
//	                   ◀────────────────────────────────────────────────┘
type mirror[K comparable] struct {
	name  string
	shown *display
	real  *queue[K]
	taken chan *mirrored[K]
	idle  atomic.Int64 // its workers
	added chan struct{}
	add   func(K, source.Cause) // set before added is closed
	down  chan struct{}
	once  sync.Once // closes down
	mu    struct {
		sync.Mutex
		held    map[K]*mirrored[K]
		most    int // of held
		sources []source.Snapshot
	}
}

type mirrored[K comparable] struct {
	work
	key  K
	self stacks.ID
}

// mirrorOf returns what records the runs of the keys of q; nil: there is no console.
func mirrorOf[K comparable](name string, q *queue[K]) *mirror[K] {
	s := theConsole.Load()
	if s == nil {
		return nil
	}
	m := &mirror[K]{name: name, shown: s, real: q, taken: make(chan *mirrored[K]), added: make(chan struct{}), down: make(chan struct{})}
	m.mu.held = make(map[K]*mirrored[K])
	c := reconcile.New(name, m.reconcile, reconcile.KeyedOptions[K]{
		Queue: m, Workers: mostMirrored, SoftDeadline: -1, HardDeadline: -1, DrainTimeout: -1, Logger: logr.Discard(),
	})
	c.Watch(m)
	one := mirroring[K]{c, m}
	err := s.add(one, func(ctx context.Context) error {
		defer s.remove(one)
		defer m.ShutDown()
		_ = c.Run(alone{ctx}) // what it does not record is missing on a page
		return nil
	})
	if err != nil {
		return nil // the manager has ended
	}
	if s.hasBegun() {
		select {
		case <-m.added:
		case <-m.down:
		}
	}
	return m
}

// alone is a context without values: a simulation sees only the real reconciles.
type alone struct{ context.Context }

func (alone) Value(any) any { return nil }

// begin records that a worker, which calls it, has taken key.
func (m *mirror[K]) begin(key K) {
	if key != key || m.idle.Add(-1) < 0 { // a NaN could not be found again
		m.idle.Add(1)
		return
	}
	h := &mirrored[K]{key: key, self: stacks.Self(), work: work{began: make(chan struct{}), ended: make(chan struct{}), over: make(chan struct{})}}
	m.hold(h)
	select {
	case m.taken <- h:
	case <-m.down:
		m.letGo(key)
		return
	}
	select {
	case <-h.began:
		m.shown.workers.Store(h.self, &h.work)
	case <-h.ended: // the mirror is ending
		m.letGo(key)
	}
}

// end records that the worker is done with key. The recorded run has then ended.
func (m *mirror[K]) end(key K) {
	h := m.letGo(key)
	if h == nil {
		return
	}
	m.shown.workers.Delete(h.self)
	close(h.over)
	<-h.ended
}

func (m *mirror[K]) hold(h *mirrored[K]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.held[h.key] = h
	m.mu.most = max(m.mu.most, len(m.mu.held))
}

func (m *mirror[K]) letGo(key K) *mirrored[K] {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.mu.held[key]
	delete(m.mu.held, key)
	return h
}

func (m *mirror[K]) of(key K) *mirrored[K] {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.held[key]
}

// mine returns the work of key if the calling goroutine has it.
func (m *mirror[K]) mine(key K) *work {
	if h := m.of(key); h != nil && h.self == stacks.Self() {
		return &h.work
	}
	return nil
}

// reconcile is the function of the mirror's controller.
func (m *mirror[K]) reconcile(ctx context.Context, key K) (reconcile.Result, error) {
	h := m.of(key)
	if h == nil {
		return reconcile.Result{}, nil
	}
	h.task = contextvalues.TaskOf(ctx)
	close(h.began)
	select {
	case <-h.over:
		return h.returned()
	case <-ctx.Done():
		return reconcile.Result{}, ctx.Err()
	}
}

// news records why key is added.
func (m *mirror[K]) news(key K) {
	select {
	case <-m.added:
	default:
		return
	}
	cause := m.shown.event()
	if cause == nil {
		cause = &source.Cause{Source: "another source"}
	}
	m.count(*cause)
	m.add(key, *cause)
}

// count counts an event of a source.
func (m *mirror[K]) count(c source.Cause) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.mu.sources, func(s source.Snapshot) bool { return s.Source == c.Source })
	if i < 0 {
		i = len(m.mu.sources)
		m.mu.sources = append(m.mu.sources, source.Snapshot{Source: c.Source, Kind: c.Kind, Synced: true})
	}
	m.mu.sources[i].Events++
	m.mu.sources[i].Keys++
}

// sources returns what has added keys, first the kind after which controller-runtime has named the
// controller.
func (m *mirror[K]) sources() []source.Snapshot {
	m.mu.Lock()
	all := slices.Clone(m.mu.sources)
	m.mu.Unlock()
	own := func(s source.Snapshot) int {
		if strings.EqualFold(s.Kind.Kind, m.name) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b source.Snapshot) int { return own(a) - own(b) })
	return all
}

// mirroring is the mirror's controller as the console shows it.
type mirroring[K comparable] struct {
	*reconcile.Controller[K]
	of *mirror[K]
}

// Snapshot is that of the controller, with what controller-runtime's has.
func (c mirroring[K]) Snapshot() reconcile.Snapshot {
	s := c.Controller.Snapshot()
	s.Sources = c.of.sources()
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	s.Workers = c.of.mu.most // more than have worked at a time are not known
	return s
}

// QueuedKeys is that of the controller, with the failures that the rate limiter counts.
func (c mirroring[K]) QueuedKeys() []workqueue.KeyState[string] {
	keys := c.of.real.Snapshot().Keys
	out := make([]workqueue.KeyState[string], len(keys))
	for i, k := range keys {
		out[i] = workqueue.KeyState[string]{
			Key: fmt.Sprint(k.Key), State: k.State, Age: k.Age, Attempts: c.of.real.NumRequeues(k.Key), Due: k.Due, Priority: k.Priority, Flow: k.Flow,
		}
	}
	return out
}

var (
	_ reconcile.Queue[string] = (*mirror[string])(nil)
	_ source.Source[string]   = (*mirror[string])(nil)
)

// Run implements source.Source.
func (m *mirror[K]) Run(ctx context.Context, add func(K, source.Cause)) error {
	m.add = add
	close(m.added)
	<-ctx.Done()
	return nil
}

// Synced implements source.Source.
func (m *mirror[K]) Synced() <-chan struct{} { return m.added }

func (m *mirror[K]) String() string { return "controller-runtime" }

// Keys implements reconcile.Queue.
func (m *mirror[K]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for {
			m.idle.Add(1)
			select {
			case h := <-m.taken:
				more := yield(h.key)
				if close(h.ended); !more {
					return
				}
			case <-m.down:
				return
			}
		}
	}
}

// ShutDown implements reconcile.Queue. Nothing is recorded after it.
func (m *mirror[K]) ShutDown() { m.once.Do(func() { close(m.down) }) }

// The rest decides nothing: controller-runtime does.

func (m *mirror[K]) Add(K)                     {}
func (m *mirror[K]) AddAfter(K, time.Duration) {}
func (m *mirror[K]) AddRateLimited(K)          {}
func (m *mirror[K]) Forget(K)                  {}
func (m *mirror[K]) Withdraw(K) bool           { return false }

func (m *mirror[K]) NumRequeues(key K) int         { return m.real.NumRequeues(key) }
func (m *mirror[K]) HeldDirty(key K) bool          { return m.real.HeldDirty(key) }
func (m *mirror[K]) Waiting() (int, time.Duration) { return m.real.Waiting() }
func (m *mirror[K]) Stats() workqueue.Stats        { return m.real.Stats() }
