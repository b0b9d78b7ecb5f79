// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/flyball-dev/flyball/internal/jsontree"
)

// maxDepth of a value; a deeper one is taken to point to itself.
const maxDepth = 1000

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	jsonNumber    = reflect.TypeFor[json.Number]()
)

// prune converts a Go value to JSON values as encoding/json would, but omits fields of
// structs that say nothing. With omitempty or omitzero these are the empty ones: zero
// scalars, nil, structs of empty fields, and maps and lists without entries. Without,
// they are null and structs of omitted fields: a zero, or an empty list that is there, is
// meant. A value behind a pointer or in an interface is never empty, unless it is null in
// JSON. Entries of maps and elements of lists are always kept.
//
// keep is false for an empty value; tree is then the value to use where it must be
// kept.
func prune(v reflect.Value, depth int) (tree any, keep bool, err error) {
	if depth > maxDepth {
		return nil, false, fmt.Errorf("the value is nested more than %d deep; does it point to itself?", maxDepth)
	}
	switch v.Kind() {
	case reflect.Invalid:
		return nil, false, nil
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil, false, nil
		}
		tree, _, err = prune(v.Elem(), depth+1)
		return tree, tree != nil, err
	}
	if marshals(v.Type()) {
		return marshalled(v)
	}
	switch v.Kind() {
	case reflect.Struct:
		return pruneStruct(v, depth)
	case reflect.Map:
		return pruneMap(v, depth)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 && !marshals(v.Type().Elem()) {
			return base64.StdEncoding.EncodeToString(v.Bytes()), v.Len() > 0, nil
		}
		return pruneList(v, v.Len() > 0, depth)
	case reflect.Array:
		return pruneList(v, !v.IsZero(), depth)
	}
	return scalar(v)
}

func scalar(v reflect.Value) (tree any, keep bool, err error) {
	keep = !v.IsZero()
	switch v.Kind() {
	case reflect.String:
		if v.Type() == jsonNumber {
			return json.Number(cmp.Or(v.String(), "0")), keep, nil
		}
		return v.String(), keep, nil
	case reflect.Bool:
		return v.Bool(), keep, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), keep, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return v.Uint(), keep, nil
	case reflect.Float32:
		return float32(v.Float()), keep, nil
	case reflect.Float64:
		return v.Float(), keep, nil
	}
	return nil, false, fmt.Errorf("a %s cannot be sent as JSON", v.Type())
}

func pruneStruct(v reflect.Value, depth int) (tree any, keep bool, err error) {
	fields := make(map[string]field, v.NumField())
	flatten(v, 0, fields)
	out := map[string]any{}
	for name, f := range fields {
		// Most fields of API types are zero, and may be omitted.
		if f.ambiguous || f.value.IsZero() && f.omits {
			continue
		}
		t, keep, err := prune(f.value, depth+1)
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", name, err)
		}
		if !keep && (f.omits || !isSet(f.value, t)) {
			continue
		}
		if f.quoted {
			if t, err = quote(t); err != nil {
				return nil, false, fmt.Errorf("%s: %w", name, err)
			}
		}
		out[name] = t
	}
	return out, len(out) > 0, nil
}

// isSet reports whether an empty value of a field without omitempty is meant. tree is its JSON.
func isSet(v reflect.Value, tree any) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return !v.IsNil()
	case reflect.Struct:
		if fields, ok := tree.(map[string]any); ok {
			return len(fields) > 0
		}
	}
	return tree != nil
}

// printed lists the scalars that built-in types print without being asked: optional fields
// without omitempty, whose zero the server replaces by a default or takes for a field that is
// not there.
var printed = map[string]bool{
	"StatefulSetSpec.serviceName":                   true,
	"StatefulSetOrdinals.start":                     true,
	"PodFailurePolicyOnPodConditionsPattern.status": true,
	"Event.reportingComponent":                      true,
	"Event.reportingInstance":                       true,
	"FlowSchemaSpec.matchingPrecedence":             true,
	"QueuingConfiguration.queues":                   true,
	"QueuingConfiguration.handSize":                 true,
	"QueuingConfiguration.queueLengthLimit":         true,
	"RoleRef.apiGroup":                              true,
}

// printsUnasked reports whether the field is one of printed.
func printsUnasked(of reflect.Type, name string) bool {
	return printed[of.Name()+"."+name] && strings.HasPrefix(of.PkgPath(), "k8s.io/api/")
}

// field is a field of a struct, or of a struct embedded in it.
type field struct {
	value     reflect.Value
	depth     int
	omits     bool // if it is empty
	tagged    bool
	quoted    bool // the tag asks for the scalar as a string
	ambiguous bool
}

// flatten collects the fields of a struct and its embedded structs by JSON name, by the
// rules of encoding/json: the shallowest field wins, then a tagged one; fields that are
// still ambiguous are omitted.
func flatten(v reflect.Value, depth int, into map[string]field) {
	if depth > maxDepth {
		return
	}
	t := v.Type()
	for i := range t.NumField() {
		sf := t.Field(i)
		tag := sf.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if sf.Anonymous && name == "" {
			inner, isStruct := embedded(v.Field(i))
			if isStruct {
				if inner.IsValid() {
					flatten(inner, depth+1, into)
				}
				continue
			}
		}
		if !sf.IsExported() {
			continue
		}
		f := field{value: v.Field(i), depth: depth, tagged: name != "", quoted: quotes(options, sf.Type)}
		name = cmp.Or(name, sf.Name)
		f.omits = omits(options) || printsUnasked(t, name)
		if old, double := into[name]; double {
			f = dominant(old, f)
		}
		into[name] = f
	}
}

// embedded returns the struct of an anonymous field; it is invalid behind a nil
// pointer.
func embedded(v reflect.Value) (inner reflect.Value, isStruct bool) {
	if v.Kind() == reflect.Pointer {
		if v.Type().Elem().Kind() != reflect.Struct {
			return v, false
		}
		return v.Elem(), true
	}
	return v, v.Kind() == reflect.Struct
}

func dominant(a, b field) field {
	switch {
	case a.depth != b.depth:
		if b.depth < a.depth {
			return b
		}
		return a
	case a.tagged != b.tagged:
		if b.tagged {
			return b
		}
		return a
	}
	a.ambiguous = true
	return a
}

func omits(options string) bool {
	for option := range strings.SplitSeq(options, ",") {
		if option == "omitempty" || option == "omitzero" {
			return true
		}
	}
	return false
}

func quotes(options string, t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch k := t.Kind(); {
	case k == reflect.String, k == reflect.Bool, k >= reflect.Int && k <= reflect.Float64:
		for option := range strings.SplitSeq(options, ",") {
			if option == "string" {
				return !marshals(t)
			}
		}
	}
	return false
}

func quote(tree any) (any, error) {
	data, err := json.Marshal(tree)
	return string(data), err
}

func pruneMap(v reflect.Value, depth int) (tree any, keep bool, err error) {
	out := make(map[string]any, v.Len())
	for entries := v.MapRange(); entries.Next(); {
		name, err := mapKey(entries.Key())
		if err != nil {
			return nil, false, err
		}
		if out[name], _, err = prune(entries.Value(), depth+1); err != nil {
			return nil, false, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, len(out) > 0, nil
}

func mapKey(v reflect.Value) (string, error) {
	if v.Kind() == reflect.String {
		return v.String(), nil
	}
	if v.Type().Implements(textMarshaler) {
		if v.Kind() == reflect.Pointer && v.IsNil() {
			return "", nil
		}
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		return string(text), err
	}
	switch {
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), nil
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), nil
	}
	return "", fmt.Errorf("a %s cannot be the key of a JSON object", v.Type())
}

func pruneList(v reflect.Value, keep bool, depth int) (any, bool, error) {
	out := make([]any, v.Len())
	for i := range out {
		var err error
		if out[i], _, err = prune(v.Index(i), depth+1); err != nil {
			return nil, false, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return out, keep, nil
}

func marshals(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(marshaler) || p.Implements(textMarshaler)
}

// marshalled converts a value that implements json.Marshaler, such as Quantity, Time,
// IntOrString and RawExtension.
func marshalled(v reflect.Value) (tree any, keep bool, err error) {
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	if tree, err = jsontree.Of[any](p.Interface()); err != nil {
		return nil, false, err
	}
	zero := v.IsZero()
	if z, ok := p.Interface().(interface{ IsZero() bool }); ok {
		zero = zero || z.IsZero()
	}
	return tree, !zero && tree != nil, nil
}
