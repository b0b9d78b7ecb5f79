// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package ownership remembers, for the writes of one kind, which manager owns which field
// after a write of the same shape, and of what the result of an apply consists. Its memory
// is bounded. It sees objects; package fieldmanager knows their kinds and calls the field
// manager.
package ownership

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/managedfields"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

const (
	// LargestShape is the maximum length of a remembered shape, in bytes.
	LargestShape = 64 << 10
	// shapesAtMost bounds the shapes of one kind, and rememberedAtMost the bytes remembered
	// of them.
	shapesAtMost, rememberedAtMost = 2048, 4 << 20
	// FewManagers is the maximum number of owners of an object whose shape is remembered:
	// with more, a real server merges the oldest.
	FewManagers = 8
)

// Memory remembers the answers of a field manager. The owners after a write depend on the
// previous owners, on the fields present and on which of these the write changes, not on
// their values; most writes of a kind are alike in this. It is safe for concurrent use.
type Memory struct {
	mu struct {
		sync.Mutex
		of    map[Shape]*ownership
		bytes int
	}
}

// ownership has the entries after writes of one shape.
type ownership struct {
	entries []owner
	Recipe  *Recipe // of an apply
	mu      struct {
		sync.Mutex
		// last caches the entries for one time. Objects written in one second share it.
		last []any
		at   string
	}
}

// owner is one entry of managedFields.
type owner struct {
	fields map[string]any // except its time
	from   int            // the previous entry that its time comes from, or a constant below
}

// The origin of the time of an entry that has it from no previous entry.
const (
	fromNow  = -1
	timeless = -2
)

// Recall returns what is known of writes of a shape; nil: nothing.
func (o *Memory) Recall(of Shape) *ownership {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.of[of]
}

func (o *Memory) Remember(of Shape, known *ownership) {
	o.mu.Lock()
	defer o.mu.Unlock()
	size := known.size()
	if o.mu.of == nil || len(o.mu.of) >= shapesAtMost || o.mu.bytes+size > rememberedAtMost {
		o.mu.of, o.mu.bytes = map[Shape]*ownership{}, 0
	}
	if was := o.mu.of[of]; was != nil {
		o.mu.bytes -= was.size()
	}
	o.mu.of[of], o.mu.bytes = known, o.mu.bytes+size
}

// size estimates its bytes, and counts those of cached entries twice.
func (o *ownership) size() int {
	n := o.Recipe.size()
	for _, e := range o.entries {
		n += 2 * sizeOf(e.fields)
	}
	return n
}

// sizeOf estimates the bytes of a JSON value.
func sizeOf(value any) int {
	const each = 64 // of a map, or of a value's header
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

// After returns the entries of an object with these previous entries, in the order of a
// real server. They must not be modified.
func (o *ownership) After(before []any, now string) []any {
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

// Marked returns entries, each with a time that identifies it, so the caller can see
// afterwards which of them are unchanged.
func Marked(entries []any) []any {
	out := make([]any, len(entries))
	for i, each := range entries {
		entry, _ := each.(map[string]any)
		entry = maps.Clone(entry)
		entry["time"] = markOf(i)
		out[i] = entry
	}
	return out
}

func markOf(i int) string { return EntryTime(time.Unix(int64(i), 0)) }

// OwnershipOf returns what a field manager made of marked entries.
func OwnershipOf(entries []any, marks int) *ownership {
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

// EntriesOf returns the managed fields of an object; nil: none.
func EntriesOf(o *object.Object) []any {
	if o == nil {
		return nil
	}
	entries, _ := object.MetadataOf(o)["managedFields"].([]any)
	return entries
}

// EntryTime formats a time as managed fields do.
func EntryTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// FieldManagers are the field managers of one kind, one for the kind itself and one for
// each subresource, created on first use.
type FieldManagers struct {
	Said Memory
	mu   struct {
		sync.Mutex
		of    map[string]*managedfields.FieldManager
		rules *FieldRules
		// nothing is an empty object of the kind. It must not be modified.
		nothing map[string]any
	}
}

func NewFieldManagers() *FieldManagers {
	m := &FieldManagers{}
	m.mu.of = map[string]*managedfields.FieldManager{}
	return m
}

// Get returns the field manager of the kind itself or of a subresource, and creates it with
// newManager on first use.
func (m *FieldManagers) Get(subresource string, newManager func(subresource string) (*managedfields.FieldManager, error)) (*managedfields.FieldManager, error) {
	m.mu.Lock()
	known := m.mu.of[subresource]
	m.mu.Unlock()
	if known != nil {
		return known, nil
	}
	made, err := newManager(subresource)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.of[subresource] = made
	return made, nil
}

// RulesOf returns the rules of the kind, derived from an object of newTyped; nil: there are
// none.
func (m *FieldManagers) RulesOf(newTyped func() (*typed.TypedValue, error)) (*FieldRules, error) {
	m.mu.Lock()
	known := m.mu.rules
	m.mu.Unlock()
	if known != nil {
		return known, nil
	}
	made, err := newTyped()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.rules = &FieldRules{Schema: made.Schema(), Root: made.TypeRef()}
	return m.mu.rules, nil
}

// NothingOf returns an empty object, which newNothing creates once. It must not be
// modified.
func (m *FieldManagers) NothingOf(newNothing func() map[string]any) map[string]any {
	m.mu.Lock()
	known := m.mu.nothing
	m.mu.Unlock()
	if known == nil {
		known = newNothing()
		m.mu.Lock()
		m.mu.nothing = known
		m.mu.Unlock()
	}
	return known
}

// WithEntries returns the fields of an object with other managed fields. It shares the
// rest.
func WithEntries(fields map[string]any, entries []any) map[string]any {
	out := maps.Clone(fields)
	metadata, _ := out["metadata"].(map[string]any)
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = map[string]any{}
	}
	if delete(metadata, "managedFields"); len(entries) > 0 {
		metadata["managedFields"] = entries
	}
	out["metadata"] = metadata
	return out
}

// SetEntries sets the managed fields of an object.
func SetEntries(obj *object.Object, entries []any) {
	if len(entries) == 0 {
		delete(object.MetadataOf(obj), "managedFields")
		return
	}
	object.MetadataOf(obj)["managedFields"] = entries
}

// Shape is the hash of all that decides who owns what after a write, and of what the result
// of an apply consists: the fields of the old and of the written object, and which of them
// are equal. Values count where they identify the items of lists.
type Shape [sha256.Size]byte

// FieldRules says which lists and maps of a kind's objects are atomic, and which keys
// identify the items of the others. nil: nothing is known.
type FieldRules struct {
	Schema *smd.Schema
	Root   smd.TypeRef
}
