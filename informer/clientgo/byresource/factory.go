// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package byresource

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
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
	// RunOnStart has the first Start run the flyball factory, until the channel of
	// that Start is closed, so that nobody else is to run it. An error of the run is
	// logged. False: who made it runs it.
	RunOnStart bool
	// Informers are the options of each informer, save for the Identifier, which
	// follows from Name.
	Informers clientgo.Options
	// Name under which Informers.Metrics publishes the informers. Shutdown releases
	// it. Nil: they are not published.
	Name *cache.InformerName
	// Logger for what a person must know. Zero: nothing is logged.
	Logger logr.Logger
}

// NewDynamic returns the informers of f, of unstructured objects, as
// client-go's dynamic factory. It starts nothing. An informer that was asked for
// is watched after the next Start, while f runs. Their resync follows the
// Options of f.
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
	scope       informer.Scope
	opts        Options
	running     sync.WaitGroup // what Start started
	mu          struct {
		sync.Mutex
		informers map[schema.GroupVersionResource]*entry
		runs      bool // the flyball factory is run by a Start
		ending    bool
	}
}

// entry is the informer of a resource. The factory's lock guards all but once.
type entry struct {
	once    sync.Once
	generic *generic // nil: it is being made
	started bool
}

func newFactory[T informer.Object](f *informer.SharedInformerFactory, opts Options, of forResource[T], lister listerOf) *factory[T] {
	out := &factory[T]{flyball: f, forResource: of, listerOf: lister, opts: opts}
	out.mu.informers = make(map[schema.GroupVersionResource]*entry)
	scope, ignored := scopeOf(opts)
	if len(ignored) > 0 {
		opts.Logger.Info("The informers select by labels and fields alone: what else TweakListOptions sets has no effect", "ignored", ignored)
	}
	scope.Deferred = true
	out.scope = scope
	return out
}

// ForResource is the informer of resource. It is made by the first call.
func (f *factory[T]) ForResource(resource schema.GroupVersionResource) informers.GenericInformer {
	e := f.entry(resource)
	e.once.Do(func() { f.made(e, f.make(resource)) })
	return *e.generic
}

func (f *factory[T]) make(resource schema.GroupVersionResource) *generic {
	opts := f.opts.Informers
	opts.Identifier = f.opts.Name.WithResource(resource)
	i := clientgo.NewSharedIndexInformer(f.forResource(f.flyball, resource, f.scope), opts)
	if f.opts.Transform != nil {
		if err := i.SetTransform(f.opts.Transform); err != nil {
			f.opts.Logger.Error(err, "The objects are not transformed", "resource", resource.String())
		}
	}
	return &generic{informer: i, lister: f.listerOf(i.GetIndexer(), resource)}
}

func (f *factory[T]) entry(resource schema.GroupVersionResource) *entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.mu.informers[resource]
	if e == nil {
		e = &entry{}
		f.mu.informers[resource] = e
	}
	return e
}

func (f *factory[T]) made(e *entry, g *generic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.generic = g
}

// Start is StartWithContext for a channel.
func (f *factory[T]) Start(stop <-chan struct{}) { f.StartWithContext(wait.ContextForChannel(stop)) }

// StartWithContext starts the informers that have been asked for and have not
// been started. They end with ctx. It does not block. As in client-go, an
// informer that is asked for later waits for the next Start.
func (f *factory[T]) StartWithContext(ctx context.Context) {
	if _, err := logr.FromContext(ctx); err != nil {
		ctx = logr.NewContext(ctx, f.opts.Logger)
	}
	waiting, run, ok := f.begin()
	if !ok {
		return
	}
	defer f.running.Done()
	for _, i := range waiting {
		if own, ok := i.(interface{ Start() error }); ok {
			_ = own.Start() // RunWithContext says what is wrong
		}
		f.running.Go(func() { i.RunWithContext(ctx) })
	}
	if run {
		f.running.Go(func() { f.run(ctx) })
	}
}

// begin takes the informers that are to be started, and whether the flyball
// factory is to be run. Not ok: Shutdown has been called, which else waits until
// running is done.
func (f *factory[T]) begin() (waiting []cache.SharedIndexInformer, run, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.ending {
		return nil, false, false
	}
	f.running.Add(1)
	for _, e := range f.mu.informers {
		if e.generic != nil && !e.started {
			e.started = true
			waiting = append(waiting, e.generic.informer)
		}
	}
	run = f.opts.RunOnStart && !f.mu.runs
	f.mu.runs = f.mu.runs || run
	return waiting, run, true
}

func (f *factory[T]) run(ctx context.Context) {
	if err := f.flyball.Run(ctx); err != nil {
		f.opts.Logger.Error(err, "The flyball factory ended; with RunOnStart nobody else may run it")
	}
}

// Shutdown waits for what Start started, whose channels must be closed for that;
// nothing can be started any more. It releases the Name of the Options.
func (f *factory[T]) Shutdown() {
	f.mu.Lock()
	f.mu.ending = true
	f.mu.Unlock()
	f.running.Wait()
	f.opts.Name.Release()
}

// WaitForCacheSync blocks until every informer that was started has synced, or
// stop is closed. WaitForSync of the flyball factory also says why one has not.
func (f *factory[T]) WaitForCacheSync(stop <-chan struct{}) map[schema.GroupVersionResource]bool {
	waited := f.started()
	synced := make(map[schema.GroupVersionResource]bool, len(waited))
	for resource, i := range waited {
		select {
		case <-i.HasSyncedChecker().Done():
		case <-stop:
		}
		synced[resource] = i.HasSynced()
	}
	return synced
}

func (f *factory[T]) started() map[schema.GroupVersionResource]cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[schema.GroupVersionResource]cache.SharedIndexInformer, len(f.mu.informers))
	for resource, e := range f.mu.informers {
		if e.started {
			out[resource] = e.generic.informer
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

var (
	_ dynamicinformer.DynamicSharedInformerFactory = (*factory[*unstructured.Unstructured])(nil)
	_ metadatainformer.SharedInformerFactory       = (*factory[*metav1.PartialObjectMetadata])(nil)
	_ informers.GenericInformer                    = generic{}
)
