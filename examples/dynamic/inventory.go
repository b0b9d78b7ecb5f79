// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

const summaryName = "inventory" // of the ConfigMap

// setup adds the controllers to mgr; main and the tests call it. It asks the server for the
// kinds of resources.
func setup(mgr *manager.Manager, resources []string) error {
	api, err := discovery.NewDiscoveryClientForConfig(mgr.Config())
	if err != nil {
		return err
	}
	writes, err := dynamic.NewForConfig(mgr.Config())
	if err != nil {
		return err
	}
	summaries := informer.ForKind(mgr.Informers(), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		informer.Scope{FieldSelector: "metadata.name=" + summaryName})
	crds := informer.ForKind(mgr.Informers(), crdKind, informer.Scope{LabelSelector: wantedLabel + "=true"})

	r := inventory{
		kinds:     &kinds{informers: mgr.Informers(), crds: crds.Lister(), recount: make(chan reconcile.Key)},
		summaries: summaries.Lister(),
		writes:    writes.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")),
	}
	r.kinds.mu.counted = make(map[string]counted)
	counting := reconcile.New("inventory", r.reconcile, reconcile.Options{})
	counting.Watch(source.Mapped(summaries, func(u *unstructured.Unstructured) []reconcile.Key {
		return []reconcile.Key{{Name: u.GetNamespace()}}
	}))
	counting.Watch(source.Channel(r.kinds.recount, source.ChannelOptions{Name: "kinds no longer counted"}))
	r.kinds.inventory = counting

	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(api))
	for _, name := range resources {
		if err := r.kinds.followResource(mapper, name); err != nil {
			return err
		}
	}
	following := reconcile.New("kinds", r.kinds.reconcile, reconcile.Options{})
	following.Watch(source.Kind(crds, source.Self))
	if err := mgr.Add(counting); err != nil {
		return err
	}
	return mgr.Add(following)
}

// inventory keeps the summary of each namespace.
type inventory struct {
	kinds     *kinds
	summaries informer.Lister[*unstructured.Unstructured]
	writes    dynamic.NamespaceableResourceInterface
}

// reconcile updates the summary of the namespace key.Name.
func (r inventory) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	summary, err := r.summaries.Get(reconcile.Key{Namespace: key.Name, Name: summaryName})
	if err != nil && !apierrors.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	var said map[string]string
	if err == nil {
		// Unreadable data counts as outdated.
		said, _, _ = unstructured.NestedStringMap(summary.Object, "data")
	}
	counts, unlisted := r.count(key.Name, said)
	err = nil
	switch {
	case maps.Equal(counts, said):
	case len(counts) == 0:
		err = r.writes.Namespace(key.Name).Delete(ctx, summaryName, metav1.DeleteOptions{})
	default:
		err = r.apply(ctx, key.Name, counts)
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return reconcile.Result{}, nil // the namespace is being deleted, with its objects
	}
	if err == nil && unlisted != "" {
		return reconcile.Retry(unlisted + " is not listed yet"), nil
	}
	return reconcile.Result{}, reconcile.IgnoreNotFound(err)
}

// count counts the objects in a namespace. For a kind that is not listed yet, because it is
// not served or permission is missing, it keeps the previous number.
func (r inventory) count(namespace string, said map[string]string) (counts map[string]string, unlisted string) {
	counts = make(map[string]string)
	for name, i := range r.kinds.now() {
		objects, err := i.Lister().List(informer.QueryOptions{Namespace: namespace})
		if err != nil { // it has not synced, or its kind was removed
			unlisted = name
			if before, ok := said[name]; ok {
				counts[name] = before
			}
			continue
		}
		if n := len(objects); n > 0 {
			counts[name] = strconv.Itoa(n)
		}
	}
	return counts, unlisted
}

// apply writes with client-go's dynamic client, which takes unstructured
// objects: a typed one is converted.
func (r inventory) apply(ctx context.Context, namespace string, counts map[string]string) error {
	summary := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: summaryName},
		Data:       counts,
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(summary)
	if err != nil {
		return fmt.Errorf("write the inventory of %q: %w", namespace, err)
	}
	_, err = r.writes.Namespace(namespace).Apply(ctx, summaryName, &unstructured.Unstructured{Object: content},
		metav1.ApplyOptions{FieldManager: "inventory", Force: true})
	return err
}
