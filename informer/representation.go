// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/kube"
)

// A kind has up to three representations: its Go type, unstructured (all
// fields, without a Go type), and metadata. Each has its own informer and
// objects; they may share a watch.

// coreID identifies an informer of a factory.
type coreID struct {
	object   reflect.Type
	kind     schema.GroupVersionKind     // empty while only the resource is known
	resource schema.GroupVersionResource // empty if the kind is known
}

// ForKind is For without a Go type: the objects have all fields of the server's
// JSON, including apiVersion and kind. The kind need not be in the scheme, nor
// be served yet. Misuse (a nil factory, a kind without name or version) is
// remembered as in For.
func ForKind(f *SharedInformerFactory, kind schema.GroupVersionKind, scopes ...Scope) *SharedInformer[*unstructured.Unstructured] {
	return ofKind[*unstructured.Unstructured](f, kind, "ForKind", scopes)
}

// ForMetadata is For reduced to metadata: names, labels, annotations and
// owners. Nothing else of the objects is stored or, if the server supports it,
// sent. Each object has the apiVersion and kind of the real one. A watch in the
// same factory with the full objects also feeds this informer. Misuse is
// remembered as in ForKind.
func ForMetadata(f *SharedInformerFactory, kind schema.GroupVersionKind, scopes ...Scope) *SharedInformer[*metav1.PartialObjectMetadata] {
	return ofKind[*metav1.PartialObjectMetadata](f, kind, "ForMetadata", scopes)
}

// ForObject is For for a type known only at run time, such as from
// scheme.New(kind). It returns the informer that For returns for like's type,
// ForKind for an *unstructured.Unstructured, or ForMetadata for a
// *metav1.PartialObjectMetadata, for which like must have apiVersion and kind.
// Handlers, Listers and indexes receive objects of like's type. Nothing else of
// like is used. Misuse (a nil like, a type that is not in the scheme, or one
// with several kinds there and none in like) is remembered as in For.
func ForObject(f *SharedInformerFactory, like runtime.Object, scopes ...Scope) *SharedInformer[kube.Object] {
	id := coreID{object: reflect.TypeFor[kube.Object]()}
	var err error
	if f != nil {
		id, err = f.idOf(like)
	}
	return handleOf[kube.Object](f, id, err, scopes)
}

// idOf returns the ID of the informer for like's type and kind.
func (f *SharedInformerFactory) idOf(like runtime.Object) (coreID, error) {
	id := coreID{object: reflect.TypeFor[kube.Object](), kind: schema.GroupVersionKind{Kind: fmt.Sprintf("%T", like)}}
	t := reflect.TypeOf(like)
	if _, ok := like.(kube.Object); !ok || t.Kind() != reflect.Pointer || reflect.ValueOf(like).IsNil() {
		return id, fmt.Errorf("informer.ForObject of %T: give a pointer to an API type that has metadata, such as &corev1.Pod{}", like)
	}
	own := like.GetObjectKind().GroupVersionKind()
	if restclient.OfAnyKind(t) {
		if own.Kind == "" || own.Version == "" {
			return id, fmt.Errorf("informer.ForObject of %T: the type does not determine the kind; set apiVersion and kind of the object", like)
		}
		return coreID{object: t, kind: own}, nil
	}
	kinds, _, err := f.scheme.ObjectKinds(like)
	switch {
	case err != nil:
		return id, fmt.Errorf("informer.ForObject of %T: the type is not in the scheme; call its package's AddToScheme(scheme) first", like)
	case slices.Contains(kinds, own):
		return coreID{object: t, kind: own}, nil
	case len(kinds) > 1:
		return id, fmt.Errorf("informer.ForObject of %T: the type is registered for %d kinds in the scheme; set apiVersion and kind of the object", like, len(kinds))
	}
	return coreID{object: t, kind: kinds[0]}, nil
}

// ForResource is ForKind for code that knows the resource ("widgets") but not
// the kind. If the scheme or the server's discovery already knows the kind, it
// returns ForKind's informer, else a separate one, which queries discovery
// before its first list.
func ForResource(f *SharedInformerFactory, resource schema.GroupVersionResource, scopes ...Scope) *SharedInformer[*unstructured.Unstructured] {
	return ofResource[*unstructured.Unstructured](f, resource, "ForResource", scopes)
}

// ForResourceMetadata is ForMetadata by resource, as ForResource is for
// ForKind.
func ForResourceMetadata(f *SharedInformerFactory, resource schema.GroupVersionResource, scopes ...Scope) *SharedInformer[*metav1.PartialObjectMetadata] {
	return ofResource[*metav1.PartialObjectMetadata](f, resource, "ForResourceMetadata", scopes)
}

func ofKind[T kube.Object](f *SharedInformerFactory, kind schema.GroupVersionKind, function string, scopes []Scope) *SharedInformer[T] {
	var err error
	if kind.Kind == "" || kind.Version == "" {
		err = fmt.Errorf("informer.%s of %q: the kind lacks its name or version; give both, such as {Group: \"apps\", Version: \"v1\", Kind: \"Deployment\"}", function, kind)
	}
	return handleOf[T](f, coreID{object: reflect.TypeFor[T](), kind: kind}, err, scopes)
}

func ofResource[T kube.Object](f *SharedInformerFactory, resource schema.GroupVersionResource, function string, scopes []Scope) *SharedInformer[T] {
	var err error
	if resource.Resource == "" || resource.Version == "" {
		err = fmt.Errorf("informer.%s of %q: the resource lacks its name or version; give both, such as {Group: \"apps\", Version: \"v1\", Resource: \"deployments\"}", function, resource)
	}
	id := coreID{object: reflect.TypeFor[T](), resource: resource}
	if f != nil && err == nil {
		if kind, ok := f.kindOf(resource); ok {
			id = coreID{object: id.object, kind: kind}
		}
	}
	return handleOf[T](f, id, err, scopes)
}

// kindOf returns the kind of a resource if it is known without asking the
// server.
func (f *SharedInformerFactory) kindOf(resource schema.GroupVersionResource) (schema.GroupVersionKind, bool) {
	if kind, ok := f.resolver.KnownKind(resource); ok {
		return kind, true
	}
	for name := range f.scheme.KnownTypes(resource.GroupVersion()) {
		kind := resource.GroupVersion().WithKind(name)
		if guess, _ := meta.UnsafeGuessKindToResource(kind); guess == resource {
			return kind, true
		}
	}
	return schema.GroupVersionKind{}, false
}

func (id coreID) target() restclient.Target {
	return restclient.Target{Kind: id.kind, Resource: id.resource}
}

// named returns the kind for logs and errors, or the resource until the kind is
// known.
func (id coreID) named() schema.GroupVersionKind {
	if id.kind.Kind == "" && id.resource.Resource != "" {
		return id.resource.GroupVersion().WithKind(id.resource.Resource)
	}
	return id.kind
}
