// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package byresource

import (
	"context"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/metadata/metadatalister"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/bridge/clientgo/internal/lifecycle"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// Options of a factory. The zero value is suitable for production.
type Options struct {
	// Namespace of the informers. Empty: those of the flyball factory, or all
	// if TweakListOptions selects. A cluster-scoped kind is watched whole.
	Namespace string
	// TweakListOptions selects by labels and fields, as in client-go's filtered
	// factories. It is called once, with empty options. Other options that it
	// sets are ignored and logged; they belong to the flyball factory. Nil: no
	// selection.
	TweakListOptions func(*metav1.ListOptions)
	// Transform of all informers, as in metadatainformer.WithTransform. It
	// belongs to the kind: all users of the informer see its results. Nil:
	// none.
	Transform cache.TransformFunc
	// RunOnStart makes the first Start run the flyball factory until the
	// channel of that Start is closed; nothing else may run it then. Its error
	// is logged. False: the creator of the factory runs it.
	RunOnStart bool
	// Informers are the options of each informer, except the Identifier, which
	// is derived from Name.
	Informers clientgo.Options
	// Name under which Informers.Metrics publishes the informers. Shutdown
	// releases it. Nil: not published.
	Name *cache.InformerName
	// Logger for messages to operators. Zero: nothing is logged.
	Logger logr.Logger
}

// NewDynamic returns the informers of f, of unstructured objects, as
// client-go's dynamic factory. It starts nothing. An informer is watched after
// the next Start, while f runs. The Options of f determine the resync.
func NewDynamic(f *informer.SharedInformerFactory, opts Options) dynamicinformer.DynamicSharedInformerFactory {
	return newFactory(f, opts, dynamicWait.WaitForCacheSyncWithContext, informer.ForResource,
		func(x cache.Indexer, resource schema.GroupVersionResource) cache.GenericLister {
			return dynamiclister.NewRuntimeObjectShim(dynamiclister.New(x, resource))
		})
}

// NewMetadata is NewDynamic for metadata, as client-go's metadata factory.
func NewMetadata(f *informer.SharedInformerFactory, opts Options) metadatainformer.SharedInformerFactory {
	return newFactory(f, opts, metadataWait.WaitForCacheSyncWithContext, informer.ForResourceMetadata,
		func(x cache.Indexer, resource schema.GroupVersionResource) cache.GenericLister {
			return metadatalister.NewRuntimeObjectShim(metadatalister.New(x, resource))
		})
}

type (
	forResource[T kube.Object] func(*informer.SharedInformerFactory, schema.GroupVersionResource, ...informer.Scope) *informer.SharedInformer[T]
	listerOf                   func(cache.Indexer, schema.GroupVersionResource) cache.GenericLister
)

// factory has the informers of one representation. R is the result of WaitForCacheSyncWithContext.
type factory[T kube.Object, R result] struct {
	*lifecycle.Factory[schema.GroupVersionResource]
	flyball     *informer.SharedInformerFactory
	forResource forResource[T]
	listerOf    listerOf
	scope       informer.Scope
	opts        Options
}

// newFactory takes R from the type of a method.
func newFactory[T kube.Object, I any, R result](f *informer.SharedInformerFactory, opts Options,
	_ func(I, context.Context) R, of forResource[T], lister listerOf) *factory[T, R] {
	out := &factory[T, R]{
		Factory: lifecycle.New[schema.GroupVersionResource](f, lifecycle.Options{RunOnStart: opts.RunOnStart, Name: opts.Name, Logger: opts.Logger}),
		flyball: f, forResource: of, listerOf: lister, opts: opts,
	}
	scope, ignored := scopeOf(opts)
	if len(ignored) > 0 {
		opts.Logger.Info("Ignoring options of TweakListOptions other than label and field selectors", "ignored", ignored)
	}
	scope.Deferred = true
	out.scope = scope
	return out
}

// ForResource returns the informer of resource, created by the first call.
func (f *factory[T, R]) ForResource(resource schema.GroupVersionResource) informers.GenericInformer {
	i := f.Informer(resource, func() cache.SharedIndexInformer { return f.make(resource) })
	return generic{informer: i, lister: f.listerOf(i.GetIndexer(), resource)}
}

func (f *factory[T, R]) make(resource schema.GroupVersionResource) cache.SharedIndexInformer {
	opts := f.opts.Informers
	opts.Identifier = f.opts.Name.WithResource(resource)
	i := clientgo.NewSharedIndexInformer(f.forResource(f.flyball, resource, f.scope), opts)
	if f.opts.Transform != nil {
		if err := i.SetTransform(f.opts.Transform); err != nil {
			f.opts.Logger.Error(err, "Cannot set the transform; objects are stored as they are", "resource", resource.String())
		}
	}
	return i
}

// WaitForCacheSync blocks until every started informer has synced, or stop is
// closed. WaitForSync of the flyball factory also returns the reasons.
func (f *factory[T, R]) WaitForCacheSync(stop <-chan struct{}) map[schema.GroupVersionResource]bool {
	return f.wait(wait.ContextForChannel(stop)).Synced
}

// WaitForCacheSyncWithContext blocks until every started informer has synced, or ctx ends.
func (f *factory[T, R]) WaitForCacheSyncWithContext(ctx context.Context) R { return R(f.wait(ctx)) }

func (f *factory[T, R]) wait(ctx context.Context) syncResult {
	waited := f.Started()
	out := syncResult{Synced: make(map[schema.GroupVersionResource]bool, len(waited))}
	for resource, i := range waited {
		select {
		case <-i.HasSyncedChecker().Done():
		case <-ctx.Done():
		}
		if out.Synced[resource] = i.HasSynced(); !out.Synced[resource] {
			out.Err = context.Cause(ctx)
		}
	}
	return out
}

// generic is an informer with its lister.
type generic struct {
	informer cache.SharedIndexInformer
	lister   cache.GenericLister
}

func (g generic) Informer() cache.SharedIndexInformer { return g.informer }
func (g generic) Lister() cache.GenericLister         { return g.lister }

var _ informers.GenericInformer = generic{}
