// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

type anyReconcile func(ctx context.Context, obj *unstructured.Unstructured) (reconcile.Result, error)

// watchKind reconciles the objects of a kind until end is called.
func watchKind(mgr *manager.Manager, kind schema.GroupVersionKind, f anyReconcile) (end func(context.Context) error, err error) {
	objects := informer.ForKind(mgr.Informers(), kind)
	c := reconcile.For(objects, f, reconcile.Options{Name: kind.GroupKind().String()})
	if err := mgr.Add(c); err != nil {
		objects.Release()
		return nil, err
	}
	return func(ctx context.Context) error {
		defer objects.Release() // after the controller has ended: a source fails without its informer
		return mgr.Remove(ctx, c)
	}, nil
}

// A controller for a kind that comes and goes.
func ExampleManager_Remove() {
	_ = watchKind
}
