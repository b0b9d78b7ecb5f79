// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/source"
)

// ObjectController is a Controller of the objects of one kind. Make it with For.
type ObjectController[T informer.Object] struct {
	*Controller[Key]
	kind      func() schema.GroupVersionKind // nil: the informer is
	lister    informer.Lister[T]
	f         func(ctx context.Context, obj T) (Result, error)
	finalizer *finalizer[T] // nil: none; does not change once the run has begun
}

// For returns a controller that calls f with each object of an informer: when the
// controller starts, when the object changes, when a source of Watch names it, and
// when a Result asks for it. What the results mean is explained at Func.
//
//	c := reconcile.For(websites, r.reconcile, reconcile.Options{})
//	c.Finalize("example.com/website", mgr.Client(), r.cleanUp)
//	c.Watch(source.Owned(deployments, websites))
//	return mgr.Add(c)
//
// Logs, metrics and errors call it by its kind in lower case, such as "website", unless
// Options.Name gives another name. It watches objects itself, so they need no Watch;
// Options.Predicate says which of their events matter.
//
// f gets the object from the cache: shared, so that informer.Copy comes before any
// change, and never older than an own write. It is not called for a key without an
// object:
//
//	NotFound                             done; owned objects go by their owner references,
//	                                     the rest by Finalize
//	*informer.UndecodableError           a terminal error; the next version is an event
//	*informer.OutOfScopeError,           a terminal error: a source has named a key that
//	*informer.NamespaceError             the informer cannot have
//	*informer.NotSyncedError             a Retry; only a scope that has joined since
//	*informer.ReleasedError              a terminal error
//
// f is called for objects that are being deleted, too, unless Finalize is used: their
// deletionTimestamp is set. If f makes children it should return then.
//
// A nil informer or f is remembered as by New. A controller of other keys, or one that
// has to act when its object is gone, is made by New.
func For[T informer.Object](objects *informer.SharedInformer[T], f func(ctx context.Context, obj T) (Result, error), opts Options) *ObjectController[T] {
	o := &ObjectController[T]{f: f}
	name := "unknown"
	if objects != nil {
		o.kind, o.lister = objects.Kind, objects.Lister()
		name = strings.ToLower(objects.Kind().Kind)
	}
	name = cmp.Or(opts.Name, name)
	preds := []source.Predicate{opts.Predicate}
	if opts.Predicate == nil {
		preds = nil
	}
	opts.Name, opts.Predicate = "", nil
	run := o.run
	if f == nil {
		run = nil // New says so
	}
	o.Controller = New(name, run, opts)
	o.Controller.Watch(source.Kind(objects, source.Self, preds...))
	return o
}

// Watch is Controller.Watch. A source.Owned whose owners are of another kind than the
// controller's is misuse: its arguments may be in the wrong order.
func (o *ObjectController[T]) Watch(sources ...source.Source[Key]) {
	for _, s := range sources {
		if err := o.checkOwners(s); err != nil {
			o.misused(err)
			continue
		}
		o.Controller.Watch(s)
	}
}

// checkOwners is what is wrong with s, which may name keys of another kind.
func (o *ObjectController[T]) checkOwners(s source.Source[Key]) error {
	if isNil(s) || o.kind == nil {
		return nil // Controller.Watch says so
	}
	owners, own := source.SnapshotOf(s).Owners, o.kind().GroupKind()
	if owners == own || owners.Kind == "" {
		return nil
	}
	if owners.Kind == strings.ToLower(owners.Kind) || own.Kind == strings.ToLower(own.Kind) {
		return nil // resources, whose kinds discovery has not told yet
	}
	return fmt.Errorf("watch %s: it names keys of owners of kind %s, and the controller is for kind %s; write source.Owned(children, owners)", s, owners.Kind, own.Kind)
}

// Finalize has deletion of the objects wait for cleanup, by a finalizer of that name,
// which w writes: a client of package client, such as mgr.Client().
//
//	no deletionTimestamp, finalizer missing  ──▶ add it, then f
//	no deletionTimestamp, finalizer there    ──▶ f
//	deletionTimestamp, finalizer there       ──▶ cleanup; when done, remove it
//	deletionTimestamp, finalizer missing     ──▶ nothing: others hold the object
//
// f never gets an object that lacks the finalizer or is being deleted, so whatever f
// makes outside the cluster is cleaned up. Each step follows from what the object shows,
// so the process may end between any two. cleanup runs at least once and must accept
// that its work is done already. It is done when it returns the zero Result and no error;
// anything else, such as After while a cloud is still deleting, keeps the object waiting.
//
// The name is a qualified one, such as "example.com/website". A bad name, nil arguments,
// a second call and a call after the run has begun are remembered: Err returns them, and
// Run if it has not begun.
func (o *ObjectController[T]) Finalize(name string, w FinalizerWriter, cleanup func(ctx context.Context, obj T) (Result, error)) {
	err := checkFinalizer(name, w, cleanup != nil)
	if err == nil {
		err = o.setFinalizer(&finalizer[T]{name: name, lister: o.lister, writer: w, reconcile: o.f, cleanup: cleanup})
	}
	if err != nil {
		o.misused(err)
	}
}

func (o *ObjectController[T]) setFinalizer(f *finalizer[T]) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.mu.began != 0:
		return fmt.Errorf("finalizer %q: the controller has begun to run; call Finalize before", f.name)
	case o.finalizer != nil:
		return fmt.Errorf("finalizer %q: the controller has the finalizer %q; use one for all that is cleaned up", f.name, o.finalizer.name)
	}
	o.finalizer = f
	return nil
}

// run is the Func of the controller.
func (o *ObjectController[T]) run(ctx context.Context, key Key) (Result, error) {
	obj, err := o.lister.Get(key)
	if err != nil {
		return unreadable(err)
	}
	if o.finalizer != nil {
		return o.finalizer.step(ctx, obj)
	}
	return o.f(ctx, obj)
}

// unreadable is what follows when a Lister has no object to give.
func unreadable(err error) (Result, error) {
	if e, ok := errors.AsType[*informer.NotSyncedError](err); ok {
		return Retry("the cache of " + e.Kind.Kind + " has not synced"), nil
	}
	if is[*informer.UndecodableError](err) || is[*informer.OutOfScopeError](err) || is[*informer.NamespaceError](err) || is[*informer.ReleasedError](err) {
		return Result{}, Terminal(err)
	}
	return Result{}, IgnoreNotFound(err)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
