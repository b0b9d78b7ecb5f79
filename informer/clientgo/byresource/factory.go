// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package byresource

import (
	"context"
	"maps"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/metadata/metadatalister"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/clientgo"
)

// Options of a factory. The zero value is fit for production.
type Options struct {
	// Namespace that the informers cover. Empty: those of the flyball factory, or
	// all if TweakListOptions selects. A kind of cluster scope is watched whole.
	Namespace string
	// TweakListOptions selects by labels and fields, as for client-go's filtered
	// factories. It is called once, with empty options. What else it sets is for
	// the flyball factory to decide: a log line says what was left out. Nil: no
	// selection.
	TweakListOptions func(*metav1.ListOptions)
	// Transform of all informers, as metadatainformer.WithTransform. It is the
	// kind's: all who share the informer see what it makes. Nil: none.
	Transform cache.TransformFunc
	// Logger for what a person must know. Zero: nothing is logged.
	Logger logr.Logger
}

// NewDynamic returns the informers of f, of unstructured objects, as
// client-go's dynamic factory. It starts nothing, and neither does its Start:
// run f. Their resync follows the Options of f.
func NewDynamic(f *informer.SharedInformerFactory, opts Options) dynamicinformer.DynamicSharedInformerFactory {
	return newFactory(f, opts, informer.ForResource,
		func(x cache.Indexer, resource schema.GroupVersionResource) cache.GenericLister {
			return dynamiclister.NewRuntimeObjectShim(dynamiclister.New(x, resource))
		})
}

// NewMetadata is NewDynamic for the metadata alone, as client-go's metadata
// factory.
func NewMetadata(f *informer.SharedInformerFactory, opts Options) metadatainformer.SharedInformerFactory {
	return newFactory(f, opts, informer.ForResourceMetadata,
		func(x cache.Indexer, resource schema.GroupVersionResource) cache.GenericLister {
			return metadatalister.NewRuntimeObjectShim(metadatalister.New(x, resource))
		})
}

type (
	forResource[T informer.Object] func(*informer.SharedInformerFactory, schema.GroupVersionResource, ...informer.Scope) *informer.SharedInformer[T]
	listerOf                       func(cache.Indexer, schema.GroupVersionResource) cache.GenericLister
)

// factory has the informers of one representation.
type factory[T informer.Object] struct {
	flyball     *informer.SharedInformerFactory
	forResource forResource[T]
	listerOf    listerOf
	scopes      []informer.Scope // none: those of flyball
	transform   cache.TransformFunc
	log         logr.Logger
	mu          struct {
		sync.Mutex
		informers map[schema.GroupVersionResource]generic
	}
}

func newFactory[T informer.Object](f *informer.SharedInformerFactory, opts Options, of forResource[T], lister listerOf) *factory[T] {
	out := &factory[T]{flyball: f, forResource: of, listerOf: lister, transform: opts.Transform, log: opts.Logger}
	out.mu.informers = make(map[schema.GroupVersionResource]generic)
	scope, ignored := scopeOf(opts)
	if len(ignored) > 0 {
		out.log.Info("The informers select by labels and fields alone: what else TweakListOptions sets has no effect", "ignored", ignored)
	}
	if scope.LabelSelector != "" || scope.FieldSelector != "" || len(scope.Namespaces) > 0 {
		out.scopes = []informer.Scope{scope}
	}
	return out
}

// ForResource is the informer of resource. It is made by the first call.
func (f *factory[T]) ForResource(resource schema.GroupVersionResource) informers.GenericInformer {
	if g, ok := f.find(resource); ok {
		return g
	}
	handle := f.forResource(f.flyball, resource, f.scopes...)
	i := clientgo.NewSharedIndexInformer(handle)
	if f.transform != nil {
		if err := i.SetTransform(f.transform); err != nil {
			f.log.Error(err, "The objects are not transformed", "resource", resource.String())
		}
	}
	g, kept := f.keep(resource, generic{informer: i, lister: f.listerOf(i.GetIndexer(), resource)})
	if !kept {
		handle.Release()
	}
	return g
}

func (f *factory[T]) find(resource schema.GroupVersionResource) (g generic, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, ok = f.mu.informers[resource]
	return g, ok
}

// keep is g, or what another call has kept meanwhile.
func (f *factory[T]) keep(resource schema.GroupVersionResource, g generic) (_ generic, kept bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first, ok := f.mu.informers[resource]; ok {
		return first, false
	}
	f.mu.informers[resource] = g
	return g, true
}

// Start does nothing: the flyball factory is run by its owner.
func (f *factory[T]) Start(<-chan struct{}) {}

// StartWithContext does nothing, as Start.
func (f *factory[T]) StartWithContext(context.Context) {}

// Shutdown returns at once, as Start has started nothing. The informers end with
// the Run of the flyball factory.
func (f *factory[T]) Shutdown() {}

// WaitForCacheSync blocks until every informer that was asked for has synced,
// or stop is closed. WaitForSync of the flyball factory also says why one has
// not.
func (f *factory[T]) WaitForCacheSync(stop <-chan struct{}) map[schema.GroupVersionResource]bool {
	f.mu.Lock()
	waited := maps.Clone(f.mu.informers)
	f.mu.Unlock()
	synced := make(map[schema.GroupVersionResource]bool, len(waited))
	for resource, g := range waited {
		select {
		case <-g.informer.HasSyncedChecker().Done():
		case <-stop:
		}
		synced[resource] = g.informer.HasSynced()
	}
	return synced
}

// generic is an informer with its lister.
type generic struct {
	informer cache.SharedIndexInformer
	lister   cache.GenericLister
}

func (g generic) Informer() cache.SharedIndexInformer { return g.informer }
func (g generic) Lister() cache.GenericLister         { return g.lister }

var (
	_ dynamicinformer.DynamicSharedInformerFactory = (*factory[*unstructured.Unstructured])(nil)
	_ metadatainformer.SharedInformerFactory       = (*factory[*metav1.PartialObjectMetadata])(nil)
	_ informers.GenericInformer                    = generic{}
)
