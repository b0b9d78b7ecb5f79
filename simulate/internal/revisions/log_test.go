// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

var (
	things = schema.GroupResource{Resource: "things"}
	others = schema.GroupResource{Resource: "others"}
)

func thing(name, value string) (types.NamespacedName, *object.Object) {
	return types.NamespacedName{Name: name}, &object.Object{Fields: map[string]any{"metadata": map[string]any{"name": name}, "v": value}}
}

// state returns a list in one line: "a=1@2 b=1@3".
func state(objects []*object.Object) (out string) {
	for _, o := range objects {
		out += fmt.Sprintf(" %s=%v@%s", o.Meta().GetName(), o.Fields["v"], o.Meta().GetResourceVersion())
	}
	return out
}

func TestRevisionLog_OneCounterForAllKinds_S1(t *testing.T) {
	l := NewLog()
	for n, r := range []schema.GroupResource{things, others, things} {
		key, obj := thing(fmt.Sprint(n), "1")
		if stored := l.Put(r, key, obj); stored.Meta().GetResourceVersion() != fmt.Sprint(n+2) {
			t.Errorf("write %d has version %s, want %d: every write of every kind counts", n, stored.Meta().GetResourceVersion(), n+2)
		}
	}
	key, _ := thing("0", "")
	if gone := l.Remove(things, key); gone.Meta().GetResourceVersion() != "5" {
		t.Errorf("the deletion has version %s, want 5", gone.Meta().GetResourceVersion())
	}
	if l.Remove(things, key) != nil || l.Revision != 5 {
		t.Errorf("revision %d after deleting nothing, want 5", l.Revision)
	}
}

func TestRevisionLog_RewindGoesBackWithTheCounter(t *testing.T) {
	l := NewLog()
	key, obj := thing("a", "1")
	l.Put(things, key, obj)
	_, obj = thing("a", "2")
	l.Put(things, key, obj)
	l.Remove(things, key)
	l.Rewind(2)
	objects, ok := l.List(things, l.Revision)
	if got := state(objects); got != " a=1@2" || !ok || l.Revision != 2 {
		t.Errorf("got %q at %d, want \" a=1@2\" at 2", got, l.Revision)
	}
	l.Compact(99)
	l.Rewind(5)
	if objects, _ = l.List(things, l.Revision); state(objects) != " a=1@2" || l.Revision != 2 {
		t.Errorf("got %q at %d: what is compacted cannot be undone", state(objects), l.Revision)
	}
}

// dullLog is a model that keeps a copy of everything for each revision.
type dullLog struct {
	states    []map[types.NamespacedName]string // by revision
	compacted int
}

func (d *dullLog) last() map[types.NamespacedName]string { return d.states[len(d.states)-1] }

func (d *dullLog) write(key types.NamespacedName, value string) {
	next := maps.Clone(d.last())
	if delete(next, key); value != "" {
		next[key] = fmt.Sprintf("%s@%d", value, len(d.states))
	}
	d.states = append(d.states, next)
}

func FuzzRevisionLog(f *testing.F) {
	f.Add([]byte{0, 1, 2, 0, 40, 1, 80, 2, 120, 0, 160, 3, 200, 1})
	f.Add([]byte{0, 5, 0, 6, 0, 11, 0, 16, 40, 6, 0, 7, 80, 5, 0, 12, 80, 11, 160, 0, 0, 17, 200, 1})
	f.Fuzz(func(t *testing.T, program []byte) {
		l := NewLog()
		d := &dullLog{states: []map[types.NamespacedName]string{{}, {}}, compacted: 1}
		for n := 0; n+1 < len(program); n += 2 {
			key, obj := thing(string('a'+rune(program[n+1]%5)), fmt.Sprint(n))
			if namespace := []string{"", "n", "n-1", "n1"}[program[n+1]/5%4]; namespace != "" {
				key.Namespace = namespace
				obj.Meta().SetNamespace(namespace)
			}
			switch program[n] / 40 {
			case 0, 1:
				l.Put(things, key, obj)
				d.write(key, fmt.Sprint(n))
			case 2:
				if l.Remove(things, key) != nil {
					d.write(key, "")
				}
			case 3: // another kind raises the revision and is not listed
				l.Put(others, key, obj)
				d.states = append(d.states, d.last())
			case 4:
				at := d.compacted + int(program[n+1])%(len(d.states)-d.compacted)
				l.Compact(int64(at))
				d.compacted = at
			case 5:
				back := min(int(program[n+1]%3), len(d.states)-1-d.compacted)
				l.Rewind(back)
				d.states = d.states[:len(d.states)-back]
			}
			compareLogs(t, l, d)
			comparePages(t, l, d)
		}
	})
}

// comparePages compares parts of a list with the whole, in the order of paths.
func comparePages(t *testing.T, l *Log, d *dullLog) {
	t.Helper()
	for revision := d.compacted; revision < len(d.states); revision++ {
		then, _ := l.At(things, int64(revision))
		for _, in := range []Span{Everything, SpanOf("n", ""), SpanOf("n", "c"), SpanOf("", "n-1/b"), SpanOf("", "n/"), SpanOf("other", ""), SpanOfOne(types.NamespacedName{Namespace: "n", Name: "b"})} {
			var want []string
			for key := range d.states[revision] {
				if path := PathOf(key); PathOf(in.From) <= path && path < PathOf(in.To) {
					want = append(want, path)
				}
			}
			slices.Sort(want)
			if n := then.Count(in); n != len(want) {
				t.Fatalf("%d of %v at %d, want %d", n, in, revision, len(want))
			}
			for _, most := range []int{1, 2, 99} {
				var got []string
				for _, o := range then.Take(in, most) {
					got = append(got, PathOf(o.Key()))
				}
				if want := want[:min(most, len(want))]; !slices.Equal(got, want) {
					t.Fatalf("the first %d of %v at %d are %q, want %q", most, in, revision, got, want)
				}
			}
		}
	}
}

func compareLogs(t *testing.T, l *Log, d *dullLog) {
	t.Helper()
	if int(l.Revision) != len(d.states)-1 || int(l.Compacted) != d.compacted {
		t.Fatalf("revision %d, compacted %d; want %d, %d", l.Revision, l.Compacted, len(d.states)-1, d.compacted)
	}
	for revision := range len(d.states) + 1 {
		objects, ok := l.List(things, int64(revision))
		if want := revision >= d.compacted && revision < len(d.states); ok != want {
			t.Fatalf("list at %d: %t, want %t", revision, ok, want)
		}
		if !ok {
			continue
		}
		got := map[types.NamespacedName]string{}
		for _, o := range objects {
			got[o.Key()] = fmt.Sprintf("%v@%s", o.Fields["v"], o.Meta().GetResourceVersion())
		}
		if want := d.states[revision]; !maps.Equal(got, want) {
			t.Fatalf("list at %d: got %v, want %v", revision, got, want)
		}
		// The changes since that revision lead from its state to the present one.
		changes, _ := l.Since(int64(revision), l.Revision)
		for _, c := range changes {
			if c.Resource != things {
				continue
			}
			if delete(got, c.Key); c.After != nil {
				got[c.Key] = fmt.Sprintf("%v@%s", c.After.Fields["v"], c.After.Meta().GetResourceVersion())
			}
		}
		if want := d.last(); !maps.Equal(got, want) {
			t.Fatalf("changes since %d lead to %v, want %v", revision, got, want)
		}
	}
}
