// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/headroom"
	"github.com/flyball-dev/flyball/informer/internal/mutation"
	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/schemas"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/bodylimit"
	"github.com/flyball-dev/flyball/internal/taskgroup"
	"github.com/flyball-dev/flyball/kube"
)

// SharedInformerFactory has one informer per kind and representation, shared by
// all callers, and runs them. Safe for concurrent use.
type SharedInformerFactory struct {
	scheme   *runtime.Scheme
	opts     Options
	resolver *restclient.Resolver
	schemas  *schemas.Watch
	group    taskgroup.Group
	narrow   narrow[coreID]
	relief   headroom.Relief
	sharding sharding
	mu       struct {
		sync.Mutex
		informers map[coreID]*core
		order     []*core // in the order of the requests
	}
}

// NewSharedInformerFactory returns a factory for the kinds in scheme on the
// server of cfg. It sends and starts nothing. It returns an error if cfg is
// invalid, for instance if a certificate file is missing.
func NewSharedInformerFactory(cfg *rest.Config, scheme *runtime.Scheme, opts Options) (*SharedInformerFactory, error) {
	if cfg == nil {
		return nil, errors.New("make informer factory: the REST configuration is nil; load one from a kubeconfig or with rest.InClusterConfig")
	}
	if scheme == nil {
		return nil, errors.New("make informer factory: the scheme is nil; give the scheme that the object types are registered in")
	}
	cfg = rest.CopyConfig(cfg)
	restclient.RereadToken(cfg)
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("make informer factory: connect to %s: %w", cfg.Host, err)
	}
	bounded := *httpClient // it may be http.DefaultClient
	bounded.Transport = bodylimit.Ensure(bounded.Transport)
	server, err := restclient.NewServer(cfg, &bounded, opts.concurrentLists())
	if err != nil {
		return nil, fmt.Errorf("make informer factory: %w", err)
	}
	f := &SharedInformerFactory{scheme: scheme, opts: opts, resolver: restclient.NewResolver(server)}
	limit := opts.memoryBudget()
	if opts.MemoryBudget == 0 && opts.Compact.WhenFull {
		f.relief.Limit = opts.memoryBudget
		if limit <= 0 {
			limit = headroom.None // the process may be given one while it runs
		}
	}
	server.Memory = headroom.New(limit, f.held)
	if server.Memory != nil {
		f.relief.Budget, f.relief.Kinds = server.Memory, f.packable
		f.relief.Sweep = func() { server.Parts().Stats() }
		_ = f.group.Go(f.relief.Run)
		// Otherwise the next try would find the parts of the dropped objects in the table,
		// until they are collected, and count them as shared.
		server.Memory.Dropped = server.Parts().Reset
	}
	f.mu.informers = make(map[coreID]*core)
	f.schemas = schemas.NewWatch(server, opts.Logger)
	_ = f.group.Go(f.schemas.Run) // Run has not begun, so it has not ended
	if d := mutation.New(opts.DetectMutations, opts.Logger); d != nil {
		d.Unshare = server.Parts().Reset
		f.opts.detector = d
		_ = f.group.Go(d.Run)
	}
	return f, nil
}

// For returns a handle on the factory's informer of T, for the union of the
// given scopes; without any, for the factory's namespaces. It may be called at
// any time: during Run the informer starts at once, after Run it is Stopped.
// The informer ends when its last handle is released. Misuse (a nil factory, a
// type not in the scheme, an invalid selector) is remembered: Err of the handle
// returns it, and so does Run of the factory if For was called before Run.
func For[T kube.Object](f *SharedInformerFactory, scopes ...Scope) *SharedInformer[T] {
	id := coreID{object: reflect.TypeFor[T]()}
	var err error
	if f != nil {
		id.kind, err = KindOf[T](f.scheme)
	}
	return handleOf[T](f, id, err, scopes)
}

// handleOf returns a handle on the factory's informer of id. err is misuse.
func handleOf[T kube.Object](f *SharedInformerFactory, id coreID, err error, scopes []Scope) *SharedInformer[T] {
	if f == nil {
		return orphan[T]()
	}
	for {
		c := f.core(id)
		if h, err := c.handle(scopes, err); h != nil {
			return &SharedInformer[T]{core: c, handle: h, err: err}
		}
		c.forget() // its last handle was just released
	}
}

// orphan returns a handle whose misuse is the nil factory.
func orphan[T kube.Object]() *SharedInformer[T] {
	err := fmt.Errorf("informer for %s: the factory is nil; give the manager's Informers(), or one from NewSharedInformerFactory", reflect.TypeFor[T]())
	c := newCore(reflect.TypeFor[T](), schema.GroupVersionKind{Kind: reflect.TypeFor[T]().String()}, Options{}, nil)
	h, err := c.handle(nil, err)
	return &SharedInformer[T]{core: c, handle: h, err: err}
}

// NewListerWatcher returns a ListerWatcher of T in one scope on the server of
// cfg, for New. It sends nothing.
func NewListerWatcher[T kube.Object](cfg *rest.Config, scheme *runtime.Scheme, scope listwatch.Scope) (listwatch.ListerWatcher[T], error) {
	kind, err := KindOf[T](scheme)
	if err != nil {
		return nil, err
	}
	f, err := NewSharedInformerFactory(cfg, scheme, Options{})
	if err != nil {
		return nil, err
	}
	if _, err := reflector.NewMatcher(scope); err != nil {
		return nil, err
	}
	lw, err := restclient.NewListerWatcher(reflect.TypeFor[T](), f.resolver, restclient.Target{Kind: kind}, scope, nil)
	if err != nil {
		return nil, err
	}
	return listerWatcherAs[T, kube.Object]{lw, as[T]}, nil
}

// keptBy is what the decoder keeps of the objects of c. Without a transform nobody
// modifies them, so that they share parts; with one they do when it has modified them.
func keptBy(c *core) restclient.Kept {
	now := c.projection.current().keeps(c.settings.keepsManagedFields())
	transformed, packed := c.settings.transform() != nil, c.packing.Load() != nil
	return restclient.Kept{
		ManagedFields: now.managed,
		Fields:        now.fields,
		Parts:         !transformed,
		Alone:         transformed || packed,
		Grafted:       transformed && !packed,
		OmitKind:      c.settings.omitsKind(),
		Checked:       c.guard != nil && c.guard.Complete(),
		Owners:        &c.owners,
		Foreign:       &c.divider.foreign,
	}
}

// allKeptBy is keptBy with all fields: what is not kept is dropped when the object
// is stored, by when c may keep more than at the request.
func allKeptBy(c *core) restclient.Kept {
	kept := keptBy(c)
	kept.Fields, kept.ManagedFields = nil, c.settings.keepsManagedFields()
	return kept
}

func (f *SharedInformerFactory) core(id coreID) *core {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.mu.informers[id]; ok {
		return c
	}
	t := id.target()
	var c *core
	c = newCore(id.object, id.named(), f.opts, func(scope listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error) {
		return restclient.NewListerWatcher(id.object, f.resolver, t, scope, func() restclient.Kept { return keptBy(c) })
	})
	c.shared, c.schemas, c.memory = true, f.schemas, f.resolver.Server.Memory
	if f.relief.Budget != nil {
		c.opener.relieve = func(needs int64) bool { return f.relief.Pack(c, needs) }
	}
	c.narrowed = func(set *fields.Set) { f.narrow.record(id, set) }
	c.learned = func() (schema.GroupVersionKind, bool) { return f.resolver.KindOf(t) }
	c.resource = func() schema.GroupResource { return f.resolver.GroupResource(t) }
	c.namespaced = func() (bool, bool) { return f.resolver.Namespaced(t) }
	c.divider.of = &f.sharding
	c.follow = func(selector string) *SharedInformer[*metav1.PartialObjectMetadata] {
		return namespaceInformer(f, selector)
	}
	c.discover = func(ctx context.Context) (bool, error) {
		_, m, err := f.resolver.Resolve(ctx, t)
		return m.Namespaced, err
	}
	c.convert = func(w kube.Written) (kube.Object, error) { return convertTo(id.object, c.gvk(), w) }
	c.borrow = func(t *reflector.Tap, from kube.Version) bool {
		return slices.ContainsFunc(f.cores(), func(other *core) bool { return other.gvk() == c.gvk() && other.lend(t, from) })
	}
	c.settling = func(scope listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error) {
		return restclient.NewListerWatcher(id.object, f.resolver, t, scope, func() restclient.Kept { return allKeptBy(c) })
	}
	c.auditList = func(scope listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error) {
		return restclient.NewListerWatcher(restclient.MetadataType, f.resolver, t, scope, nil)
	}
	if f.opts.Audit > 0 {
		_ = c.group.Go(c.auditor.run) // its run has not begun
	}
	f.mu.informers[id] = c
	f.mu.order = append(f.mu.order, c)
	member, ended := f.group.Spawn(c.run)
	switch {
	case ended != nil:
		c.end()
	case member.Started():
		c.settings.setStarted() // at once, so that what may be set on a handle does not depend on a goroutine
	}
	c.forget = func() {
		f.forget(id, c)
		if member != nil {
			member.Cancel()
		}
	}
	return c
}

// forget makes the next For of id create a new core, not c.
func (f *SharedInformerFactory) forget(id coreID, c *core) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.informers[id] == c {
		delete(f.mu.informers, id)
	}
	f.mu.order = slices.DeleteFunc(slices.Clone(f.mu.order), func(other *core) bool { return other == c })
}

// KindOf returns the kind of T in scheme. It is an error if T is not a pointer
// to a type in scheme, or is a type for objects of any kind.
func KindOf[T kube.Object](scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	t := reflect.TypeFor[T]()
	if err := restclient.Kindless(t); err != nil {
		return schema.GroupVersionKind{Kind: t.String()}, err
	}
	if t.Kind() != reflect.Pointer {
		return schema.GroupVersionKind{Kind: t.Name()}, fmt.Errorf("informer for %s: give the pointer to an API type, such as informer.For[*corev1.Pod], or an object of it to informer.ForObject", t)
	}
	obj := reflect.New(t.Elem()).Interface().(runtime.Object)
	kinds, _, err := scheme.ObjectKinds(obj)
	if err != nil {
		return schema.GroupVersionKind{Kind: t.Elem().Name()}, fmt.Errorf("informer for %s: the type is not in the scheme; call its package's AddToScheme(scheme) first", t)
	}
	return kinds[0], nil
}

// Scheme returns the scheme of the factory's kinds.
func (f *SharedInformerFactory) Scheme() *runtime.Scheme { return f.scheme }

// Run runs every informer of the factory, including those requested later,
// until ctx ends or one has misuse. It returns when all have ended. It can run
// only once.
func (f *SharedInformerFactory) Run(ctx context.Context) error {
	defer f.resolver.Server.CloseIdle()
	f.sharding.begin()
	return f.group.Run(ctx)
}

// MutationDetector returns the detector of all informers, nil if
// Options.DetectMutations is off.
func (f *SharedInformerFactory) MutationDetector() *MutationDetector { return shown(f.opts.detector) }

// Snapshot returns the state of each informer, in the order of the requests.
func (f *SharedInformerFactory) Snapshot() []state.Informer {
	return snapshots(f.cores())
}

// Observe passes an own write to the informers of its kind, so that the next
// read has it. It does not wait for handlers.
func (f *SharedInformerFactory) Observe(w kube.Written) {
	for _, c := range f.cores() {
		if c.gvk().GroupKind() == w.Kind.GroupKind() {
			c.writes.observe(w)
		}
	}
}

// WatchedKind returns the kind of a resource if an informer of the factory has that kind,
// in any version. It asks no server: until discovery has answered for the informer, it goes
// by the resource's usual name.
func (f *SharedInformerFactory) WatchedKind(resource schema.GroupVersionResource) (kind schema.GroupVersionKind, watched bool) {
	f.mu.Lock()
	order := f.mu.order // copied on removal
	f.mu.Unlock()
	for _, c := range order {
		if c.kind.Group == resource.Group && c.servedAs(resource.Resource) {
			return resource.GroupVersion().WithKind(c.gvk().Kind), true
		}
	}
	return schema.GroupVersionKind{}, false
}

// WhenPassed calls do once when each informer of kind holds a version of key
// above than, or does not hold the object; at once if that is already so, never
// if there is no such informer. do must not block. stop cancels it and may be
// called repeatedly.
func (f *SharedInformerFactory) WhenPassed(kind schema.GroupVersionKind, key kube.Key, than kube.Version, do func()) (stop func()) {
	cores := slices.DeleteFunc(f.cores(), func(c *core) bool { return c.gvk().GroupKind() != kind.GroupKind() })
	if len(cores) == 0 {
		return func() {}
	}
	var behind atomic.Int64
	behind.Store(int64(len(cores)))
	stops := make([]func(), 0, len(cores))
	for _, c := range cores {
		stops = append(stops, c.indexer.WhenPassed(key, than, func() {
			if behind.Add(-1) == 0 {
				do()
			}
		}))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// held returns the memory of all objects that are stored, or will be next.
func (f *SharedInformerFactory) held() (bytes int64) {
	for _, c := range f.cores() {
		bytes += c.indexer.Heap.Load() + c.fifo.Heap()
	}
	return bytes + f.resolver.Server.Parts().Live()
}

// packable returns the kinds that are to be packed when the memory budget is full.
func (f *SharedInformerFactory) packable() (kinds []headroom.Packable) {
	for _, c := range f.cores() {
		if !c.packing.isReady() {
			continue
		}
		kinds = append(kinds, headroom.Packable{
			ID: c, Heap: c.indexer.Heap.Load() + c.fifo.Heap(), Objects: int64(c.indexer.Len()), Reads: c.packing.reads.Swap(0),
			Pack: c.pack,
		})
	}
	return kinds
}

// pack makes c compact, and reports whether it is.
func (c *core) pack(why string) bool {
	packer, err := c.packing.begin(why)
	if packer == nil || err != nil {
		return err == nil // it was packed meanwhile
	}
	store.Sweep{Of: c.indexer, Packer: packer}.Run()
	c.log.Info("Packs the objects of this kind from now on; a read of one that was not read recently decodes it", "why", why)
	return true
}

func (f *SharedInformerFactory) cores() []*core {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.mu.order)
}

// Kinds returns the kinds of the factory's informers, in the order of the requests.
func (f *SharedInformerFactory) Kinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, c := range f.cores() {
		if kind := c.gvk(); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Progress returns the present work of each informer, in the order of the
// requests.
func (f *SharedInformerFactory) Progress() []Progress {
	cores := f.cores()
	out := make([]Progress, 0, len(cores))
	for _, c := range cores {
		out = append(out, c.progress())
	}
	return out
}

// WaitForSync blocks until the informers of the given kinds have synced;
// without kinds, all those requested so far. It returns their state in the
// order of the requests, synced or not. If ctx or the run ends first, or a scope
// has state.Misuse, the error is a *SyncError. Misuse of one is returned at once.
func (f *SharedInformerFactory) WaitForSync(ctx context.Context, kinds ...schema.GroupVersionKind) ([]state.Informer, error) {
	all := f.cores()
	for _, kind := range kinds {
		if !slices.ContainsFunc(all, func(c *core) bool { return c.gvk() == kind }) {
			return nil, fmt.Errorf("wait for sync of %s: there is no informer of that kind", kind)
		}
	}
	wanted := slices.DeleteFunc(all, func(c *core) bool {
		return len(kinds) > 0 && !slices.Contains(kinds, c.gvk())
	})
	for _, c := range wanted {
		if err := c.settings.misuse(); err != nil {
			return snapshots(wanted), fmt.Errorf("wait for sync of %s: %w", c.gvk(), err)
		}
	}
	for _, c := range wanted {
		misused := func() (<-chan struct{}, error) { return c.critical.misusedBy(&c.misuses, (*handle).isAwaited) }
		if err := awaitSync(ctx, c.critical.allSynced(), c.ended, misused); err != nil {
			states := snapshots(wanted)
			return states, &SyncError{States: states, Err: err}
		}
	}
	return snapshots(wanted), nil
}

func snapshots(cores []*core) []state.Informer {
	out := make([]state.Informer, 0, len(cores))
	for _, c := range cores {
		out = append(out, c.snapshot())
	}
	return out
}
