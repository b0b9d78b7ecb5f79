// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/source"
)

// Source makes a client-go informer a source of keys, for a controller that moves
// to flyball before its informers do. Make it with NewSource.
type Source[K comparable] struct {
	name     string
	informer cache.SharedInformer
	mapper   source.Mapper[K]
	err      error
	begun    atomic.Bool
	synced   chan struct{}
}

// NewSource returns a source of i's events for a controller: m returns the keys
// of the old and of the new object. Run registers a handler and removes it at
// the end; it does not run i. The name is for logs and states. A nil informer
// or mapper is misuse, returned by Run. Own writes are visible when client-go's watch delivers them, and an
// informer that cannot list never syncs and gives no reason.
func NewSource[K comparable](name string, i cache.SharedInformer, m source.Mapper[K]) *Source[K] {
	s := &Source[K]{name: "client-go informer " + name, informer: i, mapper: m, synced: make(chan struct{})}
	switch {
	case name == "":
		s.err = s.errorf("the name is empty; give the kind, such as Deployment")
	case i == nil:
		s.err = s.errorf("the informer is nil; give one of a SharedInformerFactory")
	case m == nil:
		s.err = s.errorf("the mapper is nil; give source.Self")
	}
	return s
}

func (s *Source[K]) errorf(format string, args ...any) error {
	return fmt.Errorf("source %s: %w", s.name, fmt.Errorf(format, args...))
}

// String names the source.
func (s *Source[K]) String() string { return s.name }

// Err returns the misuse that the source remembers, or nil.
func (s *Source[K]) Err() error { return s.err }

// Synced is closed when the keys of the initial objects have been added.
func (s *Source[K]) Synced() <-chan struct{} { return s.synced }

// Run adds the keys of the informer's events until ctx ends, and then waits for
// the event being handled. It is an error if the informer accepts no more
// handlers.
func (s *Source[K]) Run(ctx context.Context, add func(K, source.Cause)) error {
	switch {
	case s.err != nil:
		return s.err
	case !s.begun.CompareAndSwap(false, true):
		return s.errorf("run: it is running or has already run; make a new one")
	}
	f := feed[K]{source: s, over: func() bool { return ctx.Err() != nil }, add: add, log: textlog.Throttled(logr.FromContextOrDiscard(ctx)).WithValues("source", s.name)}
	handle, err := s.informer.AddEventHandler(f)
	if err != nil {
		return s.errorf("add handler: %w", err)
	}
	select {
	case <-handle.HasSyncedChecker().Done():
		close(s.synced)
		<-ctx.Done()
	case <-ctx.Done():
	}
	if err := cache.ShutDownEventHandler(s.informer, handle); err != nil {
		return s.errorf("remove handler: %w", err)
	}
	return nil
}

// feed is one run of an Source, as client-go's handler. Events that
// still wait when the run ends are dropped.
type feed[K comparable] struct {
	source *Source[K]
	over   func() bool
	add    func(K, source.Cause)
	log    logr.Logger
}

func (f feed[K]) OnAdd(obj any, initial bool) {
	f.forward(kube.Event[kube.Object]{Type: kube.Added, Initial: initial}, nil, obj)
}

func (f feed[K]) OnUpdate(before, after any) {
	f.forward(kube.Event[kube.Object]{Type: kube.Updated}, before, after)
}

func (f feed[K]) OnDelete(obj any) { f.forward(kube.Event[kube.Object]{Type: kube.Deleted}, obj, nil) }

// forward adds the keys of both states, each once. If the mapper panics, the
// remaining keys of this event are lost.
func (f feed[K]) forward(e kube.Event[kube.Object], before, after any) {
	if f.over() {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			f.log.Error(fmt.Errorf("panic: %v", p), "Mapper panicked; keys of this event are lost",
				"object", e.Key, "stack", string(debug.Stack()))
		}
	}()
	e.Old, e.New = f.object(before), f.object(after)
	for _, obj := range []kube.Object{e.Old, e.New} {
		if obj != nil {
			e.Key = kube.KeyOf(obj)
		}
	}
	if e.Old != nil && e.New != nil {
		e.Resync = e.Old.GetResourceVersion() != "" && e.Old.GetResourceVersion() == e.New.GetResourceVersion()
	}
	cause := source.CauseOf(f.source.name, schema.GroupKind{}, e)
	added := make(map[K]bool)
	for _, obj := range []kube.Object{e.Old, e.New} {
		if obj == nil {
			continue
		}
		for key := range f.source.mapper(obj) {
			if !added[key] {
				added[key] = true
				f.add(key, cause)
			}
		}
	}
}

// object converts client-go's object, nil if there is none. A deletion without
// a known last state still has its name.
func (f feed[K]) object(obj any) kube.Object {
	switch obj := obj.(type) {
	case nil:
		return nil
	case kube.Object:
		return obj
	case cache.DeletedFinalStateUnknown:
		if last, ok := obj.Obj.(kube.Object); ok {
			return last
		}
		if namespace, name, err := cache.SplitMetaNamespaceKey(obj.Key); err == nil {
			return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		}
	}
	f.log.Error(errNoObject, "Ignoring an event without a Kubernetes object", "type", fmt.Sprintf("%T", obj))
	return nil
}

var errNoObject = errors.New("the informer delivered something that is not a Kubernetes object")

var _ source.Source[source.Key] = (*Source[source.Key])(nil)
