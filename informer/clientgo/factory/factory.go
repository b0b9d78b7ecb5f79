// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package factory

import (
	"context"
	"fmt"
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
	"github.com/flyball-dev/flyball/informer/clientgo"
)

// Options of a factory. The zero value is fit for production.
type Options struct {
	// Scope of each informer; of a kind of cluster scope without the namespaces.
	// Zero: the namespaces of the flyball factory, without a selector.
	Scope informer.Scope
	// Transform of each informer that the factory makes, as that of
	// informers.WithTransform. It is the kind's, so a kind that has started already
	// for somebody else cannot have it: the Logger is told. Nil: none.
	Transform cache.TransformFunc
	// RunOnStart has the first Start run the flyball factory, until the context of
	// that Start ends, so that nobody else is to run it. An error of the run is
	// logged. False: who made it runs it.
	RunOnStart bool
	// Informers are the options of each of flyball's informers, save for the
	// Identifier, which follows from Name.
	Informers clientgo.Options
	// Client for the functions that InformerFor is given. Nil: none; a function
	// that uses it must not be given then.
	Client kubernetes.Interface
	// Name under which informers publish client-go's metrics: flyball's to
	// Informers.Metrics, client-go's own, from such functions, to where they do.
	// Shutdown releases it. Nil: they publish none. Those of flyball have metrics of
	// their own besides, in their Snapshot.
	Name *cache.InformerName
	// Resync of client-go's own informers, from such functions. 0: never. Those
	// of flyball follow the Options of their factory.
	Resync time.Duration
	// Logger for what a person must know. Zero: nothing is logged.
	Logger logr.Logger
}

// New returns the informers of f as client-go's factory. It starts nothing. An
// informer that was asked for is watched after the next Start, while f runs.
// Kinds that are not in f's scheme are client-go's own informers.
func New(f *informer.SharedInformerFactory, opts Options) informers.SharedInformerFactory {
	s := &sharedInformers{flyball: f, opts: opts}
	s.mu.informers = make(map[reflect.Type]*entry)
	return s
}

type sharedInformers struct {
	flyball *informer.SharedInformerFactory
	opts    Options
	running sync.WaitGroup // what Start started
	mu      struct {
		sync.Mutex
		informers map[reflect.Type]*entry
		runs      bool // the flyball factory is run by a Start
		ending    bool
	}
}

// starter is what flyball's informers are beside client-go's interface.
type starter interface{ Start() error }

// entry is the informer of a type. The factory's lock guards all but once.
type entry struct {
	once     sync.Once
	informer cache.SharedIndexInformer // nil: it is being made
	started  bool
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
	k, known := f.kindOf(t)
	e := f.entry(t, known && flyball || newFunc != nil)
	if e == nil {
		return nil
	}
	e.once.Do(func() { f.made(e, f.make(t, k, known && flyball, newFunc)) })
	return e.informer
}

// make makes the informer of a type: flyball's, or else what newFunc does.
func (f *sharedInformers) make(t reflect.Type, k kind, flyball bool, newFunc internalinterfaces.NewInformerFunc) (i cache.SharedIndexInformer) {
	if flyball {
		i = k.informer(f.flyball, f.opts.Scope, f.optionsOf(k))
	} else {
		i = newFunc(f.opts.Client, f.opts.Resync)
		if _, flyballs := i.(starter); !flyballs {
			f.opts.Logger.Info("This kind is watched by client-go's own informer: flyball does not know its function or its type", "type", t.String())
		}
	}
	if f.opts.Transform == nil {
		return i
	}
	if err := i.SetTransform(f.opts.Transform); err != nil {
		f.opts.Logger.Error(err, "The objects are not transformed", "type", t.String())
	}
	return i
}

func (f *sharedInformers) made(e *entry, i cache.SharedIndexInformer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.informer = i
}

// entry is the one of a type; nil: there is none, and none is to be made.
func (f *sharedInformers) entry(t reflect.Type, add bool) *entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.mu.informers[t]
	if e == nil && add {
		e = &entry{}
		f.mu.informers[t] = e
	}
	return e
}

// kindOf is the kind of a type, if flyball knows it.
func (f *sharedInformers) kindOf(t reflect.Type) (k kind, known bool) {
	for _, k := range kinds {
		if k.object == t {
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

// StartWithContext starts the informers that have been asked for and have not
// been started. They end with ctx. It does not block. As in client-go, an
// informer that is asked for later waits for the next Start.
func (f *sharedInformers) StartWithContext(ctx context.Context) {
	if _, err := logr.FromContext(ctx); err != nil {
		ctx = logr.NewContext(ctx, f.opts.Logger)
	}
	waiting, run, ok := f.begin()
	if !ok {
		return
	}
	defer f.running.Done()
	for _, i := range waiting {
		if own, ok := i.(starter); ok {
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
func (f *sharedInformers) begin() (waiting []cache.SharedIndexInformer, run, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.ending {
		return nil, false, false
	}
	f.running.Add(1)
	for _, e := range f.mu.informers {
		if e.informer != nil && !e.started {
			e.started = true
			waiting = append(waiting, e.informer)
		}
	}
	run = f.opts.RunOnStart && !f.mu.runs
	f.mu.runs = f.mu.runs || run
	return waiting, run, true
}

func (f *sharedInformers) run(ctx context.Context) {
	if err := f.flyball.Run(ctx); err != nil {
		f.opts.Logger.Error(err, "The flyball factory ended; with RunOnStart nobody else may run it")
	}
}

// Shutdown waits for what Start started, whose contexts must end for that;
// nothing can be started any more. It releases the Name of the Options.
func (f *sharedInformers) Shutdown() {
	f.mu.Lock()
	f.mu.ending = true
	f.mu.Unlock()
	f.running.Wait()
	f.opts.Name.Release()
}

// WaitForCacheSync is WaitForCacheSyncWithContext for a channel.
func (f *sharedInformers) WaitForCacheSync(stop <-chan struct{}) map[reflect.Type]bool {
	return f.WaitForCacheSyncWithContext(wait.ContextForChannel(stop)).Synced
}

// WaitForCacheSyncWithContext blocks until every informer that was started has
// synced, or ctx ends. WaitForSync of the flyball factory also says why one has
// not.
func (f *sharedInformers) WaitForCacheSyncWithContext(ctx context.Context) cache.SyncResult {
	waited := f.started()
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

func (f *sharedInformers) started() map[reflect.Type]cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[reflect.Type]cache.SharedIndexInformer, len(f.mu.informers))
	for t, e := range f.mu.informers {
		if e.started {
			out[t] = e.informer
		}
	}
	return out
}

var (
	_ informers.SharedInformerFactory          = (*sharedInformers)(nil)
	_ internalinterfaces.SharedInformerFactory = generated{}
)
