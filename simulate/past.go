// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// span is a part of the keys of a kind: not less than from, and less than to.
type span struct{ from, to types.NamespacedName }

// everything is all keys: no key is empty, and none has a byte as high as to's.
var everything = span{to: types.NamespacedName{Name: "\xff"}}

// spanOf is the keys of a namespace, or without one all, from a key in it on.
func spanOf(namespace, start string) span {
	if namespace == "" {
		in := everything
		if first, name, ok := strings.Cut(start, "/"); ok {
			in.from = types.NamespacedName{Namespace: first, Name: name}
		} else {
			in.from.Name = start
		}
		return in
	}
	// The zero comes after the slash.
	return span{types.NamespacedName{Namespace: namespace, Name: start}, types.NamespacedName{Name: namespace + "0"}}
}

func spanOfOne(key types.NamespacedName) span {
	return span{key, types.NamespacedName{Namespace: key.Namespace, Name: key.Name + "\x00"}}
}

// compareKeys orders keys as the store does: by their paths.
func compareKeys(a, b types.NamespacedName) int {
	if a.Namespace == b.Namespace {
		return strings.Compare(a.Name, b.Name)
	}
	n := min(len(a.Namespace), len(b.Namespace))
	if c := strings.Compare(a.Namespace[:n], b.Namespace[:n]); c != 0 {
		return c
	}
	return strings.Compare(pathOf(a), pathOf(b))
}

// pathOf is namespace, slash and name, or the name alone.
func pathOf(key types.NamespacedName) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// past is the objects of one kind at a revision: those of now, but for those
// that have changed since.
type past struct {
	now     *objectMap
	changed map[types.NamespacedName]*object // as they were; nil: not there
	keys    []types.NamespacedName           // of changed, in order
}

// at is the objects of r as they were at a revision. It is false when the
// revision is compacted or has not been reached. It is true until the next
// write.
func (l *revisionLog) at(r schema.GroupResource, revision int64) (past, bool) {
	if revision < l.compacted || revision > l.revision {
		return past{}, false
	}
	p := past{now: l.of(r)}
	for _, c := range slices.Backward(l.changes) {
		if c.revision <= revision {
			break
		}
		if c.resource != r {
			continue
		}
		if p.changed == nil {
			p.changed = map[types.NamespacedName]*object{}
		}
		p.changed[c.key] = c.before
	}
	p.keys = slices.SortedFunc(maps.Keys(p.changed), compareKeys)
	return p, true
}

// count is how many objects there were in a span.
func (p past) count(in span) int {
	n := p.now.Rank(in.to) - p.now.Rank(in.from)
	for _, key := range p.within(in) {
		if _, is := p.now.Get(key); is {
			n--
		}
		if p.changed[key] != nil {
			n++
		}
	}
	return n
}

// within are the keys in a span of objects that have changed.
func (p past) within(in span) []types.NamespacedName {
	from, _ := slices.BinarySearchFunc(p.keys, in.from, compareKeys)
	to, _ := slices.BinarySearchFunc(p.keys, in.to, compareKeys)
	return p.keys[from:max(from, to)]
}

// take is the first so many objects in a span.
func (p past) take(in span, most int) []*object {
	out := make([]*object, 0, most)
	add := func(obj *object) {
		if obj != nil && len(out) < most {
			out = append(out, obj)
		}
	}
	changed := p.within(in)
	left := p.now.Rank(in.to) - p.now.Rank(in.from)
	for key, obj := range p.now.From(in.from) {
		if left--; left < 0 || len(out) == most {
			break
		}
		for len(changed) > 0 && compareKeys(changed[0], key) < 0 {
			add(p.changed[changed[0]])
			changed = changed[1:]
		}
		if len(changed) > 0 && changed[0] == key {
			continue // it comes as it was
		}
		add(obj)
	}
	for _, key := range changed {
		add(p.changed[key])
	}
	return out
}
