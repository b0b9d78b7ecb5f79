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
	"github.com/flyball-dev/flyball/kube"
)

// FinalizerWriter writes only the finalizers of an object, and only to the version of
// obj: another version is a conflict. *client.Client implements it.
type FinalizerWriter interface {
	SetFinalizers(ctx context.Context, obj kube.Object, finalizers []string) error
}

func checkFinalizer(name string, w FinalizerWriter, hasCleanup bool) error {
	var problems []error
	if msgs := validation.IsQualifiedName(name); len(msgs) > 0 {
		problems = append(problems, fmt.Errorf("the name is not qualified: %s", strings.Join(msgs, "; ")))
	} else if !strings.Contains(name, "/") {
		problems = append(problems, errors.New("the name has no domain; call it such as \"example.com/website\""))
	}
	if isNil(w) {
		problems = append(problems, errors.New("the writer is nil; give a client, such as mgr.Client()"))
	}
	if !hasCleanup {
		problems = append(problems, errors.New("the cleanup function is nil; give a func(ctx, obj) (Result, error), or leave Finalize out"))
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("finalizer %q: %w", name, errors.Join(problems...))
}

// finalizer holds the arguments of ObjectController.Finalize, and the function that it
// wraps.
type finalizer[T kube.Object] struct {
	name      string
	lister    informer.Lister[T]
	writer    FinalizerWriter
	reconcile func(context.Context, T) (Result, error)
	cleanup   func(context.Context, T) (Result, error)
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

// add continues with the object as it is after the write, if the cache already has it. If it
// does not show own writes, the key is retried: the event of this one may wake nobody (R15).
func (h finalizer[T]) add(ctx context.Context, obj T) (Result, error) {
	key := kube.KeyOf(obj)
	if err := h.writer.SetFinalizers(ctx, obj, append(slices.Clone(obj.GetFinalizers()), h.name)); err != nil {
		return Result{}, IgnoreNotFound(wrap(err, "add finalizer %s to %s", h.name, key))
	}
	now, err := h.lister.Get(key)
	if err != nil {
		return unreadable(err)
	}
	switch {
	case now.GetUID() != obj.GetUID() || !now.GetDeletionTimestamp().IsZero():
		return Result{}, nil // by others, whose event runs the key again
	case !slices.Contains(now.GetFinalizers(), h.name):
		return Retry("the cache does not show the finalizer yet"), nil
	}
	return h.reconcile(ctx, now)
}

// finish removes the finalizer from the object as it is after the cleanup, which may have written
// it. What others have changed in its spec meanwhile, the cleanup has not seen: it runs again.
func (h finalizer[T]) finish(ctx context.Context, obj T) (Result, error) {
	res, err := h.cleanup(ctx, obj)
	if err != nil || res != (Result{}) {
		return res, err
	}
	key := kube.KeyOf(obj)
	now, err := h.lister.Get(key)
	switch {
	case err != nil:
		return unreadable(err)
	case now.GetUID() != obj.GetUID() || !slices.Contains(now.GetFinalizers(), h.name):
		return Result{}, nil // by the cleanup, or by others
	case now.GetGeneration() != obj.GetGeneration():
		return Retry("the spec has changed since the cleanup began"), nil
	}
	rest := slices.DeleteFunc(slices.Clone(now.GetFinalizers()), func(f string) bool { return f == h.name })
	err = h.writer.SetFinalizers(ctx, now, rest)
	return Result{}, IgnoreNotFound(wrap(err, "remove finalizer %s from %s", h.name, key))
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
