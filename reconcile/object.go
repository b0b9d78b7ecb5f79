// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/source"
)

// ObjectController is a Controller of the objects of one kind. Create it with For.
type ObjectController[T kube.Object] struct {
	*Controller[Key]
	kind      func() schema.GroupVersionKind // nil: the informer is nil
	lister    informer.Lister[T]
	f         func(ctx context.Context, obj T) (Result, error)
	finalizer *finalizer[T] // nil: none; immutable once the run has begun
}

// For returns a controller that calls f with each object of an informer: when the
// controller starts, when the object changes, also by f (see Options.OmitOwnEvents), when a
// source of Watch adds its key, and when a Result asks for it. Func explains the results.
//
//	c := reconcile.For(websites, r.reconcile, reconcile.Options{})
//	c.Finalize("example.com/website", mgr.Client(), r.cleanUp)
//	c.Watch(source.Owned(deployments, websites))
//	return mgr.Add(c)
//
// Logs, metrics and errors name it by its kind in lower case, such as "website", unless
// Options.Name is set. It watches the objects itself, so they need no Watch;
// Options.Predicate filters their events.
//
// f gets the object from the cache: it is shared, so call kube.Copy before any
// change, and it is never older than an own write. f is not called for a key without an
// object:
//
//	NotFound                             done; owner references delete owned objects, Finalize
//	                                     handles the rest
//	*kube.UndecodableError           a terminal error; the next version is an event
//	*kube.OutOfScopeError,           a terminal error: a source has added a key that
//	*kube.NamespaceError             the informer cannot have
//	*kube.NotSyncedError             a Retry; only for a scope that has joined since
//	*kube.ReleasedError              a terminal error
//
// An object may be deleted while f runs. If the server then says to a write, such as that of
// the status, that it does not have the very object, that is not an error: the deletion ends
// the reconcile, or if the cache does not have it yet, counts as a conflict (R18).
//
// f is also called for objects that are being deleted, unless Finalize is used: their
// deletionTimestamp is set. If f creates children, it should return then.
//
// A nil informer or f is remembered as by New. For other keys, or a controller that
// must act when its object is gone, use New.
func For[T kube.Object](objects *informer.SharedInformer[T], f func(ctx context.Context, obj T) (Result, error), opts Options) *ObjectController[T] {
	o := &ObjectController[T]{f: f}
	name := "unknown"
	if objects != nil {
		o.kind, o.lister = objects.Kind, objects.Lister()
		name = strings.ToLower(objects.Kind().Kind)
	}
	name = cmp.Or(opts.Name, name)
	var preds []source.Predicate
	if opts.Predicate != nil {
		preds = append(preds, opts.Predicate)
	}
	opts.Name, opts.Predicate = "", nil
	run := o.run
	if f == nil {
		run = nil // New reports it
	}
	o.Controller = New(name, run, opts)
	if objects != nil {
		o.absent = absentIn(o.lister, o.Controller)
		o.uid = uidIn(o.lister, o.add)
	}
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

// checkOwners returns an error if s adds keys of another kind.
func (o *ObjectController[T]) checkOwners(s source.Source[Key]) error {
	if isNil(s) || o.kind == nil {
		return nil // Controller.Watch reports it
	}
	owners, own := source.SnapshotOf(s).Owners, o.kind().GroupKind()
	if owners == own || owners.Kind == "" {
		return nil
	}
	if owners.Kind == strings.ToLower(owners.Kind) || own.Kind == strings.ToLower(own.Kind) {
		return nil // resources, whose kinds are not discovered yet
	}
	return fmt.Errorf("watch %s: it names keys of owners of kind %s, and the controller is for kind %s; write source.Owned(children, owners)", s, owners.Kind, own.Kind)
}

// Finalize makes the deletion of objects wait for cleanup, with a finalizer of that
// name. w writes the finalizers: a client of package client, such as mgr.Client().
//
//	no deletionTimestamp, finalizer missing  ──▶ add it, then f
//	no deletionTimestamp, finalizer there    ──▶ f
//	deletionTimestamp, finalizer there       ──▶ cleanup; when done, remove it
//	deletionTimestamp, finalizer missing     ──▶ nothing: others hold the object
//
// f never gets an object that lacks the finalizer or is being deleted, so everything
// that f creates outside the cluster is cleaned up. Each step depends only on the
// object, so the process may end between any two. cleanup runs at least once and must
// accept that its work is already done. It is done when it returns the zero Result and
// no error; any other result, such as After while a cloud is still deleting, keeps the
// object waiting. It may write the object, such as its status; if the spec has changed
// when it is done, it runs again. A kind without metadata.generation, such as ConfigMap, does not
// show that: what others change while cleanup runs, cleanup does not see.
//
// The name is qualified, such as "example.com/website". A bad name, nil arguments, a
// second call and a call after the run has begun are remembered: Err returns them, and
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

func (o *ObjectController[T]) run(ctx context.Context, key Key) (Result, error) {
	obj, err := o.lister.Get(key)
	if err != nil {
		return unreadable(err)
	}
	f := o.f
	if o.finalizer != nil {
		f = o.finalizer.step
	}
	res, err := f(ctx, obj)
	if !every(err, func(err error) bool { return isNotFoundOf(o.kind(), obj, err) }) {
		return res, err
	}
	switch now, missing := o.lister.Get(key); {
	case apierrors.IsNotFound(missing) || missing == nil && now.GetUID() != obj.GetUID():
		return Result{}, nil
	case o.queue.NumRequeues(key) < earlyRetries:
		return Result{}, &goneError{err}
	}
	return res, err // the cache should have the deletion by now; it is another object, or a fault
}

// isNotFoundOf reports whether the server said that it does not have obj. It names the
// resource, whose plural is not a function of the kind, but begins like it.
func isNotFoundOf(kind schema.GroupVersionKind, obj kube.Object, err error) bool {
	if !isNotFound(err) {
		return false
	}
	details := err.(apierrors.APIStatus).Status().Details
	singular := strings.TrimSuffix(strings.ToLower(kind.Kind), "y") // policies, gateways
	return details != nil && details.Name == obj.GetName() && details.Group == kind.Group && strings.HasPrefix(details.Kind, singular)
}

// uidIn returns the UID of the object of a key, as far as a Lister has it. If it is not known whether a
// write has made the object, the key is added when it is.
func uidIn[T kube.Object](lister informer.Lister[T], add func(Key, source.Cause)) func(key Key) (uid string, ok bool) {
	return func(key Key) (string, bool) {
		obj, err := lister.Get(key)
		if e, unsettled := errors.AsType[*kube.NotSettledError](err); unsettled && e.When != nil {
			e.When(func() { add(key, source.Cause{Source: source.Cache}) })
			return "", false
		}
		if err != nil && !is[*kube.UndecodableError](err) || isNil(obj) {
			return "", false
		}
		return string(obj.GetUID()), true
	}
}

// unreadable returns the result for a key whose object the Lister cannot return.
func unreadable(err error) (Result, error) {
	if e, ok := errors.AsType[*kube.NotSyncedError](err); ok {
		return Retry("the cache of " + e.Kind.Kind + " has not synced"), nil
	}
	if is[*kube.UndecodableError](err) || is[*kube.OutOfScopeError](err) || is[*kube.ReleasedError](err) {
		return Result{}, Terminal(err)
	}
	return Result{}, IgnoreNotFound(err)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
