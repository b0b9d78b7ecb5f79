// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package protoplan

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/share"
	"github.com/flyball-dev/flyball/internal/decodelimit"
)

// Plan decodes messages of one Go type. Make it with Compile.
type Plan struct {
	root    *message
	pointer reflect.Type
	states  sync.Pool // of *state
}

// message is the plan of a struct.
type message struct {
	size   uint32
	broken bool     // not all of its fields are known
	fields []*field // by number; nil: not known
}

// shape is how a field holds its values.
type shape uint8

const (
	plain   shape = iota
	pointer       // to one value
	list          // a slice
	dict          // a map from strings
)

// kind is what a value is on the wire and in memory.
type kind uint8

const (
	boolean kind = iota // varints
	int32s
	int64s
	float64s // fixed
	float32s
	text // length and bytes
	data
	struc
	instant
	microInstant
	quantity
	opaque // decoded by its own method
	left   // not kept
)

// Wire types.
const (
	varint  = 0
	fixed64 = 1
	bytesOf = 2
	fixed32 = 5
)

var wireOf = [...]uint8{
	boolean: varint, int32s: varint, int64s: varint, float64s: fixed64, float32s: fixed32,
	text: bytesOf, data: bytesOf, struc: bytesOf, instant: bytesOf, microInstant: bytesOf, quantity: bytesOf, opaque: bytesOf,
}

// field is the plan of a struct's field.
type field struct {
	shape   shape
	kind    kind
	wire    uint8
	alone   bool // strings have allocations of their own
	simple  bool // a dict whose values are strings
	managed bool // managed fields, skipped unless wanted
	offset  uintptr
	typ     reflect.Type // of the field
	elem    reflect.Type // of its values
	size    uint32       // of a value
	of      *message     // of a struc
	part    share.Site   // its parts: what is behind the pointer, slice or map
	text    share.Site   // its strings, also in lists and as values of maps
	keys    share.Site
	costly  *decodelimit.CostlyPlan // of what its own method decodes
}

type unmarshaler interface{ Unmarshal([]byte) error }

var (
	unmarshalerType = reflect.TypeFor[unmarshaler]()
	objectMetaType  = reflect.TypeFor[metav1.ObjectMeta]()
	typeMetaType    = reflect.TypeFor[metav1.TypeMeta]()
	timeType        = reflect.TypeFor[metav1.Time]()
	microTimeType   = reflect.TypeFor[metav1.MicroTime]()
	quantityType    = reflect.TypeFor[resource.Quantity]()
	managedType     = reflect.TypeFor[[]metav1.ManagedFieldsEntry]()
)

// mostNumber is the largest number of a field that plans know: two bytes of tag.
const mostNumber = 1<<11 - 1

// Plans makes and caches the plans of one factory: parts of different kinds that
// have a type in common are shared. The zero value is ready for use. Safe for
// concurrent use.
type Plans struct {
	mu struct {
		sync.Mutex
		compiler
		plans map[chosen]*Plan
	}
}

// Of returns the plan of t and sel, as Compile does.
func (p *Plans) Of(t reflect.Type, sel *fields.Set) (*Plan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := chosen{t, sel.Identity()}
	if plan := p.mu.plans[key]; plan != nil {
		return plan, nil
	}
	if p.mu.plans == nil {
		p.mu.plans, p.mu.done = make(map[chosen]*Plan), make(map[chosen]*message)
	}
	plan, err := p.mu.compile(t, sel)
	if err == nil {
		p.mu.plans[key] = plan
	}
	return plan, err
}

// Compile returns the plan of t, a struct type with the generated Unmarshal,
// and of what sel selects of it (nil: everything). The error says what the plan
// cannot read.
func Compile(t reflect.Type, sel *fields.Set) (*Plan, error) {
	return new(Plans).Of(t, sel)
}

// compiler makes plans that have messages in common.
type compiler struct{ done map[chosen]*message }

// chosen is a type with a selection.
type chosen struct {
	t   reflect.Type
	sel string
}

func (c *compiler) compile(t reflect.Type, sel *fields.Set) (*Plan, error) {
	if t.Kind() != reflect.Struct || !isGenerated(t) {
		return nil, fmt.Errorf("plan for the protobuf of %s: its Unmarshal is not known to be a generated one", t)
	}
	root, err := c.message(t, sel, true, false)
	if err != nil {
		return nil, fmt.Errorf("plan for the protobuf of %s: %w", t, err)
	}
	p := &Plan{root: root, pointer: reflect.PointerTo(t)}
	p.states.New = func() any { return new(state) }
	return p, nil
}

// isGenerated reports whether t is a struct whose fields all have their numbers
// in tags and whose Unmarshal is generated. Only packages of Kubernetes are
// known to keep to that.
func isGenerated(t reflect.Type) bool {
	path := t.PkgPath()
	if !strings.HasPrefix(path, "k8s.io/") && !strings.HasPrefix(path, "sigs.k8s.io/") || !reflect.PointerTo(t).Implements(unmarshalerType) {
		return false
	}
	if _, sized := reflect.PointerTo(t).MethodByName("MarshalToSizedBuffer"); !sized {
		return false
	}
	for f := range t.Fields() {
		if f.Type == typeMetaType && f.Anonymous {
			continue
		}
		if _, ok := numberOf(f); !ok || !f.IsExported() {
			return false
		}
	}
	return true
}

func numberOf(f reflect.StructField) (number int, ok bool) {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0, false
	}
	number, err := strconv.Atoi(parts[1])
	return number, err == nil && number > 0 && number <= mostNumber
}

// message compiles t. root: it is the whole object, and its metadata that of the
// object. alone: its strings have allocations of their own.
func (c *compiler) message(t reflect.Type, sel *fields.Set, root, alone bool) (*message, error) {
	m := &message{size: uint32(t.Size())}
	if key := (chosen{t, sel.Identity()}); !root && !alone {
		switch known := c.done[key]; {
		case known != nil && known.broken:
			return known, fmt.Errorf("%s is not read", t)
		case known != nil:
			return known, nil
		}
		c.done[key] = m // before its fields, which may contain t
	}
	for f := range t.Fields() {
		number, ok := numberOf(f)
		if !ok {
			continue
		}
		into := &field{offset: f.Offset, typ: f.Type, alone: alone || root && f.Type == objectMetaType}
		if sub, keep := selected(f, sel); !keep {
			into.kind = left
		} else if err := c.value(into, sub, f); err != nil {
			m.broken = true // others may refer to it
			return m, fmt.Errorf("field %s of %s: %w", f.Name, t, err)
		}
		into.managed = alone && f.Type == managedType
		for number >= len(m.fields) {
			m.fields = append(m.fields, nil)
		}
		m.fields[number] = into
	}
	return m, nil
}

// selected returns what sel selects of a field.
func selected(f reflect.StructField, sel *fields.Set) (*fields.Set, bool) {
	tag := f.Tag.Get("json")
	name, _, _ := strings.Cut(tag, ",")
	switch {
	case tag == "-":
		return nil, true
	case name == "" && f.Anonymous:
		return sel, true
	case name == "":
		name = f.Name
	}
	return sel.Child(name)
}

// value sets the shape and the kind of a field.
func (c *compiler) value(into *field, sel *fields.Set, f reflect.StructField) error {
	t := f.Type
	switch {
	case isOpaque(t):
	case t.Kind() == reflect.Pointer:
		into.shape, t = pointer, t.Elem()
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		into.shape, t, sel = dict, t.Elem(), nil // a selection keeps maps whole
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		into.shape, t = list, t.Elem()
	}
	into.elem, into.size = t, uint32(t.Size())
	if wire, _, _ := strings.Cut(f.Tag.Get("protobuf"), ","); wire != "bytes" && wire != "varint" && !strings.HasPrefix(wire, "fixed") {
		return fmt.Errorf("%s as %s is not read", t, wire)
	}
	if err := c.kind(into, sel); err != nil {
		return err
	}
	if into.kind == quantity || into.kind == opaque {
		into.costly = decodelimit.CostlyPlanOf(t)
	}
	into.simple = into.shape == dict && into.kind == text
	into.wire = wireOf[into.kind]
	if into.shape == dict && into.wire != bytesOf {
		return fmt.Errorf("maps of %s are not read", t)
	}
	return nil
}

// isOpaque reports whether a list or map reads itself, as one message.
func isOpaque(t reflect.Type) bool {
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) && reflect.PointerTo(t).Implements(unmarshalerType)
}

var (
	scalars = map[reflect.Kind]kind{
		reflect.Bool: boolean, reflect.Int32: int32s, reflect.Uint32: int32s, reflect.Int64: int64s,
		reflect.Uint64: int64s, reflect.Float64: float64s, reflect.Float32: float32s,
	}
	specials = map[reflect.Type]kind{timeType: instant, microTimeType: microInstant, quantityType: quantity}
)

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && t.Elem().PkgPath() == ""
}

// kind sets the kind of the field's values by their type: the wire type in the
// tags of Kubernetes is not always that of the generated code.
func (c *compiler) kind(into *field, sel *fields.Set) (err error) {
	t := into.elem
	if readsItself(t) {
		sel = nil
	}
	if scalar, ok := scalars[t.Kind()]; ok {
		into.kind = scalar
		return nil
	}
	if special, ok := specials[t]; ok {
		into.kind = special
		return nil
	}
	switch {
	case t.Kind() == reflect.Struct && isGenerated(t):
		into.kind = struc
		if into.of, err = c.message(t, sel, false, into.alone); err == nil {
			return nil
		}
		if sel != nil {
			return err
		}
		into.kind, into.of = opaque, nil
	case reflect.PointerTo(t).Implements(unmarshalerType):
		into.kind = opaque
		switch {
		case t.Kind() == reflect.Struct && sel != nil:
			return fmt.Errorf("%s is not read in part", t)
		case t.Kind() != reflect.Struct && (into.shape == pointer || into.shape == list):
			return fmt.Errorf("pointers to and lists of %s are not read", t)
		}
	case t.Kind() == reflect.String:
		into.kind = text
	case isBytes(t):
		into.kind = data
	default:
		return fmt.Errorf("%s is not read", t)
	}
	return nil
}

// readsItself reports whether t reads its JSON itself: a selection keeps it as a
// whole.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
