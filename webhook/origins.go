// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/flyball-dev/flyball/internal/jsontree"
)

// identities are fields that identify an element of a list by convention. An element with
// a new value of a strong one is a new element; with a new port it may be a changed one.
var identities = [...]struct {
	field  string
	strong bool
}{{"uid", true}, {"mountPath", true}, {"name", true}, {"devicePath", false}, {"containerPort", false}, {"port", false}, {"ip", false}, {"type", false}, {"key", false}}

// matching finds where the elements of a list come from that a function has changed.
type matching struct {
	original, before, after []any
	from                    []int  // for each of after its origin in before; -1: it is new
	taken                   []bool // for each of before
	doubt                   bool   // an element with hidden fields may be the origin of one that is new
}

// origins matches the elements of after with those of before. Equal elements match in
// order, the others if each field that identifies elements says the same.
func origins(original, before, after []any) matching {
	m := matching{original: original, before: before, after: after, from: make([]int, len(after)), taken: make([]bool, len(before))}
	for i := range m.from {
		m.from[i] = -1
	}
	m.equals()
	m.identified()
	return m
}

func (m *matching) match(i, j int) { m.from[i], m.taken[j] = j, true }

// hashed is an element of a list, by a hash of its value.
type hashed struct {
	hash  uint64
	index int
}

func hashesOf(list []any, seed maphash.Seed) []hashed {
	out := make([]hashed, len(list))
	for i, v := range list {
		out[i] = hashed{hashOf(seed, v), i}
	}
	slices.SortFunc(out, func(a, b hashed) int { return cmp.Or(cmp.Compare(a.hash, b.hash), a.index-b.index) })
	return out
}

// hashOf is equal for trees that are equal.
func hashOf(seed maphash.Seed, v any) uint64 {
	const odd = 0x9e3779b97f4a7c15
	sum := uint64(odd)
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			sum += (maphash.String(seed, name) ^ hashOf(seed, value)*odd) * odd
		}
	case []any:
		for _, value := range v {
			sum = (sum ^ hashOf(seed, value)) * odd
		}
	default:
		return maphash.Comparable(seed, v)
	}
	return sum
}

// equals matches equal elements in order: to the function they were the same. If one of
// several is gone, it is not known which, unless they are the same in the original too.
func (m *matching) equals() {
	seed := maphash.MakeSeed()
	b, a := hashesOf(m.before, seed), hashesOf(m.after, seed)
	for len(b) > 0 && len(a) > 0 {
		if c := cmp.Compare(b[0].hash, a[0].hash); c < 0 {
			b = b[1:]
			continue
		} else if c > 0 {
			a = a[1:]
			continue
		}
		var of, to []hashed
		of, b = run(b)
		to, a = run(a)
		if len(to) < len(of) && m.differ(of) {
			m.doubt = true
			continue
		}
		for n := range min(len(of), len(to)) {
			if jsontree.Equal(m.before[of[n].index], m.after[to[n].index]) { // else the hashes collide
				m.match(to[n].index, of[n].index)
			}
		}
	}
}

// run splits off the elements at the start that have the same hash.
func run(list []hashed) (same, rest []hashed) {
	n := 1
	for n < len(list) && list[n].hash == list[0].hash {
		n++
	}
	return list[:n], list[n:]
}

// differ reports whether elements that look the same hide different fields.
func (m *matching) differ(same []hashed) bool {
	first := same[0].index
	return slices.ContainsFunc(same[1:], func(one hashed) bool {
		return !jsontree.Equal(m.original[first], m.original[one.index]) && (m.hides(one.index) || m.hides(first))
	})
}

// identified matches the elements that are left.
func (m *matching) identified() {
	var left []int
	for i := range m.after {
		if m.from[i] < 0 {
			left = append(left, i)
		}
	}
	if len(left) == 0 || !slices.Contains(m.taken, false) {
		return // nothing is new, or everything that is left is
	}
	partners, fresh := m.partners(left)
	for i, j := range partners {
		if j >= 0 {
			m.match(left[i], j)
		}
	}
	for i := range left {
		if partners[i] >= 0 || partners[i] == none && fresh[i] {
			continue
		}
		for j := range m.before { // any of these may be its origin
			m.doubt = m.doubt || !m.taken[j] && m.hides(j)
		}
		break
	}
}

const (
	none     = -1
	disputed = -2
)

// partners returns for each of left the element of before that all identifying fields
// name, and whether a strong one says that there is none.
func (m *matching) partners(left []int) (partners []int, fresh []bool) {
	partners, fresh = make([]int, len(left)), make([]bool, len(left))
	for i := range partners {
		partners[i] = none
	}
	for _, id := range identities {
		before, after := identifiedBy(m.before, id.field), identifiedBy(m.after, id.field)
		if before == nil || after == nil {
			continue
		}
		for i, at := range left {
			fields, _ := m.after[at].(map[string]any)
			j, there := before[fields[id.field]]
			switch {
			case !there:
				fresh[i] = fresh[i] || id.strong
			case m.taken[j] || partners[i] != none && partners[i] != j:
				partners[i] = disputed
			case fresh[i] && !id.strong && partners[i] == none: // another one, of the same type or port?
				partners[i] = disputed
			default:
				partners[i] = j
			}
		}
	}
	disputeShared(partners)
	return partners, fresh
}

// disputeShared makes partners disputed that several elements have.
func disputeShared(partners []int) {
	claimed := map[int]int{}
	for i, j := range partners {
		if j < 0 {
			continue
		}
		if other, twice := claimed[j]; twice {
			partners[i], partners[other] = disputed, disputed
		}
		claimed[j] = i
	}
}

// identifiedBy returns the elements by a field; nil: it does not identify each of them.
func identifiedBy(list []any, field string) map[any]int {
	out := make(map[any]int, len(list))
	for i, element := range list {
		fields, _ := element.(map[string]any)
		switch value := fields[field].(type) {
		case string, int64, float64:
			if _, twice := out[value]; twice || value == "" {
				return nil
			}
			out[value] = i
		default:
			return nil
		}
	}
	return out
}

// hides reports whether an element has fields that its view does not show.
func (m *matching) hides(j int) bool { return hides(m.original[j], m.before[j]) }

func hides(original, view any) bool {
	switch original := original.(type) {
	case map[string]any:
		view, ok := view.(map[string]any)
		for name, value := range original {
			if shown, there := view[name]; !ok || !there || hides(value, shown) {
				return true
			}
		}
	case []any:
		view, ok := view.([]any)
		if !ok || len(view) != len(original) {
			return len(original) > 0
		}
		for i := range original {
			if hides(original[i], view[i]) {
				return true
			}
		}
	}
	return false
}
