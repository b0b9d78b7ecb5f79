// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// form is a representation of objects. Each has an informer, but metadata is fed by another's watch if there is one.
type form uint8

const (
	typed form = iota
	unstructuredForm
	metadataForm
)

// formOf returns the form of an object or a list.
func formOf(obj runtime.Object) form {
	switch obj.(type) {
	case runtime.Unstructured:
		return unstructuredForm
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return metadataForm
	}
	return typed
}

// id names an entry.
type id struct {
	kind schema.GroupVersionKind
	form form
}

// example returns an empty object, with its kind.
func (i id) example(scheme *runtime.Scheme) (runtime.Object, error) {
	var obj runtime.Object
	switch i.form {
	case unstructuredForm:
		obj = &unstructured.Unstructured{}
	case metadataForm:
		obj = &metav1.PartialObjectMetadata{}
	default:
		var err error
		if obj, err = scheme.New(i.kind); err != nil {
			return nil, err
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(i.kind)
	return obj, nil
}

// entry is the informer of a kind in one form. For controller-runtime it is a cache.Informer.
type entry struct {
	*clientgo.SharedIndexInformer[kube.Object]
	id
	plan
	namespaced bool
	watched    bool                   // by another user of the factory, before this entry existed
	used       atomic.Bool            // by more than reads
	reader     atomic.Pointer[string] // the line of the read that has started it, until that is announced
	period     time.Duration
	informer   *informer.SharedInformer[kube.Object]
	lister     informer.Lister[kube.Object]
}

var _ cache.Informer = (*entry)(nil)

// open returns a new entry whose informer starts with the factory.
func (c *kinds) open(i id) (*entry, error) {
	like, err := i.example(c.Scheme)
	if err != nil {
		return nil, err
	}
	if i.form == typed { // as controller-runtime needs it, and Binding or Scale do not have it
		if _, err := c.Scheme.New(i.kind.GroupVersion().WithKind(i.kind.Kind + "List")); err != nil {
			return nil, err
		}
	}
	mapping, err := c.Mapper.RESTMapping(i.kind.GroupKind(), i.kind.Version)
	if err != nil {
		return nil, err
	}
	e := &entry{id: i, namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}
	if i.form != unstructuredForm {
		_, e.watched = c.factory.WatchedKind(mapping.Resource)
	}
	e.plan = c.planOf(i.kind, e.namespaced)
	stripped := e.plan.strip(c.stripped)
	e.period = e.resync()
	e.informer = informer.ForObject(c.factory, like, e.scopes()...)
	e.lister = e.informer.Lister()
	e.SharedIndexInformer = clientgo.NewSharedIndexInformer(e.informer, clientgo.Options{StripManagedFields: stripped})
	if err := c.prepare(e); err != nil {
		e.informer.Release()
		return nil, fmt.Errorf("start the informer of %s: %w", i.kind, err)
	}
	return e, nil
}

func (c *kinds) prepare(e *entry) error {
	if err := e.informer.Err(); err != nil {
		return err
	}
	if c.shared {
		return e.informer.Start()
	}
	if e.form == typed { // as objects that controller-runtime's clients decode
		if err := e.informer.OmitKind(); err != nil {
			return err
		}
	}
	if f := e.transform(); f != nil {
		if err := e.SetTransform(f); err != nil {
			return err
		}
	}
	if h := c.DefaultWatchErrorHandler; h != nil {
		if err := e.SetWatchErrorHandlerWithContext(h); err != nil {
			return err
		}
	}
	return e.informer.Start()
}

// AddEventHandler implements cache.Informer.
func (e *entry) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return e.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{})
}

// AddEventHandlerWithOptions implements cache.Informer. Without a period the handler has that of the plan.
func (e *entry) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, opts toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	if theConsole.Load() != nil {
		h = explaining{h, e}
	}
	opts.ResyncPeriod = cmp.Or(opts.ResyncPeriod, &e.period)
	return e.SharedIndexInformer.AddEventHandlerWithOptions(h, opts)
}
