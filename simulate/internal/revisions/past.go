// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// Span is a range of the keys of a kind: at least From, and less than To.
type Span struct{ From, To types.NamespacedName }

// Everything spans all keys: no key is empty, and none has a byte as high as that of To.
var Everything = Span{To: types.NamespacedName{Name: "\xff"}}

// SpanOf returns the keys of a namespace, or of all namespaces if it is empty, from start
// on.
func SpanOf(namespace, start string) Span {
	if namespace == "" {
		in := Everything
		if first, name, ok := strings.Cut(start, "/"); ok {
			in.From = types.NamespacedName{Namespace: first, Name: name}
		} else {
			in.From.Name = start
		}
		return in
	}
	// The zero byte follows the slash.
	return Span{types.NamespacedName{Namespace: namespace, Name: start}, types.NamespacedName{Name: namespace + "0"}}
}

func SpanOfOne(key types.NamespacedName) Span {
	return Span{key, types.NamespacedName{Namespace: key.Namespace, Name: key.Name + "\x00"}}
}

// CompareKeys orders keys as the store does: by path.
func CompareKeys(a, b types.NamespacedName) int {
	if a.Namespace == b.Namespace {
		return strings.Compare(a.Name, b.Name)
	}
	n := min(len(a.Namespace), len(b.Namespace))
	if c := strings.Compare(a.Namespace[:n], b.Namespace[:n]); c != 0 {
		return c
	}
	return strings.Compare(PathOf(a), PathOf(b))
}

// PathOf returns namespace, slash and name, or the name alone.
func PathOf(key types.NamespacedName) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// Past has the objects of one kind as of a revision: the current ones, except for those
// that have changed since.
type Past struct {
	now     *objectMap
	changed map[types.NamespacedName]*object.Object // as of the revision; nil: absent
	keys    []types.NamespacedName                  // of changed, in order
}

// At returns the objects of r as of a revision. It returns false if the revision is
// compacted or in the future. The result is valid until the next write.
func (l *Log) At(r schema.GroupResource, revision int64) (Past, bool) {
	if revision < l.Compacted || revision > l.Revision {
		return Past{}, false
	}
	p := Past{now: l.of(r)}
	for _, c := range slices.Backward(l.Changes) {
		if c.Revision <= revision {
			break
		}
		if c.Resource != r {
			continue
		}
		if p.changed == nil {
			p.changed = map[types.NamespacedName]*object.Object{}
		}
		p.changed[c.Key] = c.Before
	}
	p.keys = slices.SortedFunc(maps.Keys(p.changed), CompareKeys)
	return p, true
}

// Count returns the number of objects in a span.
func (p Past) Count(in Span) int {
	n := p.now.Rank(in.To) - p.now.Rank(in.From)
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

// within returns the keys in a span whose objects have changed.
func (p Past) within(in Span) []types.NamespacedName {
	from, _ := slices.BinarySearchFunc(p.keys, in.From, CompareKeys)
	to, _ := slices.BinarySearchFunc(p.keys, in.To, CompareKeys)
	return p.keys[from:max(from, to)]
}

// Take returns the first objects in a span, at most this many.
func (p Past) Take(in Span, most int) []*object.Object {
	out := make([]*object.Object, 0, most)
	add := func(obj *object.Object) {
		if obj != nil && len(out) < most {
			out = append(out, obj)
		}
	}
	changed := p.within(in)
	left := p.now.Rank(in.To) - p.now.Rank(in.From)
	for key, obj := range p.now.From(in.From) {
		if left--; left < 0 || len(out) == most {
			break
		}
		for len(changed) > 0 && CompareKeys(changed[0], key) < 0 {
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
