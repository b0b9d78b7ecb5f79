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

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/schemas"
	"github.com/flyball-dev/flyball/internal/answers"
	"github.com/flyball-dev/flyball/internal/nursery"
)

// SharedInformerFactory makes one informer per kind, however many ask for it,
// and runs them all. Safe for concurrent use.
type SharedInformerFactory struct {
	scheme   *runtime.Scheme
	opts     Options
	resolver *restclient.Resolver
	schemas  *schemas.Watch
	group    nursery.Nursery
	mu       struct {
		sync.Mutex
		informers map[coreID]*core
		order     []*core // as asked for
	}
}

// NewSharedInformerFactory returns a factory for the kinds in scheme on the
// server of cfg. It sends nothing and starts nothing. It is an error when cfg
// cannot make a connection, such as a missing certificate file.
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
	bounded.Transport = answers.Ensure(bounded.Transport)
	server, err := restclient.NewServer(cfg, &bounded, opts.concurrentLists())
	if err != nil {
		return nil, fmt.Errorf("make informer factory: %w", err)
	}
	f := &SharedInformerFactory{scheme: scheme, opts: opts, resolver: restclient.NewResolver(server)}
	f.mu.informers = make(map[coreID]*core)
	f.schemas = schemas.NewWatch(server, opts.Logger)
	_ = f.group.Go(f.schemas.Run) // Run has not ended: it has not begun
	if d := newMutationDetector(opts.DetectMutations, opts.Logger); d != nil {
		f.opts.detector = d
		_ = f.group.Go(d.run)
	}
	return f, nil
}

// For returns a handle on the factory's informer of T, over the union of the
// given scopes; with none, over the factory's namespaces. It may be called at
// any time; an informer that is asked for during Run starts at once, and one
// asked for after it is Stopped. Each handle counts: the informer ends when the
// last one is released. Misuse (a nil factory, a type that is not in
// the scheme, a selector that does not parse) is remembered: the handle's Err
// returns it, and so does Run of the factory, if the handle was asked for before.
func For[T Object](f *SharedInformerFactory, scopes ...Scope) *SharedInformer[T] {
	id := coreID{object: reflect.TypeFor[T]()}
	var err error
	if f != nil {
		id.kind, err = KindOf[T](f.scheme)
	}
	return handleOf[T](f, id, err, scopes)
}

// handleOf is a handle on the factory's informer of id. err is misuse of it.
func handleOf[T Object](f *SharedInformerFactory, id coreID, err error, scopes []Scope) *SharedInformer[T] {
	if f == nil {
		return orphan[T]()
	}
	for {
		c := f.core(id)
		if h, err := c.handle(scopes, err); h != nil {
			return &SharedInformer[T]{core: c, handle: h, err: err}
		}
		c.forget() // its last handle was released just now
	}
}

// orphan is a handle that only remembers that there was no factory.
func orphan[T Object]() *SharedInformer[T] {
	err := fmt.Errorf("informer for %s: the factory is nil; give the manager's Informers(), or one from NewSharedInformerFactory", reflect.TypeFor[T]())
	c := newCore(reflect.TypeFor[T](), schema.GroupVersionKind{Kind: reflect.TypeFor[T]().String()}, Options{}, nil)
	h, err := c.handle(nil, err)
	return &SharedInformer[T]{core: c, handle: h, err: err}
}

// NewListerWatcher lists and watches T in one scope on the server of cfg, for
// an informer made by New. It sends nothing yet.
func NewListerWatcher[T Object](cfg *rest.Config, scheme *runtime.Scheme, scope WatchScope) (ListerWatcher[T], error) {
	kind, err := KindOf[T](scheme)
	if err != nil {
		return nil, err
	}
	f, err := NewSharedInformerFactory(cfg, scheme, Options{})
	if err != nil {
		return nil, err
	}
	if _, err := base.NewMatcher(scope); err != nil {
		return nil, err
	}
	lw, err := restclient.NewListerWatcher[Object](reflect.TypeFor[T](), f.resolver, restclient.Target{Kind: kind}, scope, nil)
	if err != nil {
		return nil, err
	}
	return listerWatcherAs[T, Object]{lw, as[T]}, nil
}

// core is the one core of id.
func (f *SharedInformerFactory) core(id coreID) *core {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.mu.informers[id]; ok {
		return c
	}
	t := id.target()
	var c *core
	c = newCore(id.object, id.named(), f.opts, func(scope WatchScope) (ListerWatcher[Object], error) {
		return restclient.NewListerWatcher[Object](id.object, f.resolver, t, scope, c.keepsManagedFields)
	})
	c.shared, c.schemas = true, f.schemas
	c.learned = func() (schema.GroupVersionKind, bool) { return f.resolver.KindOf(t) }
	c.resource = func() schema.GroupResource { return f.resolver.GroupResource(t) }
	c.namespaced = func() (bool, bool) { return f.resolver.Namespaced(t) }
	c.follow = func(selector string) *SharedInformer[*metav1.PartialObjectMetadata] {
		return namespaceInformer(f, selector)
	}
	c.discover = func(ctx context.Context) (bool, error) {
		_, m, err := f.resolver.Resolve(ctx, t)
		return m.Namespaced, err
	}
	c.convert = func(obj Object) (Object, error) { return convertTo(id.object, c.gvk(), obj) }
	c.borrow = func(t *reflector.Tap, from Version) bool {
		return slices.ContainsFunc(f.cores(), func(other *core) bool { return other.gvk() == c.gvk() && other.lend(t, from) })
	}
	c.auditList = func(scope WatchScope) (ListerWatcher[Object], error) {
		return restclient.NewListerWatcher[Object](restclient.MetadataType, f.resolver, t, scope, nil)
	}
	if f.opts.Audit > 0 {
		_ = c.group.Go(c.audits) // its run has not begun
	}
	f.mu.informers[id] = c
	f.mu.order = append(f.mu.order, c)
	member, ended := f.group.Spawn(c.run)
	switch {
	case ended != nil:
		c.end()
	case member.Started():
		c.begun() // now, so that what may be set on a handle depends on no goroutine
	}
	c.forget = func() {
		f.forget(id, c)
		if member != nil {
			member.Cancel()
		}
	}
	return c
}

// forget has the next For of id make another core than c.
func (f *SharedInformerFactory) forget(id coreID, c *core) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.informers[id] == c {
		delete(f.mu.informers, id)
	}
	f.mu.order = slices.DeleteFunc(f.mu.order, func(other *core) bool { return other == c })
}

// KindOf is the kind that scheme knows T by. It is an error when T is not a
// pointer to a type in scheme, or a type for objects of any kind.
func KindOf[T Object](scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
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
		return schema.GroupVersionKind{Kind: t.Elem().Name()}, fmt.Errorf("informer for %s: the type is not in the scheme; call its package's AddToScheme(scheme) first: %w", t, err)
	}
	return kinds[0], nil
}

// Scheme is the scheme of the factory's kinds.
func (f *SharedInformerFactory) Scheme() *runtime.Scheme { return f.scheme }

// Run runs every informer that For was asked for, before and during, until
// ctx ends or one remembers misuse. It returns when all have ended. It runs
// once.
func (f *SharedInformerFactory) Run(ctx context.Context) error {
	defer f.resolver.Server.CloseIdle()
	return f.group.Run(ctx)
}

// MutationDetector is what compares the objects of all informers with copies,
// nil where Options.DetectMutations is off.
func (f *SharedInformerFactory) MutationDetector() *MutationDetector { return f.opts.detector }

// Snapshot says where each informer stands, in the order they were asked for.
func (f *SharedInformerFactory) Snapshot() []Snapshot {
	return snapshots(f.cores())
}

// Observe shows an own write to the informers of its kind, so that the next
// read has it. It does not wait for handlers.
func (f *SharedInformerFactory) Observe(w Written) {
	for _, c := range f.cores() {
		if c.gvk().GroupKind() == w.Kind.GroupKind() {
			c.observe(w)
		}
	}
}

// WhenPassed calls do once when each informer of kind holds a version of key
// newer than the given one, or does not hold the object; at once if it is so
// already, never if there is no such informer. do must not block. stop ends
// the waiting; calling it again does nothing.
func (f *SharedInformerFactory) WhenPassed(kind schema.GroupVersionKind, key Key, than Version, do func()) (stop func()) {
	cores := slices.DeleteFunc(f.cores(), func(c *core) bool { return c.gvk().GroupKind() != kind.GroupKind() })
	if len(cores) == 0 {
		return func() {}
	}
	var behind atomic.Int64
	behind.Store(int64(len(cores)))
	stops := make([]func(), 0, len(cores))
	for _, c := range cores {
		stops = append(stops, c.whenPassed(key, than, func() {
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

func (f *SharedInformerFactory) cores() []*core {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.mu.order)
}

// Progress says what each informer has in hand, in the order they were asked for.
func (f *SharedInformerFactory) Progress() []Progress {
	cores := f.cores()
	out := make([]Progress, 0, len(cores))
	for _, c := range cores {
		out = append(out, c.progress())
	}
	return out
}

// WaitForSync blocks until the informers of the given kinds have synced, or
// with none given all that For was asked for so far. It returns where each of
// them stands, in the order they were asked for, whether they have synced or
// not. When ctx or the run ends before, the error is a *SyncError. Misuse of
// one is returned at once.
func (f *SharedInformerFactory) WaitForSync(ctx context.Context, kinds ...schema.GroupVersionKind) ([]Snapshot, error) {
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
		if err := c.misuse(); err != nil {
			return snapshots(wanted), fmt.Errorf("wait for sync of %s: %w", c.gvk(), err)
		}
	}
	for _, c := range wanted {
		if err := awaitSync(ctx, c.allSynced(), c.over()); err != nil {
			states := snapshots(wanted)
			return states, &SyncError{States: states, Err: err}
		}
	}
	return snapshots(wanted), nil
}

func snapshots(cores []*core) []Snapshot {
	out := make([]Snapshot, 0, len(cores))
	for _, c := range cores {
		out = append(out, c.snapshot())
	}
	return out
}
