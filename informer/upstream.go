// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/schemas"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// errNoVersion is the error of a list whose version says nothing about time.
var errNoVersion = errors.New("the list has no version that can be compared")

// auditLists returns a ListerWatcher of the metadata of a scope.
type auditLists func(listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error)

// recall returns the version of key in the server's history at a version; 0: it was not there.
func (list auditLists) recall(ctx context.Context, key kube.Key, at string) (kube.Version, error) {
	lw, err := list(listwatch.Scope{Namespace: key.Namespace, FieldSelector: "metadata.name=" + key.Name})
	if err != nil {
		return 0, err
	}
	page, err := lw.List(ctx, listwatch.ListOptions{Limit: 1, ResourceVersion: at, ResourceVersionMatch: "Exact"})
	switch {
	case err != nil:
		return 0, err
	case page.ResourceVersion != at || page.Unreadable > 0:
		return 0, errNoVersion // the server has not answered what was asked
	}
	for _, item := range page.Items {
		if item.Key == key {
			return kube.ParseVersion(item.ResourceVersion), nil
		}
	}
	return 0, nil
}

// upstream is the kind of a core and how to reach it on the server. Who makes the core sets
// the functions before the core runs.
type upstream struct {
	object reflect.Type // a pointer to an API type
	kind   schema.GroupVersionKind

	newListerWatcher func(listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error)
	settling         func(listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error) // that settles own writes: it keeps all fields
	auditList        auditLists                                                          // of metadata; nil: not possible
	namespaced       func() (namespaced, known bool)
	discover         func(context.Context) (namespaced bool, err error) // nil: unknown
	resource         func() schema.GroupResource
	learned          func() (schema.GroupVersionKind, bool)  // the kind, if only the resource was given
	convert          func(kube.Written) (kube.Object, error) // to this representation, without shared memory
	borrow           func(*reflector.Tap, kube.Version) bool // of a metadata informer: feeds the tap from another informer
	schemas          *schemas.Watch                          // nil: schemas are not observed
	kindless         func() bool                             // objects of Go types have no apiVersion and kind
}

func newUpstream(object reflect.Type, kind schema.GroupVersionKind, lw func(listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error)) upstream {
	return upstream{
		object:           object,
		kind:             kind,
		newListerWatcher: lw,
		settling:         lw,
		namespaced:       func() (bool, bool) { return false, false },
		learned:          func() (schema.GroupVersionKind, bool) { return kind, true },
		kindless:         func() bool { return false },
		resource: func() schema.GroupResource {
			return schema.GroupResource{Group: kind.Group, Resource: strings.ToLower(kind.Kind)}
		},
		convert: func(w kube.Written) (kube.Object, error) {
			if object.Kind() != reflect.Pointer {
				return nil, errors.New("the type of the informer's objects is not known")
			}
			return convertTo(object, kind, w)
		},
	}
}

// gvk returns the kind of the objects. For an informer of a resource that is
// the resource until discovery has answered.
func (u *upstream) gvk() schema.GroupVersionKind {
	if kind, ok := u.learned(); ok {
		return kind
	}
	return u.kind
}

func (u *upstream) errorf(format string, args ...any) error {
	return fmt.Errorf("informer of %s: %w", u.kind.Kind, fmt.Errorf(format, args...))
}

// servedAs reports whether the resource of the kind has the given name.
func (u *upstream) servedAs(resource string) bool {
	if _, known := u.learned(); !known {
		return false
	}
	if _, known := u.namespaced(); known {
		return u.resource().Resource == resource
	}
	usual, _ := meta.UnsafeGuessKindToResource(u.gvk())
	return usual.Resource == resource
}

// typed returns the object of an own write as the informer would have decoded
// it.
func (u *upstream) typed(w kube.Written) (kube.Object, error) {
	// Metadata is the same in all versions of a kind; a Go type has one
	// version.
	own := reflect.TypeOf(w.Object) == u.object
	if same := w.Kind.Version == u.kind.Version || restclient.OfMetadata(u.object) || own && !restclient.OfAnyKind(u.object); !same {
		return nil, errors.New("another version of the kind, which the server alone converts")
	}
	obj, err := u.convert(w)
	switch {
	case err != nil:
	case u.kindless() && !restclient.OfMetadata(u.object) && !restclient.OfAnyKind(u.object):
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	default:
		obj.GetObjectKind().SetGroupVersionKind(u.gvk())
	}
	return obj, err
}

// fieldsOf returns the union of the Fields of scopes.
func (u *upstream) fieldsOf(scopes []Scope) (*fields.Set, error) {
	var paths []string
	for _, s := range scopes {
		paths = append(paths, s.Fields...)
	}
	switch {
	case len(paths) == 0:
		return nil, nil
	case restclient.OfMetadata(u.object):
		return nil, u.errorf("scope with Fields: the informer keeps only metadata anyway; leave the Fields out, or use informer.For or ForKind")
	}
	set, err := fields.Parse(paths...)
	if err != nil {
		return nil, u.errorf("scope with Fields: %w", err)
	}
	if meta, _ := set.Child("metadata"); meta != nil {
		if _, keep := meta.Child("managedFields"); keep {
			return nil, u.errorf("scope with Fields: metadata.managedFields are kept with all fields only; leave the Fields out and call KeepManagedFields")
		}
	}
	if err := set.Resolve(u.object); err != nil {
		return nil, u.errorf("scope with Fields: %w", err)
	}
	if slices.ContainsFunc(scopes, func(s Scope) bool { return len(s.Fields) == 0 }) {
		return nil, nil
	}
	return set, nil
}

// convertTo returns the object of an own write as a t, without sharing memory. A Go type may
// lack fields that the server has, so an object is never converted from one Go type to
// another, nor to unstructured: the answer is decoded again.
func convertTo(t reflect.Type, kind schema.GroupVersionKind, w kube.Written) (kube.Object, error) {
	if restclient.OfMetadata(t) {
		return base.MetadataOf(w.Object, kind).DeepCopy(), nil
	}
	if reflect.TypeOf(w.Object) == t {
		return kube.Copy(w.Object), nil
	}
	if _, ok := w.Object.(*metav1.PartialObjectMetadata); ok {
		return nil, fmt.Errorf("read %T as %s: it is the metadata alone", w.Object, kind.Kind)
	}
	out := reflect.New(t.Elem()).Interface().(kube.Object)
	err := errors.New("its Go type may lack fields of the answer")
	if w.Decode != nil {
		err = w.Decode(out)
	} else if u, ok := w.Object.(*unstructured.Unstructured); ok {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(kube.Copy(u).Object, out)
	}
	if err != nil {
		return nil, fmt.Errorf("read %T as %s: %w", w.Object, kind.Kind, err)
	}
	return out, nil
}
