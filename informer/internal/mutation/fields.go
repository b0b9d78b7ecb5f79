// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/kube"
)

const (
	mostFields = 8   // named per object
	mostDepth  = 100 // of nested fields
)

var (
	quantityType = reflect.TypeFor[resource.Quantity]()
	plainKey     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// differences returns the fields in which two objects differ. Nil and empty are
// equal, as on the wire. An object that changes while it is read differs.
func differences(was, is kube.Object) (fields []string) {
	d := differ{}
	defer func() {
		if recover() != nil {
			fields = append(d.fields, "(changing while it is read)")
		}
	}()
	a, ok := was.(runtime.Unstructured)
	b, both := is.(runtime.Unstructured)
	if ok && both {
		d.compare(reflect.ValueOf(a.UnstructuredContent()), reflect.ValueOf(b.UnstructuredContent()))
	} else {
		d.compare(reflect.ValueOf(was), reflect.ValueOf(is))
	}
	return d.fields
}

// differ walks two values in parallel.
type differ struct {
	path   []pathStep
	fields []string
	opaque int // depth within structs whose fields only their methods read
}

// pathStep is one step from a value to a value in it.
type pathStep struct {
	of  reflect.Type
	at  int
	key reflect.Value // of a map
}

func (d *differ) compare(was, is reflect.Value) {
	if len(d.fields) >= mostFields || len(d.path) > mostDepth {
		return
	}
	if was.IsValid() != is.IsValid() || was.IsValid() && was.Type() != is.Type() {
		d.found()
		return
	}
	switch was.Kind() {
	case reflect.Invalid, reflect.Func:
	case reflect.Pointer, reflect.Interface:
		if was.IsNil() || is.IsNil() {
			d.equal(was.IsNil() == is.IsNil())
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
		d.equal(cmp.Compare(was.Float(), is.Float()) == 0) // NaN equals NaN
	default:
		d.equal(was.Equal(is))
	}
}

func (d *differ) equal(equal bool) {
	if !equal {
		d.found()
	}
}

// structs compares the exported fields. Unexported ones may be caches of
// methods; they are compared, as a whole, only if there are no others.
func (d *differ) structs(was, is reflect.Value) {
	if was.Type() == quantityType && was.CanInterface() {
		if !d.whole(was, is) && !sameQuantity(was, is) {
			d.found()
		}
		return
	}
	exported := d.opaque > 0
	for i := 0; i < was.NumField() && !exported; i++ {
		exported = was.Field(i).CanInterface()
	}
	if !exported {
		d.equal(d.whole(was, is))
		return
	}
	for i := range was.NumField() {
		if f := was.Field(i); d.opaque > 0 || f.CanInterface() {
			d.step(pathStep{of: was.Type(), at: i}, f, is.Field(i))
		}
	}
}

// whole compares all fields without naming them.
func (d *differ) whole(was, is reflect.Value) bool {
	inner := differ{opaque: 1}
	for i := range was.NumField() {
		inner.compare(was.Field(i), is.Field(i))
	}
	return len(inner.fields) == 0
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
	for keys := was.MapRange(); keys.Next(); {
		d.step(pathStep{of: was.Type(), key: keys.Key()}, keys.Value(), is.MapIndex(keys.Key()))
	}
	for keys := is.MapRange(); keys.Next(); {
		if !was.MapIndex(keys.Key()).IsValid() {
			d.step(pathStep{of: was.Type(), key: keys.Key()}, reflect.Value{}, keys.Value())
		}
	}
}

func (d *differ) lists(was, is reflect.Value) {
	switch {
	case was.Len() != is.Len():
		d.found()
		return
	case was.Kind() == reflect.Slice && was.Pointer() == is.Pointer():
		return
	case was.Kind() == reflect.Slice && was.Type().Elem().Kind() == reflect.Uint8:
		d.equal(bytes.Equal(was.Bytes(), is.Bytes()))
		return
	}
	for i := range was.Len() {
		d.step(pathStep{of: was.Type(), at: i}, was.Index(i), is.Index(i))
	}
}

func (d *differ) step(s pathStep, was, is reflect.Value) {
	d.path = append(d.path, s)
	d.compare(was, is)
	d.path = d.path[:len(d.path)-1]
}

func (d *differ) found() {
	if len(d.fields) >= mostFields {
		return
	}
	var text strings.Builder
	for _, s := range d.path {
		text.WriteString(s.String())
	}
	if text.Len() == 0 {
		text.WriteByte('.')
	}
	d.fields = append(d.fields, text.String())
}

// String returns the step in JSON path notation.
func (s pathStep) String() string {
	switch s.of.Kind() {
	case reflect.Struct:
		f := s.of.Field(s.at)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name != "" && name != "-":
			return "." + name
		case f.Anonymous:
			return ""
		}
		return "." + f.Name
	case reflect.Map:
		if s.key.Kind() != reflect.String {
			return fmt.Sprintf("[%v]", s.key)
		}
		key := s.key.String()
		if s.of.Elem().Kind() == reflect.Interface && plainKey.MatchString(key) {
			return "." + key // of JSON, where a map may stand for a struct
		}
		return fmt.Sprintf("[%.80q]", key)
	}
	return "[" + strconv.Itoa(s.at) + "]"
}
