// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"
)

const (
	// largestShape is how long a shape may be to be remembered, in bytes.
	largestShape = 4 << 10
	// shapesAtMost is how many are, for one kind.
	shapesAtMost = 512
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
		of map[string]*ownership
	}
}

// ownership is the entries after writes of one shape. Nobody changes them.
type ownership struct {
	entries []owner
	// last is what they were at a time. Objects of one second share it.
	last []any
	at   string
}

// owner is one entry of managedFields.
type owner struct {
	fields map[string]any // but its time
	from   int            // the entry before that it has its time from; -1: it is of now
}

// recall sets obj's managed fields as the field manager would, if it was asked
// about such a write before.
func (o *ownerships) recall(shape []byte, old, obj *object, now string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.mu.of[string(shape)]
	if known == nil {
		return false
	}
	if known.last == nil || known.at != now || slices.ContainsFunc(known.entries, func(e owner) bool { return e.from >= 0 }) {
		known.last, known.at = known.entriesAt(entriesOf(old), now), now
	}
	metadataOf(obj)["managedFields"] = known.last
	return true
}

// entriesAt are the entries with their times, in the order of a real server.
func (o *ownership) entriesAt(before []any, now string) []any {
	out := make([]any, 0, len(o.entries))
	for _, e := range o.entries {
		entry := maps.Clone(e.fields)
		if e.from < 0 {
			entry["time"] = now
		} else if was, _ := before[e.from].(map[string]any); was["time"] != nil {
			entry["time"] = was["time"]
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

// remember keeps what the field manager has said of a write by manager.
func (o *ownerships) remember(shape []byte, old, obj *object, manager, now string) {
	before, after := entriesOf(old), entriesOf(obj)
	if len(before) > fewManagers || len(after) == 0 {
		return
	}
	kept := &ownership{}
	for _, each := range after {
		entry, _ := each.(map[string]any)
		from := slices.IndexFunc(before, func(b any) bool {
			was, _ := b.(map[string]any)
			return was["manager"] == entry["manager"] && was["operation"] == entry["operation"] &&
				was["apiVersion"] == entry["apiVersion"] && was["subresource"] == entry["subresource"]
		})
		if entry["manager"] == manager && entry["operation"] == "Update" {
			was := map[string]any{}
			if from >= 0 {
				was, _ = before[from].(map[string]any)
			}
			switch {
			case was["time"] == now:
				return // it cannot be told whether this write gave it the time
			case entry["time"] == now:
				from = -1
			case entry["time"] != was["time"]:
				return // the second has passed meanwhile
			}
		} else if from < 0 {
			return
		}
		fields := maps.Clone(entry)
		delete(fields, "time")
		kept.entries = append(kept.entries, owner{fields, from})
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.of == nil || len(o.mu.of) >= shapesAtMost {
		o.mu.of = map[string]*ownership{}
	}
	o.mu.of[string(shape)] = kept
}

func metadataOf(o *object) map[string]any {
	metadata, _ := o.fields["metadata"].(map[string]any)
	return metadata
}

// entriesOf are the managed fields of an object; nil: none.
func entriesOf(o *object) []any {
	if o == nil {
		return nil
	}
	entries, _ := metadataOf(o)["managedFields"].([]any)
	return entries
}

// notOwnedOfMetadata is what of metadata nobody owns, so that no shape has it.
var notOwnedOfMetadata = []string{"name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion"}

// shapeOf is all that decides who owns what after obj is written in place of
// old. It is false for a write that is not worth to be remembered.
func (q *writing) shapeOf(old, obj *object) (shape []byte, ok bool) {
	given := entriesOf(obj)
	is, was := metadataOf(obj), map[string]any{}
	live := q.kind.nothingShared()
	if old != nil {
		live, was = old.fields, metadataOf(old)
	}
	if is == nil || was == nil || len(given) > 0 && (old == nil || !reflect.DeepEqual(given, entriesOf(old))) {
		return nil, false
	}
	shape = append(shape, q.subresource...)
	shape = append(shape, 0)
	shape = append(shape, q.manager...)
	shape = append(shape, 0)
	if old != nil {
		shape = append(shape, 'u')
	}
	if len(given) > 0 {
		shape = append(shape, 'g')
	}
	for _, each := range entriesOf(old) {
		entry, _ := each.(map[string]any)
		var err error
		if shape, err = appendFields(shape, entry, "time"); err != nil || len(shape) > largestShape {
			return nil, false
		}
	}
	if shape, ok = appendShape(shape, was, is, notOwnedOfMetadata...); ok {
		shape, ok = appendShape(shape, live, obj.fields, "metadata", "kind", "apiVersion")
	}
	return shape, ok && len(shape) <= largestShape
}

// What stands in a shape for a field.
const (
	shapeGone    = '-'
	shapeNew     = '+'
	shapeSame    = '='
	shapeChanged = '~'
)

// appendShape appends the names of the fields of both, and how they differ.
func appendShape(to []byte, old, is map[string]any, but ...string) (_ []byte, ok bool) {
	var few [fewFields]string
	names := few[:0]
	for name := range is {
		names = append(names, name)
	}
	for name := range old {
		if _, both := is[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	to = append(to, '{')
	for _, name := range names {
		if contains(but, name) {
			continue
		}
		to = append(append(to, name...), 0)
		before, had := old[name]
		after, has := is[name]
		switch {
		case !has:
			to = append(to, shapeGone)
			to, ok = appendShapeOf(to, nil, before)
		case !had:
			to = append(to, shapeNew)
			to, ok = appendShapeOf(to, nil, after)
		default:
			to, ok = appendShapeOf(to, before, after)
		}
		if !ok || len(to) > largestShape {
			return nil, false
		}
	}
	return append(to, '}'), true
}

// appendShapeOf appends a value, and how it differs from the one before.
func appendShapeOf(to []byte, old, is any) ([]byte, bool) {
	switch v := is.(type) {
	case map[string]any:
		was, ok := old.(map[string]any)
		if !ok && old != nil {
			return nil, false
		}
		if v == nil {
			to = append(to, 'n')
		}
		return appendShape(to, was, v)
	case []any:
		was, ok := old.([]any)
		if !ok && old != nil {
			return nil, false
		}
		var err error
		if to, err = appendList(append(to, 'l'), was); err == nil {
			to, err = appendList(to, v)
		}
		return to, err == nil
	case nil:
		return append(to, 'n'), old == nil
	case string:
		to = append(to, 's')
	case bool:
		to = append(to, 'b')
	case int64:
		to = append(to, 'i')
	case float64:
		to = append(to, 'f')
	default:
		return nil, false
	}
	switch {
	case old == nil:
		return to, true
	case reflect.TypeOf(old) != reflect.TypeOf(is):
		return nil, false
	case old == is:
		return append(to, shapeSame), true
	}
	return append(to, shapeChanged), true
}

// entryTime is a time as managed fields hold it.
func entryTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
