// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

const wantedLabel = "example.flyball.dev/inventory"

var crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// definition has the fields of a CustomResourceDefinition that are read.
type definition struct {
	Spec struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Kind string `json:"kind"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
		} `json:"versions"`
	} `json:"spec"`
}

// counted is the metadata of all objects of a kind.
type counted = *informer.SharedInformer[*metav1.PartialObjectMetadata]

// kinds are the counted kinds, by the name of their definition or resource.
type kinds struct {
	informers *informer.SharedInformerFactory
	crds      informer.Lister[*unstructured.Unstructured]
	inventory *reconcile.Controller[reconcile.Key] // receives events of their objects
	recount   chan reconcile.Key                   // namespaces with a kind that is no longer counted
	mu        struct {
		sync.Mutex
		counted map[string]counted
	}
}

// reconcile starts or stops counting the kind of one definition.
func (k *kinds) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	crd, err := k.crds.Get(key)
	switch {
	case apierrors.IsNotFound(err): // or without the label
		return reconcile.Result{}, k.drop(ctx, key.Name)
	case err != nil:
		return reconcile.Result{}, err
	}
	kind, err := kindOf(crd)
	if err != nil {
		return reconcile.Result{}, reconcile.Terminal(err)
	}
	if i, ok := k.now()[key.Name]; ok && i.Kind() != kind {
		if err := k.drop(ctx, key.Name); err != nil {
			return reconcile.Result{}, err
		}
	}
	k.follow(key.Name, kind)
	return reconcile.Result{}, nil
}

// kindOf converts a definition, which has no Go type here, to the fields that are needed.
func kindOf(crd *unstructured.Unstructured) (schema.GroupVersionKind, error) {
	var d definition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, &d); err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("read definition %s: %w", crd.GetName(), err)
	}
	if d.Spec.Scope != "Namespaced" {
		return schema.GroupVersionKind{}, fmt.Errorf("count %s: its objects are in no namespace", crd.GetName())
	}
	for _, v := range d.Spec.Versions {
		if v.Served {
			return schema.GroupVersionKind{Group: d.Spec.Group, Version: v.Name, Kind: d.Spec.Names.Kind}, nil
		}
	}
	return schema.GroupVersionKind{}, fmt.Errorf("count %s: no version of it is served", crd.GetName())
}

// followResource counts a resource that discovery finds, such as "deployments.apps".
func (k *kinds) followResource(mapper meta.RESTMapper, name string) error {
	resource := schema.ParseGroupResource(name)
	kind, err := mapper.KindFor(resource.WithVersion(""))
	if err != nil {
		return fmt.Errorf("find resource %q: %w", name, err)
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("find resource %q: %w", name, err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return fmt.Errorf("count %q: its objects are in no namespace", name)
	}
	k.follow(name, kind)
	return nil
}

// follow starts counting a kind that is not counted yet. The informer is optional: the
// workers do not wait for a kind that is not served yet. Calls for one name are sequential,
// because the name is a key.
func (k *kinds) follow(name string, kind schema.GroupVersionKind) {
	if _, ok := k.now()[name]; ok {
		return
	}
	i := informer.ForMetadata(k.informers, kind)
	k.put(name, i)
	k.inventory.Watch(source.Optional(source.Mapped(i, namespaceOf)))
}

// drop stops counting a kind: its watch ends, and its memory is released.
func (k *kinds) drop(ctx context.Context, name string) error {
	i, ok := k.take(name)
	if !ok {
		return nil
	}
	namespaces := make(map[reconcile.Key]bool)
	for obj := range i.Lister().All() {
		namespaces[namespaceOf(obj)[0]] = true
	}
	i.Release()
	for key := range namespaces {
		select {
		case k.recount <- key:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (k *kinds) put(name string, i counted) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.counted[name] = i
}

func (k *kinds) take(name string) (counted, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i, ok := k.mu.counted[name]
	delete(k.mu.counted, name)
	return i, ok
}

// now returns the kinds that are counted.
func (k *kinds) now() map[string]counted {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.mu.counted)
}

// namespaceOf returns the key of the inventory that counts obj.
func namespaceOf(obj *metav1.PartialObjectMetadata) []reconcile.Key {
	return []reconcile.Key{{Name: obj.Namespace}}
}
