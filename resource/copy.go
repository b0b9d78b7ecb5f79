// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// copyFunc completes the copy at dst. dst already holds the bytes of src, and
// still shares what they point to.
type copyFunc func(dst, src unsafe.Pointer)

// compiler compiles the copies of one type.
type compiler struct {
	open map[reflect.Type]bool // being compiled
}

// of returns the copy of a value of type t at path, the name of the kind and the
// Go fields that lead to it; nil: there is nothing to do.
func (c *compiler) of(t reflect.Type, path string) (copyFunc, error) {
	if own, ok := c.ownCopy(t, path); ok {
		return own, nil
	}
	if c.open[t] {
		return nil, fmt.Errorf("%s: the type %s contains itself; a CRD cannot describe it. Use runtime.RawExtension for the inner part", path, t)
	}
	return c.byKind(t, path)
}

// byKind is of, without the methods of the type.
func (c *compiler) byKind(t reflect.Type, path string) (copyFunc, error) {
	switch t.Kind() {
	case reflect.Struct:
		return c.fields(t, path)
	case reflect.Pointer:
		return c.pointer(t, path)
	case reflect.Slice:
		return c.slice(t, path)
	case reflect.Array:
		return c.array(t, path)
	case reflect.Map:
		return c.mapping(t, path)
	case reflect.Interface:
		return nil, fmt.Errorf("%s: the interface %s cannot be decoded or copied; use runtime.RawExtension, or apiextensionsv1.JSON", path, t)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Uintptr, reflect.Complex64, reflect.Complex128:
		return nil, fmt.Errorf("%s: %s has no JSON; remove the field", path, t)
	}
	return nil, nil
}

// fields returns the copy of a struct.
func (c *compiler) fields(t reflect.Type, path string) (copyFunc, error) {
	c.open[t] = true
	defer delete(c.open, t)
	type step struct {
		offset uintptr
		do     copyFunc
	}
	var steps []step
	var errs []error
	for i := range t.NumField() {
		f := t.Field(i)
		if err := tagged(f); err != nil {
			errs = append(errs, fmt.Errorf("%s.%s: %w", path, f.Name, err))
			continue
		}
		do, err := c.of(f.Type, path+"."+f.Name)
		if err != nil {
			errs = append(errs, err)
		}
		if do != nil {
			steps = append(steps, step{f.Offset, do})
		}
	}
	if len(steps) == 0 {
		return nil, errors.Join(errs...)
	}
	return func(dst, src unsafe.Pointer) {
		for i := range steps {
			s := &steps[i]
			s.do(unsafe.Add(dst, s.offset), unsafe.Add(src, s.offset))
		}
	}, errors.Join(errs...)
}

// tagged returns what is wrong with a field and its tag.
func tagged(f reflect.StructField) error {
	if !f.IsExported() {
		return errors.New("the field is not exported, so it is not encoded; export it, or give its type a DeepCopyInto and a MarshalJSON")
	}
	tag, ok := f.Tag.Lookup("json")
	name, _, _ := strings.Cut(tag, ",")
	switch {
	case !ok && f.Anonymous:
		return errors.New("the embedded struct has no json tag; add `json:\",inline\"`, or a name")
	case !ok:
		return fmt.Errorf("the field has no json tag; add one such as `json:%q`", strings.ToLower(f.Name[:1])+f.Name[1:])
	case name == "" && !f.Anonymous:
		return errors.New("the json tag has no name; give one")
	}
	return nil
}

func (c *compiler) pointer(t reflect.Type, path string) (copyFunc, error) {
	elem := t.Elem()
	inner, err := c.of(elem, path)
	if err != nil {
		return nil, err
	}
	switch elem.Kind() {
	case reflect.Bool:
		return pointerTo[bool], nil
	case reflect.Int32, reflect.Uint32:
		return pointerTo[int32], nil
	case reflect.Int64, reflect.Uint64:
		return pointerTo[int64], nil
	case reflect.String:
		return pointerTo[string], nil
	}
	return func(dst, src unsafe.Pointer) {
		from := *(*unsafe.Pointer)(src)
		if from == nil {
			return
		}
		to := reflect.New(elem)
		to.Elem().Set(reflect.NewAt(elem, from).Elem())
		*(*unsafe.Pointer)(dst) = to.UnsafePointer()
		if inner != nil {
			inner(to.UnsafePointer(), from)
		}
	}, nil
}

// pointerTo copies a pointer to a value of the size and the pointers of E.
func pointerTo[E any](dst, src unsafe.Pointer) {
	if from := *(**E)(src); from != nil {
		to := new(E)
		*to = *from
		*(**E)(dst) = to
	}
}

func (c *compiler) slice(t reflect.Type, path string) (copyFunc, error) {
	elem := t.Elem()
	inner, err := c.of(elem, path)
	if err != nil {
		return nil, err
	}
	switch elem.Kind() {
	case reflect.Uint8:
		return sliceOf[byte], nil
	case reflect.String:
		return sliceOf[string], nil
	case reflect.Int32, reflect.Uint32:
		return sliceOf[int32], nil
	case reflect.Int64, reflect.Uint64:
		return sliceOf[int64], nil
	}
	size := elem.Size()
	return func(dst, src unsafe.Pointer) {
		from := reflect.NewAt(t, src).Elem()
		n := from.Len()
		to := reflect.NewAt(t, dst).Elem()
		if n == 0 {
			if !from.IsNil() {
				to.Set(reflect.MakeSlice(t, 0, 0))
			}
			return
		}
		// Grow allocates the elements alone, MakeSlice a header, too.
		to.SetZero()
		to.Grow(n)
		to.SetLen(n)
		reflect.Copy(to, from)
		if inner == nil {
			return
		}
		d, s := to.UnsafePointer(), from.UnsafePointer()
		for i := range uintptr(n) {
			inner(unsafe.Add(d, i*size), unsafe.Add(s, i*size))
		}
	}, nil
}

// sliceOf copies a slice of values of the size and the pointers of E.
func sliceOf[E any](dst, src unsafe.Pointer) {
	if from := *(*[]E)(src); from != nil {
		*(*[]E)(dst) = append(make([]E, 0, len(from)), from...)
	}
}

func (c *compiler) array(t reflect.Type, path string) (copyFunc, error) {
	inner, err := c.of(t.Elem(), path)
	if inner == nil || err != nil {
		return nil, err
	}
	n, size := t.Len(), t.Elem().Size()
	return func(dst, src unsafe.Pointer) {
		for i := range uintptr(n) {
			inner(unsafe.Add(dst, i*size), unsafe.Add(src, i*size))
		}
	}, nil
}

func (c *compiler) mapping(t reflect.Type, path string) (copyFunc, error) {
	if t.Key().Kind() != reflect.String {
		return nil, fmt.Errorf("%s: the keys of %s are not strings, as those of a JSON object are; use a map with string keys, or a list", path, t)
	}
	elem := t.Elem()
	inner, err := c.of(elem, path)
	if err != nil {
		return nil, err
	}
	if t == reflect.TypeFor[map[string]string]() {
		return copyStrings, nil
	}
	return func(dst, src unsafe.Pointer) {
		from := reflect.NewAt(t, src).Elem()
		if from.IsNil() {
			return
		}
		to := reflect.MakeMapWithSize(t, from.Len())
		read, copied := reflect.New(elem).Elem(), reflect.New(elem).Elem()
		for i := from.MapRange(); i.Next(); {
			read.Set(i.Value())
			copied.Set(read)
			if inner != nil {
				inner(copied.Addr().UnsafePointer(), read.Addr().UnsafePointer())
			}
			to.SetMapIndex(i.Key(), copied)
		}
		reflect.NewAt(t, dst).Elem().Set(to)
	}, nil
}

// copyStrings copies a map of strings.
func copyStrings(dst, src unsafe.Pointer) {
	*(*map[string]string)(dst) = maps.Clone(*(*map[string]string)(src))
}

// ownCopy returns the copy of a type that says how it is copied.
func (c *compiler) ownCopy(t reflect.Type, path string) (copyFunc, bool) {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return func(dst, src unsafe.Pointer) {
			*(*resource.Quantity)(dst) = (*resource.Quantity)(src).DeepCopy()
		}, true
	case reflect.TypeFor[metav1.ObjectMeta]():
		return func(dst, src unsafe.Pointer) {
			(*metav1.ObjectMeta)(src).DeepCopyInto((*metav1.ObjectMeta)(dst))
		}, true
	case reflect.TypeFor[metav1.TypeMeta](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[metav1.Condition]():
		return nil, true
	}
	if t.Kind() == reflect.Pointer || t.Name() == "" {
		return nil, false
	}
	method, ok := reflect.PointerTo(t).MethodByName("DeepCopyInto")
	if !ok || method.Type.NumIn() != 2 || method.Type.NumOut() != 0 || method.Type.In(1) != reflect.PointerTo(t) {
		return nil, false
	}
	if strings.HasPrefix(t.PkgPath(), "k8s.io/api") {
		// The methods of these packages are generated: they copy field by field, which a
		// plan does faster than a call by reflection.
		if do, err := c.byKind(t, path); err == nil {
			return do, true
		}
	}
	call, mayBeNil := method.Func, t.Kind() == reflect.Map || t.Kind() == reflect.Slice
	return func(dst, src unsafe.Pointer) {
		if mayBeNil && reflect.NewAt(t, src).Elem().IsNil() {
			return // generated methods of such types make an empty one of nil
		}
		call.Call([]reflect.Value{reflect.NewAt(t, src), reflect.NewAt(t, dst)})
	}, true
}
