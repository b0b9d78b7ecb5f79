// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// kinds is controller-runtime's cache over flyball's informers. Make it with NewCache.
type kinds struct {
	config
	factory *informer.SharedInformerFactory
	log     logr.Logger
	shared  bool // the factory is another's, who runs it
	// stripped: the objects have no managedFields, unless another user of shared informers keeps them.
	stripped bool
	limit    readLimit
	started  atomic.Bool
	begun    chan struct{} // closed by Start
	// absent returns why an object that the cache does not have may exist nevertheless; nil: it does not.
	// A nil function: the cache is not divided.
	absent func(ctx context.Context, e *entry, key client.ObjectKey) error
	mu     struct {
		sync.RWMutex
		entries map[id]*slot
	}
}

// slot is a place for an entry, which opens once.
type slot struct {
	open   func() (*entry, error)
	opened atomic.Pointer[entry] // nil: not yet
}

var _ cache.Cache = (*kinds)(nil)

// NewCache is cache.New with flyball's informers. With opts.NewInformer it is cache.New, which is
// logged. CacheOptions.NewCache is the same with further options.
func NewCache(cfg *rest.Config, opts cache.Options) (cache.Cache, error) {
	return CacheOptions{}.NewCache(cfg, opts)
}

func newKinds(with config) *kinds {
	c := &kinds{config: with, log: log.Log.WithName("cache"), begun: make(chan struct{})}
	c.mu.entries = make(map[id]*slot)
	return c
}

// Start runs the informers until ctx ends, unless they are another's.
func (c *kinds) Start(ctx context.Context) error {
	if c.started.Swap(true) {
		return errors.New("start the cache: informer already started")
	}
	defer registeredCollector().show(c)()
	close(c.begun)
	if c.shared {
		<-ctx.Done()
		return nil
	}
	return c.factory.Run(ctx)
}

// Started is closed when Start has been called.
func (c *kinds) Started() <-chan struct{} { return c.begun }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (c *kinds) NeedLeaderElection() bool { return false }

// WaitForCacheSync waits until the cache has started and the informers that it then has are synced. It returns false if
// ctx or the run ends before.
func (c *kinds) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c.begun:
	case <-ctx.Done():
		return false
	}
	for _, s := range c.slots() {
		e, err := s.open()
		if err != nil {
			continue // the caller that asked for it has the error
		}
		if _, err := e.informer.WaitForSync(ctx); err != nil && !released(e) {
			return false
		}
	}
	return true
}

// released reports whether RemoveInformer has removed e.
func released(e *entry) bool {
	_, ok := errors.AsType[*kube.ReleasedError](e.informer.Err())
	return ok
}

func (c *kinds) slots() []*slot {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Collect(maps.Values(c.mu.entries))
}

// GetInformer implements cache.Informers.
func (c *kinds) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	kind, err := apiutil.GVKForObject(obj, c.Scheme)
	if err != nil {
		return nil, err
	}
	return c.get(ctx, id{kind, formOf(obj)}, opts)
}

// GetInformerForKind implements cache.Informers.
func (c *kinds) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind, opts ...cache.InformerGetOption) (cache.Informer, error) {
	obj, err := c.Scheme.New(kind)
	if err != nil {
		return nil, err
	}
	return c.get(ctx, id{kind, formOf(obj)}, opts)
}

func (c *kinds) get(ctx context.Context, i id, opts []cache.InformerGetOption) (cache.Informer, error) {
	e, created, err := c.use(i)
	if err != nil {
		return nil, err
	}
	var o cache.InformerGetOptions
	for _, f := range opts {
		f(&o)
	}
	if ptr.Deref(o.BlockUntilSynced, true) {
		if err := c.await(ctx, e, created, e.sync); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// RemoveInformer stops the informer of obj's form, if there is one.
func (c *kinds) RemoveInformer(_ context.Context, obj client.Object) error {
	kind, err := apiutil.GVKForObject(obj, c.Scheme)
	if err != nil {
		return err
	}
	if s := c.remove(id{kind, formOf(obj)}, nil); s != nil {
		if e, err := s.open(); err == nil {
			e.informer.Release()
		}
	}
	return nil
}

// IndexField implements client.FieldIndexer. It does not wait for a sync.
func (c *kinds) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	kind, err := apiutil.GVKForObject(obj, c.Scheme)
	if err != nil {
		return err
	}
	e, _, err := c.use(id{kind, formOf(obj)})
	if err != nil {
		return err
	}
	return e.informer.AddIndex(indexOf(field), func(obj kube.Object) []string { return extract(obj) })
}

// indexOf returns the name of the index for a field.
func indexOf(field string) string { return "field:" + field }

// entry returns the entry of i, and whether it did not exist before.
func (c *kinds) entry(i id) (e *entry, created bool, err error) {
	s := c.find(i)
	if s == nil {
		s, created = c.add(i)
	}
	if e, err = s.open(); err != nil {
		c.remove(i, s) // the next caller tries again
		return nil, false, err
	}
	return e, created, nil
}

func (c *kinds) find(i id) *slot {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.mu.entries[i]
}

func (c *kinds) add(i id) (s *slot, created bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.mu.entries[i]; s != nil {
		return s, false
	}
	s = &slot{}
	s.open = sync.OnceValues(func() (*entry, error) {
		e, err := c.open(i)
		if err == nil {
			s.opened.Store(e)
		}
		return e, err
	})
	c.mu.entries[i] = s
	return s, true
}

// remove takes out the slot of i, if it is only or only is nil.
func (c *kinds) remove(i id, only *slot) *slot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.mu.entries[i]
	if s == nil || only != nil && s != only {
		return nil
	}
	delete(c.mu.entries, i)
	return s
}

// await waits until e has synced, if the cache has started. The context of a caller that has created e counts even if
// the sync is faster.
func (c *kinds) await(ctx context.Context, e *entry, created bool, sync func(context.Context) error) error {
	if !c.hasBegun() || !created && e.HasSynced() {
		return nil
	}
	err := sync(ctx)
	if errors.Is(err, errUnlisted) {
		c.forget(e, true)
		return err
	}
	if _, refused := errors.AsType[*refusedError](err); refused {
		c.forget(e, false)
		return err
	}
	if err == nil && created {
		err = ctx.Err()
	}
	if err != nil {
		return apierrors.NewTimeoutError(fmt.Sprintf("failed waiting for the %s informer to sync: %v", e.kind.Kind, err), 0)
	}
	return nil
}

// errUnlisted is the error of a kind that the server cannot list.
var errUnlisted = errors.New("this kind has no list, so it cannot be cached: read it with the manager's API reader")

// sync waits for the sync of e, or until it is known that there is none.
func (e *entry) sync(ctx context.Context) error {
	current, err := e.informer.WaitForSync(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	for _, s := range current.Scopes {
		if s.State == state.Misuse && !s.Synced {
			return fmt.Errorf("get the informer of %s: %w: %s", e.kind, errUnlisted, s.Reason)
		}
	}
	return err
}

// askRefused is how often a read that waits looks whether the server has refused it.
const askRefused = 50 * time.Millisecond

// answer waits for the sync of e, or until the server has refused its list: a read returns that
// rather than wait for a right or a kind that may never come.
func (e *entry) answer(ctx context.Context) error {
	for {
		short, cancel := context.WithTimeout(ctx, askRefused)
		err := e.sync(short)
		again := short.Err() != nil // and not, as after a release, for another reason
		cancel()
		if err == nil || !again || ctx.Err() != nil || errors.Is(err, errUnlisted) {
			return err
		}
		scopes := e.informer.Snapshot().Scopes
		if len(scopes) > 0 && !slices.ContainsFunc(scopes, notRefused) {
			return refused(e.kind, scopes[0])
		}
	}
}

// notRefused reports whether a scope has objects, or may soon have them.
func notRefused(s state.Scope) bool {
	return s.Synced || s.State != state.Forbidden && s.State != state.NotServed
}

// refusedError is the server's refusal of the list that a read needs.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

func refused(kind schema.GroupVersionKind, s state.Scope) error {
	if s.State == state.NotServed {
		return &refusedError{&kube.NotServedError{Kind: kind, Err: &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}}}
	}
	return &refusedError{apierrors.NewForbidden(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, "",
		fmt.Errorf("this cached read needs the rights to list and watch the kind: %s", s.Reason))}
}

// use is entry for more than a read: the entry then stays, whatever becomes of the read that has
// created it.
func (c *kinds) use(i id) (e *entry, created bool, err error) {
	for {
		if e, created, err = c.entry(i); err != nil {
			return nil, false, err
		}
		e.used.Store(true)
		if c.slotOf(e) != nil {
			return e, created, nil
		}
	}
}

// slotOf returns the slot of e; nil: e was forgotten.
func (c *kinds) slotOf(e *entry) *slot {
	if s := c.find(e.id); s != nil {
		if is, err := s.open(); err == nil && is == e {
			return s
		}
	}
	return nil
}

// forget removes e, so that nothing waits for it. If somebody uses e, only with evenUsed.
func (c *kinds) forget(e *entry, evenUsed bool) {
	s := c.slotOf(e)
	if s == nil {
		return
	}
	c.mu.Lock()
	gone := c.mu.entries[e.id] == s && (evenUsed || !e.watched && !e.used.Load())
	if gone {
		delete(c.mu.entries, e.id)
	}
	c.mu.Unlock()
	if gone {
		e.informer.Release()
	}
}

func (c *kinds) hasBegun() bool {
	select {
	case <-c.begun:
		return true
	default:
		return false
	}
}

// readable returns the synced entry of i, for a read of obj.
func (c *kinds) readable(ctx context.Context, i id) (*entry, error) {
	if (c.ReaderFailOnMissingInformer || c.limit.bytes > 0) && c.find(i) == nil {
		if c.ReaderFailOnMissingInformer {
			return nil, &cache.ErrResourceNotCached{GVK: i.kind}
		}
		if err := c.afford(ctx, i); err != nil {
			return nil, err
		}
	}
	e, created, err := c.entry(i)
	if err != nil {
		return nil, err
	}
	if created && !e.watched {
		at := caller()
		e.reader.Store(&at)
		c.log.Info("A cached read has started an informer; watch the kind, or set ReaderFailOnMissingInformer to forbid this",
			"kind", i.kind, "caller", at)
	}
	if !c.hasBegun() {
		return nil, &cache.ErrCacheNotStarted{}
	}
	if err := c.await(ctx, e, created, e.answer); err != nil {
		return e, err
	}
	c.announce(e)
	return e, nil
}

// caller returns the first line of the stack outside controller-runtime and this package.
func caller() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		frame, more := frames.Next()
		inside := strings.HasPrefix(frame.Function, "sigs.k8s.io/controller-runtime/") || strings.Contains(frame.Function, ".(*kinds).")
		if !inside || !more {
			return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
		}
	}
}
