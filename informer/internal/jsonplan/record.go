// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import (
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
)

// record is the plan of a struct type: its fields by JSON name.
type record struct {
	fields []field
	first  atomic.Uint32 // the field that came first last time
	slots  []uint16      // a hash table: numbers of fields + 1, 0 for none
	seed   uint32
}

// field is one field of a record.
type field struct {
	name string
	hops []hop // through embedded pointers
	at   uintptr
	node *node
	next atomic.Uint32 // the field that followed last time
}

// set makes f the field number i.
func (f *field) set(name string, hops []hop, at uintptr, n *node, i int) {
	f.name, f.hops, f.at, f.node = name, hops, at, n
	f.next.Store(uint32(i + 1))
}

// hop is an embedded pointer on the way to a field: its offset, and the struct
// that it points to.
type hop struct {
	at     uintptr
	typ    reflect.Type
	hidden bool // the field is not exported
}

// mostFields is how many fields of a struct a plan can tell apart.
const mostFields = 256

// find returns the number of the field called name, or -1.
func (r *record) find(name []byte) int {
	for at := hash(name, r.seed); ; at++ {
		slot := r.slots[at&uint32(len(r.slots)-1)]
		if slot == 0 {
			return -1
		}
		if r.fields[slot-1].name == string(name) {
			return int(slot - 1)
		}
	}
}

func hash(name []byte, seed uint32) uint32 {
	n := len(name)
	if n == 0 {
		return 0
	}
	h := uint32(n) ^ uint32(name[0])<<8 ^ uint32(name[n/2])<<16 ^ uint32(name[n-1])<<24
	return h * seed >> 16
}

// index builds the hash table, with the seed of a few that collides least.
func (r *record) index() {
	size := 4
	for size < 3*len(r.fields) {
		size *= 2
	}
	fewest := len(r.fields) + 1
	for n := range uint32(32) {
		seed := 0x9e3779b1 + 2*n*0x01000193
		slots, collisions := r.placed(seed, size)
		if collisions < fewest {
			r.slots, r.seed, fewest = slots, seed, collisions
		}
	}
}

func (r *record) placed(seed uint32, size int) (slots []uint16, collisions int) {
	slots = make([]uint16, size)
	for i := range r.fields {
		at := hash([]byte(r.fields[i].name), seed) & uint32(size-1)
		if slots[at] != 0 {
			collisions++
		}
		for slots[at] != 0 {
			at = (at + 1) & uint32(size-1)
		}
		slots[at] = uint16(i + 1)
	}
	return slots, collisions
}

// member is a field of a struct, or of one embedded in it.
type member struct {
	reflect.StructField
	name   string // in JSON
	tagged bool
	quoted bool // with the option "string"
	depth  int
	hops   []hop
	at     uintptr
}

// embedded is a struct whose fields are those of the struct that embeds it.
type embedded struct {
	typ  reflect.Type
	hops []hop
	at   uintptr
}

// membersOf returns the fields that t has in JSON, by the rules of
// encoding/json: of several with a name the one that is embedded least deeply
// counts; if there are several such, the one whose name is in a tag; if there
// are several of those, none.
func membersOf(t reflect.Type) []member {
	var all []member
	seen := map[reflect.Type]bool{}
	level := []embedded{{typ: t}}
	for depth := 0; len(level) > 0; depth++ {
		var below []embedded
		times := map[reflect.Type]int{}
		for _, e := range level {
			times[e.typ]++
		}
		for _, e := range level {
			if seen[e.typ] {
				continue
			}
			seen[e.typ] = true
			own, inner := e.members(depth)
			for range min(times[e.typ], 2) {
				all = append(all, own...)
			}
			below = append(below, inner...)
		}
		level = below
	}
	return dominant(all)
}

// members returns the fields of e, and the structs that it embeds.
func (e embedded) members(depth int) (own []member, below []embedded) {
	for i := range e.typ.NumField() {
		f := e.typ.Field(i)
		inner := f.Type
		if inner.Name() == "" && inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		tag := f.Tag.Get("json")
		ofUnexported := f.Anonymous && inner.Kind() == reflect.Struct
		if tag == "-" || !f.IsExported() && !ofUnexported {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if !isName(name) {
			name = ""
		}
		if name == "" && f.Anonymous && inner.Kind() == reflect.Struct {
			next := embedded{typ: inner, hops: e.hops, at: e.at + f.Offset}
			if f.Type.Kind() == reflect.Pointer {
				next.hops = append(slices.Clone(e.hops), hop{at: next.at, typ: inner, hidden: !f.IsExported()})
				next.at = 0
			}
			below = append(below, next)
			continue
		}
		m := member{StructField: f, name: name, tagged: name != "", depth: depth, hops: e.hops, at: e.at + f.Offset}
		if name == "" {
			m.name = f.Name
		}
		m.quoted = isScalar(inner.Kind()) && slices.Contains(strings.Split(options, ","), "string")
		own = append(own, m)
	}
	return own, below
}

func isScalar(k reflect.Kind) bool {
	return k >= reflect.Bool && k <= reflect.Float64 || k == reflect.String
}

// isName reports whether a tag's name is used.
func isName(name string) bool {
	for _, c := range name {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) {
			return false
		}
	}
	return name != ""
}

func dominant(all []member) []member {
	var out []member
	for i, m := range all {
		wins := true
		for j, o := range all {
			shadows := o.depth < m.depth || o.depth == m.depth && (o.tagged || !m.tagged)
			wins = wins && (i == j || o.name != m.name || !shadows)
		}
		if wins {
			out = append(out, m)
		}
	}
	return out
}
