// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package factory

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/bridge/clientgo/internal/lifecycle"
	"github.com/flyball-dev/flyball/informer"
)

// Options of a factory. The zero value is suitable for production.
type Options struct {
	// Scope of each informer, without the namespaces for cluster-scoped kinds.
	// Zero: the namespaces of the flyball factory, without a selector.
	Scope informer.Scope
	// Transform of each informer that the factory makes, as in
	// informers.WithTransform. It belongs to the kind, so it is not set, and a
	// message is logged, if the kind was already started elsewhere. Nil: none.
	Transform cache.TransformFunc
	// RunOnStart makes the first Start run the flyball factory until the
	// context of that Start ends; nothing else may run it then. Its error is
	// logged. False: the creator of the factory runs it.
	RunOnStart bool
	// Informers are the options of each flyball informer, except the
	// Identifier, which is derived from Name.
	Informers clientgo.Options
	// Client for the functions passed to InformerFor. Nil: none; such functions
	// must then not use it.
	Client kubernetes.Interface
	// Name under which informers publish client-go's metrics: flyball's to
	// Informers.Metrics, client-go's own, from such functions, to their
	// provider. Shutdown releases it. Nil: none are published. The Snapshot of
	// flyball informers has further metrics.
	Name *cache.InformerName
	// Resync of client-go's own informers, from such functions. 0: never.
	// Flyball informers use the Options of their factory.
	Resync time.Duration
	// Logger for messages to operators. Zero: nothing is logged.
	Logger logr.Logger
}

// New returns the informers of f as client-go's factory. It starts nothing. An
// informer is watched after the next Start, while f runs. Kinds that are not in
// f's scheme have client-go's own informers.
func New(f *informer.SharedInformerFactory, opts Options) informers.SharedInformerFactory {
	return &sharedInformers{
		Factory: lifecycle.New[reflect.Type](f, lifecycle.Options{RunOnStart: opts.RunOnStart, Name: opts.Name, Logger: opts.Logger}),
		flyball: f,
		opts:    opts,
	}
}

type sharedInformers struct {
	*lifecycle.Factory[reflect.Type]
	flyball *informer.SharedInformerFactory
	opts    Options
}

// generated is the factory as seen by client-go's generated accessors: the
// function that they pass makes client-go's own informer and is ignored for
// known kinds.
type generated struct{ *sharedInformers }

func (g generated) InformerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return g.informerFor(obj, newFunc, true)
}

// InformerFor returns the informer of obj's type; the first request for a type
// makes it with newFunc.
func (f *sharedInformers) InformerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return f.informerFor(obj, newFunc, newFunc == nil)
}

func (f *sharedInformers) informerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc, flyball bool) cache.SharedIndexInformer {
	t := reflect.TypeOf(obj)
	k, known := f.kindOf(t)
	if !(known && flyball) && newFunc == nil {
		return f.Informer(t, nil)
	}
	return f.Informer(t, func() cache.SharedIndexInformer { return f.make(t, k, known && flyball, newFunc) })
}

// make makes the informer of a type: flyball's, or that of newFunc.
func (f *sharedInformers) make(t reflect.Type, k kind, flyball bool, newFunc internalinterfaces.NewInformerFunc) (i cache.SharedIndexInformer) {
	if flyball {
		i = k.informer(f.flyball, f.opts.Scope, f.optionsOf(k))
	} else {
		i = newFunc(f.opts.Client, f.opts.Resync)
		if _, flyballs := i.(lifecycle.Starter); !flyballs {
			f.opts.Logger.Info("Using client-go's own informer, because flyball does not know its constructor or its type", "type", t.String())
		}
	}
	if f.opts.Transform == nil {
		return i
	}
	if err := i.SetTransform(f.opts.Transform); err != nil {
		f.opts.Logger.Error(err, "Cannot set the transform; objects are stored as they are", "type", t.String())
	}
	return i
}

// kindOf returns the kind of a type, if flyball knows it.
func (f *sharedInformers) kindOf(t reflect.Type) (k kind, known bool) {
	for _, k := range kinds {
		if k.object() == t {
			return k, k.known(f.flyball)
		}
	}
	return kind{}, false
}

func (f *sharedInformers) optionsOf(k kind) clientgo.Options {
	opts := f.opts.Informers
	opts.Identifier = f.opts.Name.WithResource(k.resource)
	return opts
}

// InformerName returns the Name of the Options.
func (f *sharedInformers) InformerName() *cache.InformerName { return f.opts.Name }

// ForResource returns the informer of a built-in resource, with a generic
// lister.
func (f *sharedInformers) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	for _, k := range kinds {
		if k.resource != resource {
			continue
		}
		i := f.informerFor(k.like, nil, true)
		if i == nil {
			return nil, fmt.Errorf("informer for %s: %s is not in the scheme of the flyball factory; call its package's AddToScheme first", resource, k.object())
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

// WaitForCacheSync is WaitForCacheSyncWithContext for a channel.
func (f *sharedInformers) WaitForCacheSync(stop <-chan struct{}) map[reflect.Type]bool {
	return f.WaitForCacheSyncWithContext(wait.ContextForChannel(stop)).Synced
}

// WaitForCacheSyncWithContext blocks until every started informer has synced,
// or ctx ends. WaitForSync of the flyball factory also returns the reasons.
func (f *sharedInformers) WaitForCacheSyncWithContext(ctx context.Context) cache.SyncResult {
	waited := f.Started()
	var checkers []cache.DoneChecker
	for _, i := range waited {
		checkers = append(checkers, i.HasSyncedChecker())
	}
	cache.WaitFor(ctx, "", checkers...)
	result := cache.SyncResult{Synced: make(map[reflect.Type]bool, len(waited))}
	for t, i := range waited {
		result.Synced[t] = i.HasSynced()
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
