// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package fielddiff names the fields in which two states of an object differ, without their values,
// which may be secret.
//
//	was, is ──▶ Between ──▶ spec.replicas, metadata.labels["app"], and how many more
//
// Parts that both states share, as objects of an informer often do, are not looked into.
package fielddiff

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/internal/redact"
	"github.com/flyball-dev/flyball/kube"
)

const (
	// Most is how many fields are named.
	Most = 8

	mostDepth  = 100   // of nested fields
	mostValues = 20000 // that are compared
	mostPath   = 160   // bytes of a path
)

// Fields are those in which two states of an object differ.
type Fields struct {
	// Paths of the first Most, such as spec.replicas, metadata.labels["app"] or
	// spec.containers[0].image, in the order of the Go type, and of map keys. A list whose length
	// differs is one field. The empty path stands for the object itself: the Go types differ.
	Paths []string
	// More is how many others there are; at least one if the objects are too large to
	// compare in full.
	More int
}

// Between returns the fields that a change from was to is has changed, for a person who asks what
// it did. It leaves out the kind, and what the server changes with each write: resourceVersion,
// generation and managedFields. Of confidential objects, such as Secrets, it names fields of the
// metadata, and outside of them only the outermost, such as data. Nil and empty are equal, as on
// the wire, and so are quantities and times that are written differently. The objects are only
// read, and must not be modified meanwhile. It takes some 50 ns for each value that they do not
// share, at most a millisecond. Two nil objects do not differ.
func Between(was, is kube.Object) (changed Fields) {
	d := differ{of: change}
	defer func() {
		if recover() != nil { // an object is modified, against the rule
			changed = Fields{d.fields.Paths, d.fields.More + 1}
		}
	}()
	if confidential(was) || confidential(is) {
		d.of = confidentialChange
	}
	d.objects(was, is)
	return d.fields
}

// Union returns the fields of both; nil: neither is known. It modifies neither.
func Union(a, b *Fields) *Fields {
	if a == nil || b == nil || a == b {
		return cmp.Or(a, b)
	}
	all := Fields{Paths: slices.Clone(a.Paths), More: max(a.More, b.More)}
	for _, path := range b.Paths {
		switch {
		case slices.Contains(all.Paths, path):
		case len(all.Paths) < Most:
			all.Paths = append(all.Paths, path)
		default:
			all.More++
		}
	}
	return &all
}

// All is Between with all fields, those of confidential objects too: for an object that must be
// the same as its copy.
func All(was, is kube.Object) Fields {
	d := differ{}
	d.objects(was, is)
	return d.fields
}

func confidential(obj kube.Object) bool {
	v := reflect.ValueOf(obj)
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return false
	}
	kind := obj.GetObjectKind().GroupVersionKind().GroupKind()
	if kind.Kind == "" { // some informers leave it out
		kind.Kind = reflect.Indirect(v).Type().Name()
	}
	return redact.Kind(kind, "") || kind.Kind == "TokenReview" || kind.Kind == "TokenRequest"
}

// what a differ is to name.
type what uint8

const (
	everything what = iota
	change
	confidentialChange
)

// differ walks two values in parallel.
type differ struct {
	of       what
	path     []step
	fields   Fields
	values   int // compared
	tooLarge bool
	opaque   int // depth within structs whose fields only their methods read
}

// step is one step from a value to a value in it.
type step struct {
	of  reflect.Type
	at  int
	key reflect.Value // of a map
}

func (d *differ) objects(was, is kube.Object) {
	a, ok := was.(runtime.Unstructured)
	b, both := is.(runtime.Unstructured)
	if ok && both {
		d.compare(reflect.ValueOf(a.UnstructuredContent()), reflect.ValueOf(b.UnstructuredContent()))
	} else {
		d.compare(reflect.ValueOf(was), reflect.ValueOf(is))
	}
}

func (d *differ) compare(was, is reflect.Value) {
	if len(d.path) > mostDepth || d.isTooLarge() {
		return
	}
	if was.IsValid() != is.IsValid() || was.IsValid() && was.Type() != is.Type() {
		d.found(d.areEmpty(was, is))
		return
	}
	switch was.Kind() {
	case reflect.Invalid, reflect.Func:
	case reflect.Pointer, reflect.Interface:
		if was.IsNil() || is.IsNil() {
			d.found(was.IsNil() == is.IsNil())
		} else if was.Kind() == reflect.Interface || was.Pointer() != is.Pointer() {
			d.compare(was.Elem(), is.Elem())
		}
	case reflect.Struct:
		d.structs(was, is)
	case reflect.Map:
		d.maps(was, is)
	case reflect.Slice, reflect.Array:
		d.lists(was, is)
	case reflect.Float32, reflect.Float64:
		d.found(cmp.Compare(was.Float(), is.Float()) == 0) // NaN equals NaN
	default:
		d.found(was.Equal(is))
	}
}

// isTooLarge counts a value, and reports whether there are too many of them.
func (d *differ) isTooLarge() bool {
	if d.values++; d.of == everything || d.values <= mostValues {
		return false
	}
	if !d.tooLarge {
		d.fields.More++
	}
	d.tooLarge = true
	return true
}

// areEmpty reports whether two values of different types are alike: there is nothing in both.
func (d *differ) areEmpty(was, is reflect.Value) bool {
	return d.of != everything && isEmpty(was) && isEmpty(is)
}

// isEmpty reports whether a value of a tree of JSON is missing, null or empty.
func isEmpty(v reflect.Value) bool {
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	}
	return false
}

var (
	marshalerType = reflect.TypeFor[json.Marshaler]()

	quantityType = reflect.TypeFor[resource.Quantity]()
	timeType     = reflect.TypeFor[time.Time]()
	kindType     = reflect.TypeFor[metav1.TypeMeta]()
)

// structs compares the exported fields. Unexported ones may be caches of methods; they are
// compared only in a leaf.
func (d *differ) structs(was, is reflect.Value) {
	switch of := was.Type(); {
	case of == kindType && d.of != everything:
	case of == quantityType && was.CanInterface():
		d.found(whole(was, is) || sameQuantity(was, is))
	case of == timeType && was.CanInterface():
		d.found(was.Interface().(time.Time).Equal(is.Interface().(time.Time)))
	case d.opaque == 0 && len(d.path) > 0 && isLeaf(was):
		d.found(whole(was, is))
	default:
		for i := range was.NumField() {
			if f := was.Field(i); d.opaque > 0 || f.CanInterface() {
				d.step(step{of: of, at: i}, f, is.Field(i))
			}
		}
	}
}

// isLeaf reports whether the fields of a struct are none in JSON: it has a method for that, as
// an IntOrString has, or none is exported.
func isLeaf(v reflect.Value) bool {
	if v.Type().Implements(marshalerType) {
		return true
	}
	for i := range v.NumField() {
		if v.Field(i).CanInterface() {
			return false
		}
	}
	return true
}

// whole compares all fields without naming them.
func whole(was, is reflect.Value) bool {
	inner := differ{opaque: 1}
	for i := range was.NumField() {
		inner.compare(was.Field(i), is.Field(i))
	}
	return len(inner.fields.Paths) == 0 && inner.fields.More == 0
}

// sameQuantity compares copies, because the methods of a Quantity write to it.
func sameQuantity(was, is reflect.Value) bool {
	a, b := was.Interface().(resource.Quantity).DeepCopy(), is.Interface().(resource.Quantity).DeepCopy()
	return a.Cmp(b) == 0 && a.Format == b.Format
}

func (d *differ) maps(was, is reflect.Value) {
	if was.Pointer() == is.Pointer() {
		return
	}
	if d.values += was.Len() + is.Len(); d.isTooLarge() {
		return
	}
	keys := was.MapKeys()
	for _, key := range is.MapKeys() {
		if !was.MapIndex(key).IsValid() {
			keys = append(keys, key)
		}
	}
	if was.Type().Key().Kind() == reflect.String {
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	}
	for _, key := range keys {
		d.step(step{of: was.Type(), key: key}, was.MapIndex(key), is.MapIndex(key))
	}
}

func (d *differ) lists(was, is reflect.Value) {
	switch {
	case was.Len() != is.Len():
		d.found(false)
		return
	case was.Kind() == reflect.Slice && was.Pointer() == is.Pointer():
		return
	case was.Kind() == reflect.Slice && was.Type().Elem().Kind() == reflect.Uint8:
		d.found(bytes.Equal(was.Bytes(), is.Bytes()))
		return
	}
	for i := range was.Len() {
		d.step(step{of: was.Type(), at: i}, was.Index(i), is.Index(i))
	}
}

func (d *differ) step(s step, was, is reflect.Value) {
	if d.of != everything && d.leavesOut(s) {
		return
	}
	d.path = append(d.path, s)
	if d.of == confidentialChange && len(d.path) == 1 && s.name() != "metadata" {
		inner := differ{of: change, path: []step{s}}
		inner.compare(was, is)
		d.found(inner.fields.Paths == nil && inner.fields.More == 0)
	} else {
		d.compare(was, is)
	}
	d.path = d.path[:len(d.path)-1]
}

// leavesOut reports whether a change of the field is not named.
func (d *differ) leavesOut(s step) bool {
	switch len(d.path) {
	case 0:
		name := s.name()
		return name == "apiVersion" || name == "kind"
	case 1:
		if d.path[0].name() != "metadata" {
			return false
		}
		name := s.name()
		return name == "resourceVersion" || name == "generation" || name == "managedFields"
	}
	return false
}

// found records the value at the path, unless it is equal.
func (d *differ) found(equal bool) {
	switch {
	case equal:
	case len(d.fields.Paths) >= Most:
		d.fields.More++
	default:
		var text strings.Builder
		for _, s := range d.path {
			text.WriteString(s.String())
		}
		path := strings.TrimPrefix(text.String(), ".")
		if len(path) > mostPath {
			path = strings.ToValidUTF8(path[:mostPath], "") + "…"
		}
		d.fields.Paths = append(d.fields.Paths, path)
	}
}

// name returns the name of the field in JSON. Empty: it has none.
func (s step) name() string {
	switch s.of.Kind() {
	case reflect.Struct:
		f := s.of.Field(s.at)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name != "" && name != "-":
			return name
		case f.Anonymous:
			return ""
		}
		return f.Name
	case reflect.Map:
		if s.key.Kind() == reflect.String {
			return s.key.String()
		}
	}
	return ""
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// String returns the step in the notation of a JSON path.
func (s step) String() string {
	name := s.name()
	switch s.of.Kind() {
	case reflect.Struct:
		if name == "" {
			return ""
		}
		return "." + name
	case reflect.Map:
		if s.key.Kind() != reflect.String {
			return fmt.Sprintf("[%v]", s.key)
		}
		if s.of.Elem().Kind() == reflect.Interface && plainKey.MatchString(name) {
			return "." + name // of JSON, where a map may stand for a struct
		}
		return fmt.Sprintf("[%.80q]", name)
	}
	return "[" + strconv.Itoa(s.at) + "]"
}
