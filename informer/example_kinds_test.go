// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

func setupWidgets(mgr *manager.Manager) error {
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	widgets := informer.ForKind(mgr.Informers(), widget)                                           // all fields, unstructured
	secrets := informer.ForMetadata(mgr.Informers(), corev1.SchemeGroupVersion.WithKind("Secret")) // names, labels, owners

	c := reconcile.For(widgets, func(ctx context.Context, obj *unstructured.Unstructured) (reconcile.Result, error) {
		size, _, err := unstructured.NestedInt64(obj.Object, "spec", "size") // shared, read-only, as from any informer
		if err != nil {
			return reconcile.Result{}, reconcile.Terminal(err)
		}
		return reconcile.Result{}, resize(ctx, kube.KeyOf(obj), size)
	}, reconcile.Options{})
	c.Watch(source.Owned(secrets, widgets))
	return mgr.Add(c)
}

func resize(_ context.Context, key reconcile.Key, size int64) error {
	fmt.Println(key, size)
	return nil
}

// Widgets have no Go type here. Of Secrets only the metadata is watched.
func ExampleForKind() {
	mgr, err := manager.New(manager.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := setupWidgets(mgr); err != nil {
		fmt.Println(err)
		return
	}
	if err := mgr.Run(manager.SignalContext()); err != nil {
		fmt.Println(err)
	}
}
