// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

const (
	// largestShape is how long a shape may be to be remembered, in bytes.
	largestShape = 64 << 10
	// shapesAtMost is how many are, for one kind, and rememberedAtMost of how many
	// bytes what is remembered of them is, as a rule.
	shapesAtMost, rememberedAtMost = 2048, 4 << 20
	// fewManagers own an object of which a shape is remembered: of more, a real
	// server merges the oldest.
	fewManagers = 8
)

// ownerships remember what a field manager has said. Who owns what after a
// write depends on who did before, on which fields there are and on which of
// them the write changes, not on their values; most writes of a kind are alike
// in this. Safe for concurrent use.
type ownerships struct {
	mu struct {
		sync.Mutex
		of    map[shape]*ownership
		bytes int
	}
}

// ownership is the entries after writes of one shape.
type ownership struct {
	entries []owner
	recipe  *recipe // of an apply
	mu      struct {
		sync.Mutex
		// last is what the entries were at a time. Objects of one second share it.
		last []any
		at   string
	}
}

// owner is one entry of managedFields.
type owner struct {
	fields map[string]any // but its time
	from   int            // the entry before that it has its time from, or what follows
}

// Where an entry has its time from that has it from none before.
const (
	fromNow  = -1
	timeless = -2
)

// recall is what is known of writes of a shape; nil: nothing.
func (o *ownerships) recall(of shape) *ownership {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.of[of]
}

func (o *ownerships) remember(of shape, known *ownership) {
	o.mu.Lock()
	defer o.mu.Unlock()
	size := known.size()
	if o.mu.of == nil || len(o.mu.of) >= shapesAtMost || o.mu.bytes+size > rememberedAtMost {
		o.mu.of, o.mu.bytes = map[shape]*ownership{}, 0
	}
	if was := o.mu.of[of]; was != nil {
		o.mu.bytes -= was.size()
	}
	o.mu.of[of], o.mu.bytes = known, o.mu.bytes+size
}

// size is about how many bytes it takes, and twice that for entries that are kept
// with their time.
func (o *ownership) size() int {
	n := o.recipe.size()
	for _, e := range o.entries {
		n += 2 * sizeOf(e.fields)
	}
	return n
}

// sizeOf is about how many bytes a value of JSON takes.
func sizeOf(value any) int {
	const each = 64 // of a map, or of what stands in for a value
	n := each
	switch v := value.(type) {
	case string:
		n += len(v)
	case map[string]any:
		for name, inner := range v {
			n += len(name) + sizeOf(inner)
		}
	case []any:
		for _, inner := range v {
			n += sizeOf(inner)
		}
	}
	return n
}

// after are the entries of an object with those before, in the order of a real
// server. Nobody may change them.
func (o *ownership) after(before []any, now string) []any {
	own := !slices.ContainsFunc(o.entries, func(e owner) bool { return e.from >= 0 })
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.last == nil || o.mu.at != now || !own {
		o.mu.last, o.mu.at = o.entriesAt(before, now), now
	}
	return o.mu.last
}

func (o *ownership) entriesAt(before []any, now string) []any {
	out := make([]any, 0, len(o.entries))
	for _, e := range o.entries {
		entry := maps.Clone(e.fields)
		if e.from == fromNow {
			entry["time"] = now
		} else if e.from >= 0 {
			if was, _ := before[e.from].(map[string]any); was["time"] != nil {
				entry["time"] = was["time"]
			}
		}
		out = append(out, entry)
	}
	slices.SortStableFunc(out, func(a, b any) int {
		x, _ := a.(map[string]any)
		y, _ := b.(map[string]any)
		for _, name := range []string{"operation", "time", "manager", "apiVersion", "subresource"} {
			p, _ := x[name].(string)
			q, _ := y[name].(string)
			if c := cmp.Compare(p, q); c != 0 {
				return c
			}
		}
		return 0
	})
	return out
}

// marked are entries with a time each that tells it apart, so that it can be
// told afterwards which of them were left alone.
func marked(entries []any) []any {
	out := make([]any, len(entries))
	for i, each := range entries {
		entry, _ := each.(map[string]any)
		entry = maps.Clone(entry)
		entry["time"] = markOf(i)
		out[i] = entry
	}
	return out
}

func markOf(i int) string { return entryTime(time.Unix(int64(i), 0)) }

// ownershipOf is what a field manager has made of marked entries.
func ownershipOf(entries []any, marks int) *ownership {
	known := &ownership{}
	for _, each := range entries {
		entry, _ := each.(map[string]any)
		e := owner{fields: maps.Clone(entry), from: fromNow}
		if entry["time"] == nil {
			e.from = timeless
		}
		for i := range marks {
			if entry["time"] == markOf(i) {
				e.from = i
			}
		}
		delete(e.fields, "time")
		known.entries = append(known.entries, e)
	}
	return known
}

// entriesOf are the managed fields of an object; nil: none.
func entriesOf(o *object.Object) []any {
	if o == nil {
		return nil
	}
	entries, _ := object.MetadataOf(o)["managedFields"].([]any)
	return entries
}

// notOwnedOfMetadata is what of metadata nobody comes to own by a write.
var notOwnedOfMetadata = []string{"name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion"}

// shapeOf is the shape of the write of obj in place of old; nil: of nothing. It
// is false for a write that is not worth to be remembered.
func (q *writing) shapeOf(old, obj *object.Object) (of shape, ok bool) {
	if given := entriesOf(obj); len(given) > 0 && (old == nil || !jsonvalue.Equal(given, entriesOf(old))) {
		return of, false
	}
	return q.shape('u', old, obj.Fields, notOwnedOfMetadata...)
}

// shapeOfApply is the same for an apply.
func (q *writing) shapeOfApply(old *object.Object, given map[string]any) (of shape, ok bool) {
	if q.manager == lastAppliedManager || given["apiVersion"] != q.kind.GroupVersion().String() || given["kind"] != q.kind.Kind {
		return of, false
	}
	how := byte('a')
	if q.force {
		how = 'f'
	}
	return q.shape(how, old, given, "managedFields")
}

// lastAppliedManager is a manager for which a field manager looks at an
// annotation's value.
const lastAppliedManager = "kubectl"

// shapeRooms are where shapes are written down.
var shapeRooms = sync.Pool{New: func() any { return new([]byte) }}

func (q *writing) shape(how byte, old *object.Object, is map[string]any, notOfMetadata ...string) (of shape, ok bool) {
	rules, err := q.kind.managers.rulesOf(q.kind)
	if err != nil || rules == nil || old != nil && old.Poison {
		return of, false
	}
	live := q.kind.nothingShared()
	if old != nil {
		live = old.Fields
	}
	room, _ := shapeRooms.Get().(*[]byte)
	s := &shaping{schema: rules.schema, to: append((*room)[:0], how)}
	defer func() {
		*room = s.to
		shapeRooms.Put(room)
	}()
	s.word(q.subresource)
	s.word(q.manager)
	if old != nil {
		s.to = append(s.to, 'o')
	}
	if !s.entries(entriesOf(old), q.kind.GroupVersion().String()) {
		return of, false
	}
	was, _ := live["metadata"].(map[string]any)
	now, _ := is["metadata"].(map[string]any)
	root, ok := s.schema.Resolve(rules.root)
	if !ok || root.Map == nil || was == nil && old != nil || now == nil {
		return of, false
	}
	metadata, ok := s.schema.Resolve(typeOf(root.Map, "metadata"))
	if !ok || metadata.Map == nil || !s.fields(was, now, metadata.Map, notOfMetadata...) {
		return of, false
	}
	but := []string{"metadata", "kind", "apiVersion"}
	if part := q.notOwnedPart(); part != "" && (how == 'u' || is[part] == nil) {
		s.word(part)
		if but = append(but, part); !s.look(live[part]) || !s.look(is[part]) {
			return of, false
		}
	}
	if !s.fields(live, is, root.Map, but...) || len(s.to) > largestShape {
		return of, false
	}
	return sha256.Sum256(s.to), true
}

// notOwnedPart is the part of an object whose fields change hands by no such
// write; empty: none.
func (q *writing) notOwnedPart() string {
	switch {
	case q.subresource == "" && q.kind.status:
		return "status"
	case q.subresource == "status":
		return "spec"
	}
	return ""
}

// entries appends who owns what before, but since when.
func (s *shaping) entries(list []any, version string) bool {
	if len(list) > fewManagers {
		return false
	}
	for _, each := range list {
		entry, _ := each.(map[string]any)
		if entry["apiVersion"] != version {
			return false // it is held against the object in that version
		}
		var err error
		if s.to, err = appendFields(s.to, entry, "time"); err != nil || len(s.to) > largestShape {
			return false
		}
	}
	return true
}

// entryTime is a time as managed fields hold it.
func entryTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
