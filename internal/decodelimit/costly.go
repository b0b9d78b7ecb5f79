// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decodelimit

import (
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// CostlyPlan knows where values of one type may be costly. A nil CostlyPlan finds nothing.
type CostlyPlan struct {
	number  bounds                 // of a scalar
	nests   bool                   // a type that decodes itself may contain itself
	inside  *CostlyPlan            // of all within a type that decodes itself: which field has it is not known
	fields  map[string]*CostlyPlan // of a struct, by JSON name
	elem    *CostlyPlan            // of a list, map or pointer
	numbers map[int]*CostlyPlan    // the fields of a struct, by number in protobuf
	mapped  bool                   // a map: in protobuf, a message with its key and value
	listed  bool                   // a list that is a message in protobuf
	leads   bool                   // to something costly
}

var costlyPlans sync.Map // from reflect.Type to *CostlyPlan

// CostlyPlanOf returns the plan of a type, or of what a pointer leads to. It is compiled once.
func CostlyPlanOf(t reflect.Type) *CostlyPlan {
	if p, known := costlyPlans.Load(t); known {
		return p.(*CostlyPlan)
	}
	c := costlyCompiler{begun: map[reflect.Type]*CostlyPlan{}}
	p := c.compile(t)
	for changed := true; changed; {
		changed = false
		for _, q := range c.begun {
			if !q.leads && q.leadsOn() {
				q.leads, changed = true, true
			}
		}
	}
	for _, q := range c.begun {
		q.prune()
	}
	if !p.leads {
		p = nil
	}
	known, _ := costlyPlans.LoadOrStore(t, p)
	return known.(*CostlyPlan)
}

func (p *CostlyPlan) leadsOn() bool {
	if p.number != (bounds{}) || p.nests || p.elem != nil && p.elem.leads {
		return true
	}
	for _, f := range p.fields {
		if f.leads {
			return true
		}
	}
	return false
}

// prune removes what leads to nothing.
func (p *CostlyPlan) prune() {
	if p.elem != nil && !p.elem.leads {
		p.elem = nil
	}
	for name, f := range p.fields {
		if !f.leads {
			delete(p.fields, name)
		}
	}
	for number, f := range p.numbers {
		if !f.leads {
			delete(p.numbers, number)
		}
	}
}

// message is implemented by generated types of protobuf.
type message interface{ Unmarshal([]byte) error }

type costlyCompiler struct{ begun map[reflect.Type]*CostlyPlan }

func (c *costlyCompiler) compile(t reflect.Type) *CostlyPlan {
	if p := c.begun[t]; p != nil {
		return p
	}
	p := &CostlyPlan{}
	c.begun[t] = p
	if known, is := numberOf(t); is {
		p.number = known
		return p
	}
	if decodesItself(t) {
		p.number, p.nests = within(t, t, map[reflect.Type]bool{})
		p.inside = &CostlyPlan{number: p.number, nests: p.nests}
		p.inside.inside = p.inside
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		p.elem = c.compile(t.Elem())
		p.listed = t.Kind() == reflect.Slice && reflect.PointerTo(t).Implements(reflect.TypeFor[message]())
	case reflect.Map:
		p.elem, p.mapped = c.compile(t.Elem()), true
	case reflect.Struct:
		p.fields, p.numbers = map[string]*CostlyPlan{}, map[int]*CostlyPlan{}
		c.addFields(p, t)
	}
	return p
}

// addFields adds the fields of a struct, with those of embedded ones.
func (c *costlyCompiler) addFields(p *CostlyPlan, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		if parts := strings.Split(f.Tag.Get("protobuf"), ","); len(parts) > 1 {
			if number, err := strconv.Atoi(parts[1]); err == nil {
				p.numbers[number] = c.compile(f.Type)
			}
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Tag.Get("json") == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if f.Anonymous && name == "" && inner.Kind() == reflect.Struct {
			if e := c.compile(inner); e != p {
				for name, field := range e.fields {
					p.fields[name] = cmp.Or(p.fields[name], field)
				}
			}
			continue
		}
		name = cmp.Or(name, f.Name)
		p.fields[name] = c.compile(f.Type)
	}
}

// decodesItself reports whether t has its own JSON decoding.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Kind() != reflect.Interface && t.Kind() != reflect.Pointer &&
		(p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()))
}

// within returns the narrowest bounds of a number that the fields of t lead to, and
// whether they lead back to root.
func within(root, t reflect.Type, seen map[reflect.Type]bool) (number bounds, nests bool) {
	if known, is := numberOf(t); is {
		return known, false
	}
	if seen[t] {
		return number, t == root
	}
	seen[t] = true
	add := func(t reflect.Type) {
		n, again := within(root, t, seen)
		if n.text > 0 && (number.text == 0 || n.text < number.text) {
			number = n
		}
		nests = nests || again
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		add(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			add(t.Field(i).Type)
		}
	}
	return number, nests
}
