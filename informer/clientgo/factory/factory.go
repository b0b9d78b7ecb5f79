// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package factory

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
)

// Options of a factory. The zero value is fit for production.
type Options struct {
	// Scope of each informer; of a kind of cluster scope without the namespaces.
	// Zero: the namespaces of the flyball factory, without a selector.
	Scope informer.Scope
	// Client for the functions that InformerFor is given. Nil: none; a function
	// that uses it must not be given then.
	Client kubernetes.Interface
	// Name under which client-go's own informers, from such functions, publish
	// client-go's metrics. Nil: they publish none. Those of flyball have metrics
	// of their own, in their Snapshot.
	Name *cache.InformerName
	// Resync of client-go's own informers, from such functions. 0: never. Those
	// of flyball follow the Options of their factory.
	Resync time.Duration
	// Logger for what a person must know. Zero: nothing is logged.
	Logger logr.Logger
}

// New returns the informers of f as client-go's factory. It starts nothing,
// and neither does its Start for the informers of f: run f. Kinds that are not
// in f's scheme are client-go's own informers.
func New(f *informer.SharedInformerFactory, opts Options) informers.SharedInformerFactory {
	s := &sharedInformers{flyball: f, opts: opts}
	s.mu.informers = make(map[reflect.Type]entry)
	return s
}

type sharedInformers struct {
	flyball *informer.SharedInformerFactory
	opts    Options
	running sync.WaitGroup // what Start started
	mu      struct {
		sync.Mutex
		informers map[reflect.Type]entry
		ending    bool
	}
}

// entry is the informer of a type.
type entry struct {
	cache.SharedIndexInformer
	foreign, started bool
}

// generated is the factory as client-go's generated accessors see it: the
// function that they give is client-go's own, and is not needed where the kind
// is known.
type generated struct{ *sharedInformers }

func (g generated) InformerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return g.informerFor(obj, newFunc, true)
}

// InformerFor is the informer of obj's type; if nobody has asked for the type
// before, one that newFunc makes.
func (f *sharedInformers) InformerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return f.informerFor(obj, newFunc, newFunc == nil)
}

func (f *sharedInformers) informerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc, flyball bool) cache.SharedIndexInformer {
	t := reflect.TypeOf(obj)
	if e, ok := f.find(t); ok {
		return e.SharedIndexInformer
	}
	e := entry{}
	if flyball {
		e.SharedIndexInformer = f.own(t)
	}
	if e.SharedIndexInformer == nil && newFunc != nil {
		f.opts.Logger.Info("This kind is watched by client-go's own informer, which Start starts: flyball does not know its function or its type", "type", t.String())
		e = entry{SharedIndexInformer: newFunc(f.opts.Client, f.opts.Resync), foreign: true}
	}
	if e.SharedIndexInformer == nil {
		return nil
	}
	return f.keep(t, e).SharedIndexInformer
}

func (f *sharedInformers) find(t reflect.Type) (e entry, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, ok = f.mu.informers[t]
	return e, ok
}

// keep is e, or what another has kept meanwhile.
func (f *sharedInformers) keep(t reflect.Type, e entry) entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first, ok := f.mu.informers[t]; ok {
		return first
	}
	f.mu.informers[t] = e
	return e
}

// own is flyball's informer of a type, nil when its kind is not known.
func (f *sharedInformers) own(t reflect.Type) cache.SharedIndexInformer {
	for _, k := range kinds {
		if k.object == t {
			return k.informer(f.flyball, f.opts.Scope)
		}
	}
	return nil
}

// InformerName is the Name of the Options.
func (f *sharedInformers) InformerName() *cache.InformerName { return f.opts.Name }

// ForResource is the informer of a built-in resource, with a generic lister.
func (f *sharedInformers) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	for _, k := range kinds {
		if k.resource != resource {
			continue
		}
		i := f.informerFor(reflect.New(k.object.Elem()).Interface().(runtime.Object), nil, true)
		if i == nil {
			return nil, fmt.Errorf("informer for %s: %s is not in the scheme of the flyball factory; call its package's AddToScheme first", resource, k.object)
		}
		return generic{i, resource.GroupResource()}, nil
	}
	return nil, fmt.Errorf("informer for %s: it is not a built-in resource; take informer.For of its type and clientgo.NewSharedIndexInformer", resource)
}

type generic struct {
	informer cache.SharedIndexInformer
	resource schema.GroupResource
}

func (g generic) Informer() cache.SharedIndexInformer { return g.informer }
func (g generic) Lister() cache.GenericLister {
	return cache.NewGenericLister(g.informer.GetIndexer(), g.resource)
}

// Start is StartWithContext for a channel.
func (f *sharedInformers) Start(stop <-chan struct{}) {
	f.StartWithContext(wait.ContextForChannel(stop))
}

// StartWithContext starts the informers that are client-go's own and have not
// been started. It does not block.
func (f *sharedInformers) StartWithContext(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.ending {
		return
	}
	for t, e := range f.mu.informers {
		if e.foreign && !e.started {
			f.running.Go(func() { e.RunWithContext(ctx) })
			e.started = true
			f.mu.informers[t] = e
		}
	}
}

// Shutdown waits for what Start started; nothing can be started any more. The
// informers of the flyball factory end with its Run.
func (f *sharedInformers) Shutdown() {
	f.mu.Lock()
	f.mu.ending = true
	f.mu.Unlock()
	f.running.Wait()
}

// WaitForCacheSync is WaitForCacheSyncWithContext for a channel.
func (f *sharedInformers) WaitForCacheSync(stop <-chan struct{}) map[reflect.Type]bool {
	return f.WaitForCacheSyncWithContext(wait.ContextForChannel(stop)).Synced
}

// WaitForCacheSyncWithContext blocks until every informer that was asked for
// has synced, or ctx ends. Those that are client-go's own count once they have
// been started. WaitForSync of the flyball factory also says why one has not.
func (f *sharedInformers) WaitForCacheSyncWithContext(ctx context.Context) cache.SyncResult {
	f.mu.Lock()
	waited := maps.Clone(f.mu.informers)
	f.mu.Unlock()
	maps.DeleteFunc(waited, func(_ reflect.Type, e entry) bool { return e.foreign && !e.started })
	var checkers []cache.DoneChecker
	for _, e := range waited {
		checkers = append(checkers, e.HasSyncedChecker())
	}
	cache.WaitFor(ctx, "", checkers...)
	result := cache.SyncResult{Synced: make(map[reflect.Type]bool, len(waited))}
	for t, e := range waited {
		result.Synced[t] = e.HasSynced()
		if !result.Synced[t] {
			result.Err = context.Cause(ctx)
		}
	}
	return result
}

var (
	_ informers.SharedInformerFactory          = (*sharedInformers)(nil)
	_ internalinterfaces.SharedInformerFactory = generated{}
)
