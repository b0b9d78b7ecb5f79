// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyball-dev/flyball/informer"
)

// FinalizerWriter writes the finalizers of an object and nothing else, and only onto
// the version of obj: another one is a conflict. A client of package client is one.
type FinalizerWriter interface {
	SetFinalizers(ctx context.Context, obj informer.Object, finalizers []string) error
}

// Cleanup frees what an object has outside the cluster, or what its owner references
// do not free. It is done with the zero Result and no error; anything else, such as
// After while a cloud is still deleting, keeps the object waiting.
type Cleanup[T informer.Object] func(ctx context.Context, obj T) (Result, error)

// WithFinalizer is Object with a finalizer, by which deletion waits for cleanup.
//
//	no deletionTimestamp, finalizer missing  ──▶ add it, then f
//	no deletionTimestamp, finalizer there    ──▶ f
//	deletionTimestamp, finalizer there       ──▶ cleanup, when done remove it
//	deletionTimestamp, finalizer missing     ──▶ nothing: others hold the object
//
// f never sees an object that lacks the finalizer, so whatever f makes outside will
// be cleaned up. Each step is taken from what the object shows, so the process may
// end between any two: at worst cleanup runs again. It runs at least once and must
// bear to find its work done. If the object is gone when the finalizer is removed,
// that is done as well.
//
// name must be a qualified name, such as "example.com/website". A bad name and nil
// arguments are a terminal error of each reconcile, that says so.
func WithFinalizer[T informer.Object](name string, lister informer.Lister[T], w FinalizerWriter, f func(ctx context.Context, obj T) (Result, error), cleanup Cleanup[T]) Func[Key] {
	if misuse := checkFinalizer(name, w, f != nil, cleanup != nil); misuse != nil {
		return func(context.Context, Key) (Result, error) { return Result{}, Terminal(misuse) }
	}
	h := finalizer[T]{name: name, lister: lister, writer: w, reconcile: f, cleanup: cleanup}
	return Object(lister, h.step)
}

func checkFinalizer(name string, w FinalizerWriter, hasReconcile, hasCleanup bool) error {
	var problems []error
	if msgs := validation.IsQualifiedName(name); len(msgs) > 0 {
		problems = append(problems, fmt.Errorf("the name is not qualified: %s", strings.Join(msgs, "; ")))
	} else if !strings.Contains(name, "/") {
		problems = append(problems, errors.New("the name has no domain; call it such as \"example.com/website\""))
	}
	if w == nil {
		problems = append(problems, errors.New("the writer is nil; give a client, such as mgr.Client()"))
	}
	if !hasReconcile {
		problems = append(problems, errors.New("the reconcile function is nil; give a func(ctx, obj) (Result, error)"))
	}
	if !hasCleanup {
		problems = append(problems, errors.New("the cleanup function is nil; without one use reconcile.Object"))
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("finalizer %q: %w", name, errors.Join(problems...))
}

type finalizer[T informer.Object] struct {
	name      string
	lister    informer.Lister[T]
	writer    FinalizerWriter
	reconcile func(context.Context, T) (Result, error)
	cleanup   Cleanup[T]
}

func (h finalizer[T]) step(ctx context.Context, obj T) (Result, error) {
	present := slices.Contains(obj.GetFinalizers(), h.name)
	switch {
	case obj.GetDeletionTimestamp().IsZero() && present:
		return h.reconcile(ctx, obj)
	case obj.GetDeletionTimestamp().IsZero():
		return h.add(ctx, obj)
	case present:
		return h.finish(ctx, obj)
	}
	return Result{}, nil
}

// add goes on with the object as it is after the write, if the cache shows it
// already. Otherwise the change of finalizers is an event, and that goes on.
func (h finalizer[T]) add(ctx context.Context, obj T) (Result, error) {
	key := informer.KeyOf(obj)
	if err := h.writer.SetFinalizers(ctx, obj, append(slices.Clone(obj.GetFinalizers()), h.name)); err != nil {
		return Result{}, IgnoreNotFound(wrap(err, "add finalizer %s to %s", h.name, key))
	}
	now, err := h.lister.Get(key)
	if err != nil {
		return Result{}, unreadable(err)
	}
	if now.GetUID() != obj.GetUID() || !now.GetDeletionTimestamp().IsZero() || !slices.Contains(now.GetFinalizers(), h.name) {
		return Result{}, nil
	}
	return h.reconcile(ctx, now)
}

func (h finalizer[T]) finish(ctx context.Context, obj T) (Result, error) {
	res, err := h.cleanup(ctx, obj)
	if err != nil || res != (Result{}) {
		return res, err
	}
	rest := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == h.name })
	err = h.writer.SetFinalizers(ctx, obj, rest)
	return Result{}, IgnoreNotFound(wrap(err, "remove finalizer %s from %s", h.name, informer.KeyOf(obj)))
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
