// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	request "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/flyball-dev/flyball/internal/ownership"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/internal/simhook"
)

// replica is a manager of Sharded.
//
//	Add ──▶ a controller: its reconciler and its queue pass the requests of held shards
//	    ├─▶ another Runnable that needs leader election: runs where shard 0 is held
//	    └─▶ the rest: as before
//	Start ─▶ caches, controllers ── their sources have synced ──▶ the agent takes shards
type replica struct {
	ctrl.Manager
	Sharding
	agent   *ownership.Agent
	cache   *kinds        // set while the manager is made
	elected chan struct{} // closed when shard 0 is held first
	grace   time.Duration // of GracefulShutdownTimeout; negative: for ever
	// endWork ends the contexts of reconciles in flight, and whenWorkEnds calls a function then.
	endWork      context.CancelCauseFunc
	whenWorkEnds func(func()) (stop func() bool)
	sim          atomic.Value // the Hooks of a simulation
	mu           struct {
		sync.Mutex
		divided     map[schema.GroupKind]shards.By // what is not as By says
		controllers map[string]bool                // by name
		ready       []<-chan struct{}              // of controllers: their sources have synced
	}
}

var _ ctrl.Manager = (*replica)(nil)

func newReplica(s Sharding, grace time.Duration) *replica {
	r := &replica{Sharding: s, elected: make(chan struct{}), grace: grace}
	work, end := context.WithCancelCause(context.Background())
	r.endWork = end
	r.whenWorkEnds = func(f func()) (stop func() bool) { return context.AfterFunc(work, f) }
	r.mu.divided, r.mu.controllers = map[schema.GroupKind]shards.By{}, map[string]bool{}
	return r
}

// dividedBy returns what decides the shard of a kind's objects; empty: each replica has all.
func (r *replica) dividedBy(kind schema.GroupKind) shards.By {
	r.mu.Lock()
	defer r.mu.Unlock()
	by, named := r.mu.divided[kind]
	switch {
	case named && (by == "" || r.By == ByUID):
		return by
	case r.By == ByNamespace:
		return shards.Namespace
	}
	return ""
}

// name sets what decides the shard of the objects of like's kind.
func (r *replica) name(like client.Object, by shards.By) error {
	kind, err := apiutil.GVKForObject(like, r.GetScheme())
	if err == nil {
		r.use(kind.GroupKind(), by)
	}
	return err
}

// use sets what decides the shard of a kind's objects. A kind that is to be divided in two ways is
// not.
func (r *replica) use(kind schema.GroupKind, by shards.By) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, named := r.mu.divided[kind]; named && before != by {
		by = ""
	}
	r.mu.divided[kind] = by
}

// Add implements manager.Manager.
func (r *replica) Add(runnable manager.Runnable) error {
	if c, is := runnable.(interface{ GetLogger() logr.Logger }); is && hasWatch(runnable) {
		if err := r.share(runnable, c.GetLogger()); err != nil {
			return err
		}
		return r.Manager.Add(runnable)
	}
	if needsElection(runnable) {
		runnable = single{runnable, r.agent.Guard()}
	}
	return r.Manager.Add(runnable)
}

// hasWatch reports whether a Runnable is a controller, for any type of requests.
func hasWatch(runnable manager.Runnable) bool {
	return reflect.ValueOf(runnable).MethodByName("Watch").IsValid()
}

// needsElection reports whether controller-runtime's manager runs a Runnable only while it leads.
func needsElection(runnable manager.Runnable) bool {
	if _, is := runnable.(interface{ GetCache() cache.Cache }); is {
		return false
	}
	if _, is := runnable.(webhook.Server); is {
		return false
	}
	elects, is := runnable.(manager.LeaderElectionRunnable)
	return !is || elects.NeedLeaderElection()
}

// share makes a controller reconcile the requests of held shards.
func (r *replica) share(runnable manager.Runnable, log logr.Logger) error {
	fields := reflect.Indirect(reflect.ValueOf(runnable))
	name := "of type " + fields.Type().String()
	if fields.Kind() == reflect.Struct {
		if text, is := fieldOf[string](fields, "Name"); is {
			name = *text
		}
		if do := fields.FieldByName("Do"); do.IsValid() && do.CanInterface() {
			if already, is := do.Interface().(sharing); is {
				r.record(name, already)
				return nil
			}
		}
		do, does := fieldOf[request.TypedReconciler[request.Request]](fields, "Do")
		queue, queues := fieldOf[queueMaker[request.Request]](fields, "NewQueue")
		if does && queues {
			s, err := r.shardedBy(name, log, *do)
			if err != nil {
				return fmt.Errorf("add controller %q: %w", name, err)
			}
			*do, *queue = s, s.queueOf(*queue)
			r.record(name, s)
			return nil
		}
	}
	return fmt.Errorf("add controller %q: how its requests are divided among the replicas is not "+
		"known, since it is a %T; make it with options that bridge.ShardedOptions has completed", name, runnable)
}

// fieldOf returns the field of a struct, if it has one of that type.
func fieldOf[T any](fields reflect.Value, name string) (*T, bool) {
	f := fields.FieldByName(name)
	if !f.IsValid() || !f.CanAddr() || !f.CanInterface() {
		return nil, false
	}
	of, is := f.Addr().Interface().(*T)
	return of, is
}

func (r *replica) record(name string, s sharing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.controllers[name] = true
	r.mu.ready = append(r.mu.ready, s.synced())
}

// shardedBy returns next for the requests of held shards. log is the controller's.
func (r *replica) shardedBy(
	name string, log logr.Logger, next request.Reconciler,
) (*sharded[request.Request], error) {
	kind := kindIn(log)
	if like, named := r.Kinds[name]; named {
		found, err := apiutil.GVKForObject(like, r.GetScheme())
		if err != nil {
			return nil, fmt.Errorf("its kind in Kinds of bridge.Sharding: %w", err)
		}
		kind = found.GroupKind()
	}
	var s *sharded[request.Request]
	var place func(request.Request) (int, bool)
	switch {
	case slices.Contains(r.Singletons, name):
		r.use(kind, "")
		place = func(request.Request) (int, bool) { return 0, true }
	case r.By == ByNamespace:
		place = func(req request.Request) (int, bool) { return shards.Of(req.Namespace, r.Shards), true }
	case kind.Kind == "":
		return nil, fmt.Errorf("the objects whose UIDs divide its requests are not known; set Kinds of "+
			"bridge.Sharding for %[1]q, or add %[1]q to Singletons if one replica is to reconcile all", name)
	default:
		r.use(kind, shards.UID)
		place = func(req request.Request) (int, bool) {
			uid, ok := r.cache.uidOf(kind, req.NamespacedName, func() { s.keys.Add(req) })
			return shards.Of(uid, r.Shards), ok
		}
	}
	s = newSharded(r, place, next)
	s.mark = func(ctx context.Context, req request.Request) context.Context {
		return context.WithValue(ctx, subjectKey{}, subject{kind, req.NamespacedName})
	}
	return s, nil
}

// subject is the object that a reconcile is for.
type subject struct {
	kind schema.GroupKind
	key  client.ObjectKey
}

type subjectKey struct{}

// absent returns why another replica may have an object that this one's cache does not have; nil:
// none.
func (r *replica) absent(ctx context.Context, e *entry, key client.ObjectKey) error {
	kind, namespace := e.kind.GroupKind(), key.Namespace
	switch r.dividedBy(kind) {
	case shards.Namespace:
		held := r.agent.Guard().Held()
		if !e.namespaced || slices.Contains(held, shards.Of(namespace, r.Shards)) {
			return nil
		}
		return fmt.Errorf("get %s %s: another replica has the objects of namespace %q; add the kind "+
			"to Whole of bridge.Sharding, or read with the manager's API reader", kind, key, namespace)
	case shards.UID:
		if ctx.Value(subjectKey{}) == (subject{kind, key}) {
			return nil
		}
		return fmt.Errorf("get %s %s: this replica does not have it, and another one may; add the kind "+
			"to Whole of bridge.Sharding, or read with the manager's API reader", kind, key)
	}
	return nil
}

// Elected implements manager.Manager.
func (r *replica) Elected() <-chan struct{} { return r.elected }

// GetLogger implements manager.Manager. The logger of a controller that the builder derives from it
// knows the kind that the controller is for.
func (r *replica) GetLogger() logr.Logger {
	l := r.Manager.GetLogger()
	if l.GetSink() == nil {
		return l
	}
	return l.WithSink(noting{LogSink: l.GetSink()})
}

// Start implements manager.Manager.
func (r *replica) Start(ctx context.Context) error {
	if err := r.unknown(); err != nil {
		return err
	}
	if sim := simhook.Of(ctx); sim != nil {
		r.sim.Store(sim)
	}
	return r.Manager.Start(ctx)
}

// unknown returns an error if Sharding names a controller that was not added.
func (r *replica) unknown() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Concat(r.Singletons, slices.Sorted(maps.Keys(r.Kinds))) {
		if !r.mu.controllers[name] {
			return fmt.Errorf("start the manager: bridge.Sharding names the controller %q, which was not "+
				"added; there are %q", name, slices.Sorted(maps.Keys(r.mu.controllers)))
		}
	}
	return nil
}

// member returns the Runnable that takes part in the division.
func (r *replica) member() manager.Runnable { return member{r} }

type member struct{ of *replica }

// NeedLeaderElection implements manager.LeaderElectionRunnable. controller-runtime ends what needs
// no leader election first, and then the controllers: the shards are given away while these still
// work.
func (member) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (m member) Start(ctx context.Context) error {
	r := m.of
	r.mu.Lock()
	ready := slices.Clone(r.mu.ready)
	r.mu.Unlock()
	for _, synced := range ready { // with the informers that are to catch up
		select {
		case <-synced:
		case <-ctx.Done():
			return nil
		}
	}
	if sim, is := r.sim.Load().(simhook.Hooks); is {
		ctx = simhook.With(ctx, sim)
	}
	guard := r.agent.Guard()
	var once sync.Once
	defer guard.Changed(func() {
		if guard.Works(0) {
			once.Do(func() { close(r.elected) })
		}
	})()
	running, end := context.WithCancelCause(context.WithoutCancel(ctx))
	var leaving sync.WaitGroup
	defer leaving.Wait()
	defer end(nil)
	leaving.Go(func() {
		select {
		case <-ctx.Done():
			end(r.leave(running))
		case <-running.Done():
		}
	})
	return r.agent.Run(logr.NewContext(running, r.Manager.GetLogger().WithName("sharding")))
}

// errStopping is the cause of the end of a reconcile's context.
var errStopping = errors.New("the manager is stopping")

// leave gives each shard away when its reconciles have ended. Their contexts end after two thirds
// of the time that controller-runtime gives them. It returns when none is in flight, though a write
// that was cut off may still arrive, or why the Leases must be kept: that time has passed, and
// reconciles go on.
func (r *replica) leave(ctx context.Context) error {
	guard, changed := r.agent.Guard(), make(chan struct{}, 1)
	defer guard.Changed(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	r.agent.Leave()
	soon, over := time.After(cmp.Or(max(r.grace, 0), defaultGrace)*2/3), (<-chan time.Time)(nil)
	if r.grace >= 0 {
		over = time.After(r.grace)
	}
	for guard.Busy() {
		select {
		case <-changed:
		case <-soon:
			r.endWork(errStopping)
		case <-over:
			return ownership.ErrAbandoned
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// single is a Runnable that runs where shard 0 is held.
type single struct {
	manager.Runnable
	guard *ownership.Guard
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (single) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (s single) Start(ctx context.Context) error { return s.guard.Alone(ctx, 0, s.Runnable.Start) }

// Warmup is called by controller-runtime's manager before it leads.
func (s single) Warmup(ctx context.Context) error {
	if w, is := s.Runnable.(interface{ Warmup(context.Context) error }); is {
		return w.Warmup(ctx)
	}
	return nil
}

// noting is a sink that notes the kind which controller-runtime's builder gives to the logger of a
// controller.
type noting struct {
	logr.LogSink
	kind schema.GroupKind
}

// kindIn returns the kind that the sink of a logger has noted; empty: none.
func kindIn(l logr.Logger) schema.GroupKind {
	n, _ := l.GetSink().(noting)
	return n.kind
}

// WithValues implements logr.LogSink.
func (n noting) WithValues(pairs ...any) logr.LogSink {
	for i := 0; i+1 < len(pairs); i += 2 {
		value, _ := pairs[i+1].(string)
		switch pairs[i] {
		case "controllerGroup":
			n.kind.Group = value
		case "controllerKind":
			n.kind.Kind = value
		}
	}
	n.LogSink = n.LogSink.WithValues(pairs...)
	return n
}

// WithName implements logr.LogSink.
func (n noting) WithName(name string) logr.LogSink {
	n.LogSink = n.LogSink.WithName(name)
	return n
}

// WithCallDepth implements logr.CallDepthLogSink.
func (n noting) WithCallDepth(depth int) logr.LogSink {
	if s, is := n.LogSink.(logr.CallDepthLogSink); is {
		n.LogSink = s.WithCallDepth(depth)
	}
	return n
}
