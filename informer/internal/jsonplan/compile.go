// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/share"
	"github.com/flyball-dev/flyball/internal/decodelimit"
)

// form is how a node decodes values.
type form uint8

const (
	formSkipped form = iota // nothing is kept
	formString
	formBool
	formInt
	formUint
	formFloat
	formRecord
	formPointer
	formSlice
	formBytes
	formStrings    // a map of strings
	formQuantities // a map of quantities
	formMap        // any other map whose keys are strings
	formAny
	formTree // map[string]any
	formTime
	formMicroTime
	formIntOrString
	formJSON      // the type's own UnmarshalJSON
	formText      // the type's own UnmarshalText
	formReference // by the reference
)

func (f form) isScalar() bool { return f >= formBool && f <= formFloat }

// node is the plan of the values of one type in one place.
type node struct {
	form   form
	typ    reflect.Type
	size   uintptr
	elem   *node                   // of a pointer, slice or map
	record *record                 // of a struct
	tree   *branch                 // of any
	shares bool                    // a pointer whose target may be shared
	alone  reflect.Type            // a struct with this field alone
	prune  *fields.Set             // of a value decoded by the reference
	site   share.Site              // of values, of a map of keys
	costly *decodelimit.CostlyPlan // of a value that the type's own method or the reference decodes
}

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	objectMeta      = reflect.TypeFor[metav1.ObjectMeta]()
	numberType      = reflect.TypeFor[json.Number]()
)

// natively has the types whose UnmarshalJSON the plan does itself.
var natively = map[reflect.Type]form{
	reflect.TypeFor[metav1.Time]():        formTime,
	reflect.TypeFor[metav1.MicroTime]():   formMicroTime,
	reflect.TypeFor[intstr.IntOrString](): formIntOrString,
}

// compiler makes the plan of a type.
type compiler struct {
	records map[recordOf]*record
}

// recordOf is what the plan of a struct depends on.
type recordOf struct {
	typ reflect.Type
	sel string
}

// node returns the plan of the values of t, of which it keeps sel. addressed: t's methods count even
// if t has no name, as behind a pointer.
func (c *compiler) node(t reflect.Type, sel *fields.Set, addressed bool) (*node, error) {
	n := &node{typ: t, size: t.Size()}
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && (addressed || t.Name() != "") {
		switch to := reflect.PointerTo(t); {
		case natively[t] != 0:
			n.form = natively[t]
			return n, nil
		case to.Implements(jsonUnmarshaler):
			n.form, n.costly = formJSON, decodelimit.CostlyPlanOf(t)
			return n, nil
		case to.Implements(textUnmarshaler):
			n.form, n.costly = formText, decodelimit.CostlyPlanOf(t)
			return n, nil
		}
	}
	err := c.ofKind(n, t, sel)
	if n.form == formReference {
		n.alone, n.prune, n.costly = alone(t, "X"), sel, decodelimit.CostlyPlanOf(t)
	}
	return n, err
}

func alone(t reflect.Type, tag string) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{Name: "X", Type: t, Tag: reflect.StructTag(`json:"` + tag + `"`)}})
}

func (c *compiler) ofKind(n *node, t reflect.Type, sel *fields.Set) (err error) {
	n.form = formReference
	switch t.Kind() {
	case reflect.String:
		if t != numberType {
			n.form = formString
		}
	case reflect.Bool:
		n.form = formBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n.form = formInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		n.form = formUint
	case reflect.Float32, reflect.Float64:
		n.form = formFloat
	case reflect.Struct:
		n.form = formRecord
		n.record, err = c.record(t, sel)
	case reflect.Pointer:
		n.form = formPointer
		n.elem, err = c.node(t.Elem(), sel, true)
		// A scalar takes less time and memory than its place in the table.
		n.shares = err == nil && n.elem.size > 0 && !n.elem.form.isScalar()
	case reflect.Slice:
		n.form = formSlice
		if t.Elem().Kind() == reflect.Uint8 {
			n.form = formBytes
		}
		n.elem, err = c.node(t.Elem(), sel, false)
	case reflect.Map:
		return c.ofMap(n, t)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			n.form, n.tree = formAny, &branch{}
		}
	}
	return err
}

func (c *compiler) ofMap(n *node, t reflect.Type) (err error) {
	if t.Key().Kind() != reflect.String || reflect.PointerTo(t.Key()).Implements(textUnmarshaler) {
		n.form = formReference
		return nil
	}
	n.form = formMap
	if n.elem, err = c.node(t.Elem(), nil, false); err != nil {
		return err
	}
	switch {
	case n.elem.form == formString:
		n.form = formStrings
	case t.Elem() == reflect.TypeFor[resource.Quantity]():
		n.form = formQuantities
	case n.elem.form == formAny:
		n.form, n.tree = formTree, n.elem.tree
	}
	return nil
}

func (c *compiler) record(t reflect.Type, sel *fields.Set) (*record, error) {
	of := recordOf{typ: t, sel: sel.Identity()}
	if r := c.records[of]; r != nil {
		return r, nil
	}
	r := &record{}
	c.records[of] = r
	members := membersOf(t)
	if len(members) > mostFields {
		return nil, fmt.Errorf("%s has %d fields, and a plan has at most %d", t, len(members), mostFields)
	}
	r.fields = make([]field, len(members))
	for i, m := range members {
		for _, h := range m.hops {
			if h.hidden {
				return nil, fmt.Errorf("%s embeds a pointer to %s, which is not exported", t, h.typ)
			}
		}
		n, err := c.field(m, sel)
		if err != nil {
			return nil, err
		}
		r.fields[i].set(m.name, m.hops, m.at, n, i)
	}
	r.index()
	return r, nil
}

// field returns the plan of a field's values.
func (c *compiler) field(m member, sel *fields.Set) (*node, error) {
	sub, keep := sel.Child(m.name)
	if !keep {
		return &node{form: formSkipped}, nil
	}
	if m.quoted {
		return &node{form: formReference, typ: m.Type, size: m.Type.Size(), alone: alone(m.Type, "X,string")}, nil
	}
	return c.node(m.Type, sub, false)
}

// withoutManagedFields makes root, a struct, leave out the managedFields of its
// own metadata. Other metadata in it, such as a template's, is as it was.
func withoutManagedFields(root *record) {
	at := root.find([]byte("metadata"))
	if at < 0 || root.fields[at].node.typ != objectMeta {
		return
	}
	n := root.fields[at].node
	all := n.record.fields
	own := &record{fields: make([]field, len(all))}
	for i := range all {
		own.fields[i].set(all[i].name, all[i].hops, all[i].at, all[i].node, i)
		if all[i].name == "managedFields" {
			own.fields[i].node = &node{form: formSkipped}
		}
	}
	own.index()
	n.record = own
}
