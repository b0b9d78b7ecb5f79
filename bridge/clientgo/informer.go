// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// SharedIndexInformer presents a flyball informer as a
// cache.SharedIndexInformer. Make one with NewSharedIndexInformer.
type SharedIndexInformer[T kube.Object] struct {
	informer *informer.SharedInformer[T]
	indexer  *indexer[T]
	opts     Options
	life     life
}

// NewSharedIndexInformer returns i as client-go's interface, and keeps
// managedFields in the objects of i unless the Options strip them. If i has
// started without them, they stay dropped, which is logged: adapt i before it
// starts, or use a handle whose Scope is Deferred. The objects have all fields,
// whatever Fields the Scopes of i have: see KeepAllFields. All users of i can share one
// adapter and its indexers. cache.NewTypedSharedIndexInformer wraps it for
// generated code that wants a type-safe one. With a nil i, methods that return
// an error do so.
func NewSharedIndexInformer[T kube.Object](i *informer.SharedInformer[T], opts Options) *SharedIndexInformer[T] {
	if i == nil {
		i = informer.For[T](nil)
	}
	if len(i.Lister().Fields()) > 0 {
		_ = i.KeepAllFields() // an error is that of the informer, which its methods return
	}
	if opts.StripManagedFields {
		// Other users of the kind may keep them.
	} else if err := i.KeepManagedFields(); err != nil && i.Err() == nil {
		i.Logger().Info("The informer adapted for client-go has no managedFields", "reason", err.Error())
	}
	publish(i, opts)
	return &SharedIndexInformer[T]{informer: i, indexer: newIndexer(i), opts: opts}
}

// AddEventHandler is AddEventHandlerWithOptions with the informer's resync
// period.
func (s *SharedIndexInformer[T]) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(h, cache.HandlerOptions{})
}

// RemoveEventHandler ends a handler: no call of it begins after this returns.
// It is no error if the handler was removed before or belongs to another
// informer.
func (s *SharedIndexInformer[T]) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok {
		return fmt.Errorf("remove handler from the informer of %s: a %T is not what AddEventHandler of this informer returned", s.informer, handle)
	}
	if r.owner == any(s) {
		r.remove()
		s.life.drop(r)
	}
	return nil
}

// GetStore returns the informer's store, which is read-only.
func (s *SharedIndexInformer[T]) GetStore() cache.Store { return s.indexer }

// GetIndexer returns the informer's store with its indexes, which is read-only.
func (s *SharedIndexInformer[T]) GetIndexer() cache.Indexer { return s.indexer }

// AddIndexers adds indexes, also after the start. If a name is taken it returns
// an error and adds none.
func (s *SharedIndexInformer[T]) AddIndexers(indexers cache.Indexers) error {
	if s.IsStopped() {
		return fmt.Errorf("add indexers to the informer of %s: it has stopped already", s.informer)
	}
	return s.indexer.AddIndexers(indexers)
}

// GetController returns a Controller whose Run does nothing; the informer's Run
// runs it.
func (s *SharedIndexInformer[T]) GetController() cache.Controller { return controller{s} }

// Start starts to watch the deferred scopes of a factory's informer.
// RunWithContext does so too.
func (s *SharedIndexInformer[T]) Start() error { return s.informer.Start() }

// Run is RunWithContext for a channel.
func (s *SharedIndexInformer[T]) Run(stop <-chan struct{}) {
	s.RunWithContext(wait.ContextForChannel(stop))
}

// RunWithContext runs the informer until ctx ends, and returns when the calls
// of its handlers have. The informer is then stopped. A second call is logged
// and returns at once. Misuse of the informer is logged too.
//
// A factory runs its informers itself; RunWithContext then only starts deferred
// scopes. When ctx ends the handlers end, but the informer keeps watching, and
// remains readable, until the factory ends or the handle is released.
func (s *SharedIndexInformer[T]) RunWithContext(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx)
	if !s.life.begin() {
		log.Info("The informer has already started and cannot run again", "kind", s.informer.Kind().Kind)
		return
	}
	var err error
	if s.informer.OfFactory() {
		err = s.runOfFactory(ctx)
	} else {
		err = s.informer.Run(ctx)
	}
	if err != nil {
		log.Error(err, "Informer failed")
	}
	s.life.end()
}

func (s *SharedIndexInformer[T]) runOfFactory(ctx context.Context) error {
	if err := s.informer.Start(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-s.informer.Ended():
	}
	return nil
}

// HasSynced reports whether the first list is in the store.
func (s *SharedIndexInformer[T]) HasSynced() bool { return isClosed(s.informer.Synced()) }

// HasSyncedChecker is done when the first list is in the store.
func (s *SharedIndexInformer[T]) HasSyncedChecker() cache.DoneChecker {
	return checker{name: s.name(), done: s.informer.Synced()}
}

// LastSyncResourceVersion returns the resourceVersion that the store has
// reached, the lowest of several scopes. It is empty before the first list, and
// if resourceVersions are not numbers.
func (s *SharedIndexInformer[T]) LastSyncResourceVersion() string {
	return s.informer.Reached().String()
}

// SetWatchErrorHandler is SetWatchErrorHandlerWithContext without a context.
func (s *SharedIndexInformer[T]) SetWatchErrorHandler(h cache.WatchErrorHandler) error {
	if h == nil {
		return s.SetWatchErrorHandlerWithContext(nil)
	}
	return s.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) { h(r, err) })
}

// SetWatchErrorHandlerWithContext calls h with each error of a list or watch.
// The Reflector passed to h only names the informer in logs. The last call
// wins; nil removes h. It is an error after the informer has started.
func (s *SharedIndexInformer[T]) SetWatchErrorHandlerWithContext(h cache.WatchErrorHandlerWithContext) error {
	if h == nil {
		return s.informer.SetErrorHandler(nil)
	}
	var like T
	token := cache.NewReflectorWithOptions(&cache.ListWatch{}, like, nil, cache.ReflectorOptions{
		Name: "flyball", TypeDescription: s.informer.Kind().String(),
	})
	return s.informer.SetErrorHandler(func(ctx context.Context, err error) { h(ctx, token, err) })
}

// SetTransform makes f modify each object before it is stored. f must return an
// object of the same type and key; an object that f refuses becomes
// undecodable. f never receives a cache.DeletedFinalStateUnknown. Nil removes
// the transform. It is an error after the informer has started, even for
// another user.
func (s *SharedIndexInformer[T]) SetTransform(f cache.TransformFunc) error {
	if f == nil {
		return s.informer.SetTransform(nil)
	}
	return s.informer.SetTransform(func(obj T) (T, error) {
		var none T
		out, err := f(obj)
		if err != nil {
			return none, err
		}
		typed, ok := out.(T)
		if !ok {
			return none, fmt.Errorf("the transform returned a %T for a %T; it must return the type of its argument", out, obj)
		}
		return typed, nil
	})
}

// SetShardSelector implements client-go's interface since 0.38. It returns an error for a selector
// that selects: flyball's informers have whole scopes. Nil, or an empty one, selects all.
func (s *SharedIndexInformer[T]) SetShardSelector(selector sharding.Selector) error {
	if selector == nil || selector.Empty() {
		return nil
	}
	return fmt.Errorf("set the shard selector %q of the informer of %s: flyball's informers do not support"+
		" shard selectors; select by labels or fields in its Scope", selector, s.informer)
}

// IsStopped reports whether RunWithContext has returned or the informer's run
// has ended.
func (s *SharedIndexInformer[T]) IsStopped() bool {
	return s.life.hasEnded() || isClosed(s.informer.Ended())
}

func (s *SharedIndexInformer[T]) name() string {
	return fmt.Sprintf("SharedIndexInformer %s", reflect.TypeFor[T]())
}

// checker is a named channel.
type checker struct {
	name string
	done <-chan struct{}
}

func (c checker) Name() string          { return c.name }
func (c checker) Done() <-chan struct{} { return c.done }

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

type controller struct{ cache.SharedInformer }

func (controller) Run(<-chan struct{})            {}
func (controller) RunWithContext(context.Context) {}

var errNilHandler = errors.New("the handler is nil; give a cache.ResourceEventHandler")

var (
	_ cache.SharedIndexInformer = (*SharedIndexInformer[*metav1.PartialObjectMetadata])(nil)
	_ cache.Controller          = controller{}
	_ cache.DoneChecker         = checker{}
)
