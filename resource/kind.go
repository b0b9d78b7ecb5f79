// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"errors"
	"fmt"
	"go/token"
	"reflect"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of objects of type T, a struct. Make one with Define.
// Immutable and safe for concurrent use.
type Kind[T any] struct {
	version schema.GroupVersion
	name    string
	copies  copyFunc // nil: the struct has nothing to copy
	err     error    // misuse
}

// Define returns the kind of T in version, named after T. T must embed
// metav1.TypeMeta and metav1.ObjectMeta. Define never fails: AddToScheme returns
// what is wrong with T. It reads T's fields once, which takes some microseconds,
// so call it for a variable of the package.
func Define[T any](version schema.GroupVersion) *Kind[T] {
	k := &Kind[T]{version: version, name: reflect.TypeFor[T]().Name()}
	if err := k.compile(); err != nil {
		k.err = fmt.Errorf("define kind %s: %w", k.name, err)
	}
	return k
}

func (k *Kind[T]) compile() error {
	t := reflect.TypeFor[T]()
	switch {
	case t.Kind() != reflect.Struct:
		return fmt.Errorf("%s is not a struct", t)
	case k.version.Version == "":
		return errors.New("the version is empty; give one such as v1")
	case !token.IsExported(k.name):
		return errors.New("the name of a kind begins with a capital letter")
	}
	for _, embedded := range []struct {
		t   reflect.Type
		tag string
	}{{reflect.TypeFor[metav1.TypeMeta](), ",inline"}, {reflect.TypeFor[metav1.ObjectMeta](), "metadata,omitempty"}} {
		if f, ok := t.FieldByName(embedded.t.Name()); !ok || !f.Anonymous || f.Type != embedded.t {
			return fmt.Errorf("it does not embed metav1.%s; add the field: metav1.%[1]s `json:%q`", embedded.t.Name(), embedded.tag)
		}
	}
	c := compiler{open: map[reflect.Type]bool{}}
	var err error
	k.copies, err = c.fields(t, k.name)
	return err
}

// GroupVersionKind returns the name of the kind.
func (k *Kind[T]) GroupVersionKind() schema.GroupVersionKind { return k.version.WithKind(k.name) }

// DeepCopy returns a copy of obj, for its DeepCopyObject. A nil obj has a nil
// copy.
func (k *Kind[T]) DeepCopy(obj *T) *T {
	if obj == nil {
		return nil
	}
	out := new(T)
	k.DeepCopyInto(obj, out)
	return out
}

// DeepCopyInto makes out a copy of in. Neither may be nil. It panics if T cannot
// be copied; AddToScheme returns that as an error before.
func (k *Kind[T]) DeepCopyInto(in, out *T) {
	if k.err != nil {
		panic(k.err)
	}
	*out = *in
	if k.copies != nil {
		k.copies(unsafe.Pointer(out), unsafe.Pointer(in))
	}
}

// AddToScheme registers T, its List, and the options of requests in scheme. It
// returns an error if T cannot be a kind, or if its DeepCopyObject is missing or
// does not return a *T.
func (k *Kind[T]) AddToScheme(scheme *runtime.Scheme) error {
	if k.err != nil {
		return k.err
	}
	object, ok := any(new(T)).(runtime.Object)
	if !ok {
		return fmt.Errorf("define kind %s: *%[1]s has no DeepCopyObject; add: func (obj *%[1]s) DeepCopyObject() runtime.Object { return kind.DeepCopy(obj) }, where kind is the result of Define", k.name)
	}
	if copied := object.DeepCopyObject(); reflect.TypeOf(copied) != reflect.TypeFor[*T]() {
		return fmt.Errorf("define kind %s: its DeepCopyObject returns a %T; return the DeepCopy of its own Kind", k.name, copied)
	}
	scheme.AddKnownTypeWithName(k.GroupVersionKind(), object)
	scheme.AddKnownTypeWithName(k.version.WithKind(k.name+"List"), &List[T]{})
	metav1.AddToGroupVersion(scheme, k.version)
	return nil
}

// List is the list of objects of type T, the struct of a kind.
type List[T any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []T `json:"items"`
}

// DeepCopyObject returns a copy of the list and of each item. *T must be a
// runtime.Object.
func (l *List[T]) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]T, len(l.Items))
	}
	for i := range l.Items {
		out.Items[i] = *any(any(&l.Items[i]).(runtime.Object).DeepCopyObject()).(*T)
	}
	return &out
}
