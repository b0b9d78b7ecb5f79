// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	things = schema.GroupResource{Resource: "things"}
	others = schema.GroupResource{Resource: "others"}
)

func thing(name, value string) (types.NamespacedName, *object) {
	return types.NamespacedName{Name: name}, &object{fields: map[string]any{"metadata": map[string]any{"name": name}, "v": value}}
}

// state is a list in one line: "a=1@2 b=1@3".
func state(objects []*object) (out string) {
	for _, o := range objects {
		out += fmt.Sprintf(" %s=%v@%s", o.meta().GetName(), o.fields["v"], o.meta().GetResourceVersion())
	}
	return out
}

func TestRevisionLog_OneCounterForAllKinds_S1(t *testing.T) {
	l := newRevisionLog()
	for n, r := range []schema.GroupResource{things, others, things} {
		key, obj := thing(fmt.Sprint(n), "1")
		if stored := l.put(r, key, obj); stored.meta().GetResourceVersion() != fmt.Sprint(n+2) {
			t.Errorf("write %d has version %s, want %d: every write of every kind counts", n, stored.meta().GetResourceVersion(), n+2)
		}
	}
	key, _ := thing("0", "")
	if gone := l.remove(things, key); gone.meta().GetResourceVersion() != "5" {
		t.Errorf("the deletion has version %s, want 5", gone.meta().GetResourceVersion())
	}
	if l.remove(things, key) != nil || l.revision != 5 {
		t.Errorf("revision %d after deleting nothing, want 5", l.revision)
	}
}

func TestRevisionLog_RewindGoesBackWithTheCounter(t *testing.T) {
	l := newRevisionLog()
	key, obj := thing("a", "1")
	l.put(things, key, obj)
	_, obj = thing("a", "2")
	l.put(things, key, obj)
	l.remove(things, key)
	l.rewind(2)
	objects, ok := l.list(things, l.revision)
	if got := state(objects); got != " a=1@2" || !ok || l.revision != 2 {
		t.Errorf("got %q at %d, want \" a=1@2\" at 2", got, l.revision)
	}
	l.compact(99)
	l.rewind(5)
	if objects, _ = l.list(things, l.revision); state(objects) != " a=1@2" || l.revision != 2 {
		t.Errorf("got %q at %d: what is compacted cannot be undone", state(objects), l.revision)
	}
}

// dullLog keeps a copy of all for each revision.
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
		l := newRevisionLog()
		d := &dullLog{states: []map[types.NamespacedName]string{{}, {}}, compacted: 1}
		for n := 0; n+1 < len(program); n += 2 {
			key, obj := thing(string('a'+rune(program[n+1]%5)), fmt.Sprint(n))
			if namespace := []string{"", "n", "n-1", "n1"}[program[n+1]/5%4]; namespace != "" {
				key.Namespace = namespace
				obj.meta().SetNamespace(namespace)
			}
			switch program[n] / 40 {
			case 0, 1:
				l.put(things, key, obj)
				d.write(key, fmt.Sprint(n))
			case 2:
				if l.remove(things, key) != nil {
					d.write(key, "")
				}
			case 3: // another kind counts, and shows nowhere
				l.put(others, key, obj)
				d.states = append(d.states, d.last())
			case 4:
				at := d.compacted + int(program[n+1])%(len(d.states)-d.compacted)
				l.compact(int64(at))
				d.compacted = at
			case 5:
				back := min(int(program[n+1]%3), len(d.states)-1-d.compacted)
				l.rewind(back)
				d.states = d.states[:len(d.states)-back]
			}
			compareLogs(t, l, d)
			comparePages(t, l, d)
		}
	})
}

// comparePages holds what is asked for in parts against the whole, in the order
// of paths.
func comparePages(t *testing.T, l *revisionLog, d *dullLog) {
	t.Helper()
	for revision := d.compacted; revision < len(d.states); revision++ {
		then, _ := l.at(things, int64(revision))
		for _, in := range []span{everything, spanOf("n", ""), spanOf("n", "c"), spanOf("", "n-1/b"), spanOf("", "n/"), spanOf("other", ""), spanOfOne(types.NamespacedName{Namespace: "n", Name: "b"})} {
			var want []string
			for key := range d.states[revision] {
				if path := pathOf(key); pathOf(in.from) <= path && path < pathOf(in.to) {
					want = append(want, path)
				}
			}
			slices.Sort(want)
			if n := then.count(in); n != len(want) {
				t.Fatalf("%d of %v at %d, want %d", n, in, revision, len(want))
			}
			for _, most := range []int{1, 2, 99} {
				var got []string
				for _, o := range then.take(in, most) {
					got = append(got, pathOf(o.key()))
				}
				if want := want[:min(most, len(want))]; !slices.Equal(got, want) {
					t.Fatalf("the first %d of %v at %d are %q, want %q", most, in, revision, got, want)
				}
			}
		}
	}
}

func compareLogs(t *testing.T, l *revisionLog, d *dullLog) {
	t.Helper()
	if int(l.revision) != len(d.states)-1 || int(l.compacted) != d.compacted {
		t.Fatalf("revision %d, compacted %d; want %d, %d", l.revision, l.compacted, len(d.states)-1, d.compacted)
	}
	for revision := range len(d.states) + 1 {
		objects, ok := l.list(things, int64(revision))
		if want := revision >= d.compacted && revision < len(d.states); ok != want {
			t.Fatalf("list at %d: %t, want %t", revision, ok, want)
		}
		if !ok {
			continue
		}
		got := map[types.NamespacedName]string{}
		for _, o := range objects {
			got[o.key()] = fmt.Sprintf("%v@%s", o.fields["v"], o.meta().GetResourceVersion())
		}
		if want := d.states[revision]; !maps.Equal(got, want) {
			t.Fatalf("list at %d: got %v, want %v", revision, got, want)
		}
		// What has changed since leads from that state to the present one.
		changes, _ := l.since(int64(revision), l.revision)
		for _, c := range changes {
			if c.resource != things {
				continue
			}
			if delete(got, c.key); c.after != nil {
				got[c.key] = fmt.Sprintf("%v@%s", c.after.fields["v"], c.after.meta().GetResourceVersion())
			}
		}
		if want := d.last(); !maps.Equal(got, want) {
			t.Fatalf("changes since %d lead to %v, want %v", revision, got, want)
		}
	}
}
