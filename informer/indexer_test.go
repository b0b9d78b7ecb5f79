// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

func seenDelta(name string, uid types.UID, v Version, label string) Delta[thing] {
	d := delta(Updated, name, uid, v)
	d.Object = newThing(d.Key, uid, v, label)
	return d
}

func mustApply(t *testing.T, x *Indexer[thing], deltas ...Delta[thing]) []change[thing] {
	t.Helper()
	changes, err := x.apply(Batch[thing]{Deltas: deltas})
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func byLabel(o thing) []string { return []string{o.GetLabels()["label"]} }

func TestIndexer_KeyNeverGoesBack_I1(t *testing.T) {
	x := NewIndexer[thing](thingKind)
	mustApply(t, x, seenDelta("a", "u", 5, "new"))
	if changes := mustApply(t, x, seenDelta("a", "u", 4, "old")); len(changes) != 0 {
		t.Errorf("an older version told of %d changes, want none", len(changes))
	}
	if got, _, _ := x.get(named("a")); got.GetLabels()["label"] != "new" {
		t.Errorf("the store has %s after version 4 came late, want version 5: it went back", sketch(got))
	}
}

func TestIndexer_CountsTheBytesOfWhatItHolds(t *testing.T) {
	x := NewIndexer[thing](thingKind)
	sized := func(name string, v Version, bytes uint32) Delta[thing] {
		d := seenDelta(name, types.UID(name), v, "")
		d.Bytes = bytes
		return d
	}
	deleted := func(name string, v Version) Delta[thing] { return delta(Deleted, name, types.UID(name), v) }
	for _, c := range []struct {
		does  string
		delta Delta[thing]
		want  int64
	}{
		{"the first object", sized("a", 1, 100), 100},
		{"another", sized("b", 2, 10), 110},
		{"a third", sized("c", 3, 1), 111},
		{"an update", sized("b", 4, 20), 121},
		{"an older version", sized("b", 2, 10), 121},
		{"the same once more", sized("b", 4, 20), 121},
		{"an update of unknown size", sized("b", 5, 0), 121},
		{"a deletion, which moves the last row", deleted("a", 6), 21},
		{"an update of what was moved", sized("c", 7, 2), 22},
		{"a deletion", deleted("b", 8), 2},
		{"the last deletion", deleted("c", 9), 0},
	} {
		mustApply(t, x, c.delta)
		if got := x.snapshot().Bytes; got != c.want {
			t.Errorf("after %s: %d bytes, want %d", c.does, got, c.want)
		}
	}
}

// Readers must see each batch as a whole. Every batch replaces all objects.
func TestIndexer_ReadersSeeWholeBatches_I3(t *testing.T) {
	const objects, rounds = 64, 300
	x := NewIndexer[thing](thingKind)
	if err := x.AddIndex("label", byLabel); err != nil {
		t.Fatal(err)
	}
	lister := listerOf(x, &sight{})
	round := func(n int) {
		var deltas []Delta[thing]
		for i := range objects {
			v := Version(n*2*objects + i + 1)
			if n > 0 {
				deltas = append(deltas, delta(Deleted, fmt.Sprint(i+objects*((n-1)%2)), types.UID(fmt.Sprint(n-1)), v))
			}
			name := fmt.Sprint(i + objects*(n%2))
			deltas = append(deltas, seenDelta(name, types.UID(fmt.Sprint(n)), v+objects, fmt.Sprint(n)))
		}
		mustApply(t, x, deltas...)
	}
	round(0)
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := make(chan struct{})
	defer close(stop)
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				seen, label := 0, ""
				for o := range lister.All() {
					if label != "" && o.GetLabels()["label"] != label {
						t.Errorf("a reader saw objects of batches %s and %s at once", label, o.GetLabels()["label"])
						return
					}
					seen, label = seen+1, o.GetLabels()["label"]
				}
				byIndex, _ := lister.ByIndex("label", label)
				if n := len(slices.Collect(byIndex)); seen != objects || n != objects && n != 0 {
					t.Errorf("a reader saw %d objects, by index %d, want %d: half of a batch", seen, n, objects)
					return
				}
			}
		})
	}
	for n := range rounds {
		round(n + 1)
	}
}

func TestIndexer_PanickingIndexCostsOneObject(t *testing.T) {
	x := NewIndexer[thing](thingKind)
	mustApply(t, x, seenDelta("early", "e", 1, "bad"), seenDelta("fine", "f", 2, "good"))
	index := func(o thing) []string {
		if o.GetLabels()["label"] == "bad" {
			panic("no values today")
		}
		return byLabel(o)
	}
	if err := x.AddIndex("label", index); err == nil || !strings.Contains(err.Error(), "no values today") {
		t.Errorf("AddIndex = %v, want the panic it met", err)
	}
	changes, err := x.apply(Batch[thing]{Deltas: []Delta[thing]{
		seenDelta("a", "u", 3, "bad"), seenDelta("b", "v", 4, "good"), seenDelta("fine", "f", 5, "bad"), seenDelta("early", "e", 6, "good"),
	}})
	if err == nil || len(changes) != 4 {
		t.Errorf("apply = %d changes, %v; want 4, and the panic", len(changes), err)
	}
	lister := listerOf(x, &sight{})
	keys, err := lister.IndexKeys("label", "good")
	if got := fmt.Sprint(keys); err != nil || got != "[ns/b ns/early]" {
		t.Errorf("the index has %s, %v; want [ns/b ns/early]: a panic costs the object it is about, until its next version", got, err)
	}
	if s := x.snapshot(); s.IndexPanics != 3 || s.Objects != 4 {
		t.Errorf("%d panics counted and %d objects, want 3 and 4", s.IndexPanics, s.Objects)
	}
	for _, err := range []error{x.AddIndex("label", index), x.AddIndex("", index), x.AddIndex("nil", nil)} {
		if err == nil {
			t.Error("an index whose name is taken or empty, or without a function, is not an error")
		}
	}
}

func TestIndexer_SeveralIndexValues(t *testing.T) {
	x := NewIndexer[thing](thingKind)
	words := func(o thing) []string { return strings.Fields(o.GetLabels()["label"]) }
	mustApply(t, x, seenDelta("a", "u", 1, "x y y z"))
	if err := x.AddIndex("words", words); err != nil {
		t.Fatal(err)
	}
	mustApply(t, x, seenDelta("b", "v", 2, "y"), seenDelta("c", "w", 3, ""))
	lister := listerOf(x, &sight{})
	want := func(what, values, keys string) {
		t.Helper()
		v, _ := lister.IndexValues("words")
		k, err := lister.IndexKeys("words", "y")
		if err != nil || fmt.Sprint(v) != values || fmt.Sprint(k) != keys {
			t.Errorf("%s: the values are %v and y has %v, want %s and %s", what, v, k, values, keys)
		}
	}
	want("added", "[x y z]", "[ns/a ns/b]")
	like, _ := lister.Index("words", newThing(named("q"), "q", 9, "z y"))
	if got := len(slices.Collect(like)); got != 2 {
		t.Errorf("%d objects share a value, want 2, each once", got)
	}
	mustApply(t, x, seenDelta("a", "u", 4, "x"))
	want("a changed", "[x y]", "[ns/b]")
	mustApply(t, x, delta(Deleted, "b", "v", 5))
	want("b deleted", "[x]", "[]")
}

// toldOf is what a handler is told that does not ask for what cannot be decoded.
func toldOf(changes []change[thing]) []string {
	level := newBacklog[thing]()
	for _, c := range changes {
		level.push(c, nil, false)
	}
	return tell(drain(level))
}

func TestIndexer_UndecodableHarmsItselfAlone_I8(t *testing.T) {
	x := NewIndexer[thing](thingKind)
	lister := listerOf(x, &sight{})
	broken := func(name string, uid types.UID, v Version) Delta[thing] {
		return Delta[thing]{Type: Updated, Key: named(name), UID: uid, Version: v, Err: errors.New("bad bytes")}
	}
	mustApply(t, x, seenDelta("a", "u", 1, ""), seenDelta("b", "v", 2, ""))
	if got := toldOf(mustApply(t, x, broken("a", "u", 3), broken("new", "n", 4))); len(got) != 0 {
		t.Errorf("told %q of what cannot be shown, want nothing", got)
	}
	_, err := lister.Get(named("a"))
	if e, ok := errors.AsType[*UndecodableError](err); !ok || e.Key != named("a") {
		t.Errorf("Get = %v, want an *UndecodableError that names the key", err)
	}
	if got := len(slices.Collect(lister.All())); got != 1 {
		t.Errorf("a walk yields %d objects, want the 1 that can be decoded", got)
	}
	if s := x.snapshot(); s.Undecodable != 2 || s.Objects != 3 {
		t.Errorf("%d of %d cannot be decoded, want 2 of 3", s.Undecodable, s.Objects)
	}
	changes := mustApply(t, x, seenDelta("a", "u", 5, ""), seenDelta("new", "n", 6, ""))
	if len(changes) != 2 || changes[0].before.empty() || !changes[1].before.empty() {
		t.Errorf("healed, they are told as %d changes; want an update of what was shown before, and an addition", len(changes))
	}
	if changes := mustApply(t, x, broken("a", "w", 7)); len(changes) != 1 || !changes[0].after.empty() || changes[0].old == nil {
		t.Error("another object that cannot be decoded has the name: the one before is not told as deleted")
	}
	if got := toldOf(mustApply(t, x, delta(Deleted, "a", "w", 8))); len(got) != 0 || x.snapshot().Undecodable != 0 {
		t.Errorf("told %q of the end of what was never shown, or its quarantine stays", got)
	}
}

func TestIndexer_WhenPassed_R6(t *testing.T) {
	x := NewIndexer[thing](thingKind)
	mustApply(t, x, seenDelta("a", "u", 5, ""))
	var called []string
	wait := func(name, key string, than Version) func() {
		return x.whenPassed(named(key), than, func() { called = append(called, name) })
	}
	wait("has passed", "a", 4)
	wait("is gone", "b", 4)
	wait("passes", "a", 5)
	wait("passes later", "a", 7)
	wait("stopped", "a", 5)()
	settle := func(what string, want ...string) {
		t.Helper()
		for _, do := range x.passed() {
			do()
		}
		if !slices.Equal(called, want) {
			t.Errorf("%s: called %q, want %q", what, called, want)
		}
		called = nil
	}
	settle("at once", "has passed", "is gone")
	mustApply(t, x, seenDelta("a", "u", 5, ""))
	settle("the same version")
	mustApply(t, x, seenDelta("a", "u", 6, ""))
	settle("a newer version", "passes")
	mustApply(t, x, delta(Deleted, "a", "u", 7))
	settle("the end", "passes later")
	if len(x.mu.waiters) != 0 {
		t.Errorf("%d keys still have someone waiting", len(x.mu.waiters))
	}
}

func TestIndexer_GivesMemoryBack(t *testing.T) {
	x := NewIndexer[thing](thingKind)
	if err := x.AddIndex("label", byLabel); err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		mustApply(t, x, seenDelta(fmt.Sprint(i), "u", Version(i+1), fmt.Sprint(i)))
	}
	for i := range 5000 {
		mustApply(t, x, delta(Deleted, fmt.Sprint(i), "u", Version(i+6000)))
	}
	if x.Len() != 0 || x.mu.most > 2000 || len(x.mu.indices[0].buckets)+len(x.mu.indices[1].buckets) != 0 || x.mu.floors.len() != 0 {
		t.Errorf("empty, it has %d objects, a map of %d, %d buckets, %d memories", x.Len(), x.mu.most, len(x.mu.indices[1].buckets), x.mu.floors.len())
	}
}

// listerOf is a Lister of x that sees what s does.
func listerOf(x *Indexer[thing], s *sight) Lister[thing] {
	var at atomic.Pointer[sight]
	at.Store(s)
	return newLister[thing](x, nil, nil, &at)
}

func TestLister_SaysWhyThereIsNoObject(t *testing.T) {
	x := NewIndexer[thing](thingKind)
	mustApply(t, x, seenDelta("a", "u", 5, ""))
	synced := make(chan struct{})
	lister := listerOf(x, &sight{namespaces: map[string]bool{"ns": true}, synced: synced})
	if _, err := lister.Get(named("a")); err != nil {
		t.Errorf("Get of what is known = %v, though the first list has not ended", err)
	}
	_, err := lister.Get(named("b"))
	if _, ok := errors.AsType[*NotSyncedError](err); !ok {
		t.Errorf("Get before the first list = %v, want a *NotSyncedError", err)
	}
	close(synced)
	if _, err = lister.Get(named("b")); !apierrors.IsNotFound(err) {
		t.Errorf("Get of what does not exist = %v, want NotFound", err)
	}
	_, err = lister.Get(Key{Namespace: "other", Name: "a"})
	if _, ok := errors.AsType[*OutOfScopeError](err); !ok {
		t.Errorf("Get in a namespace that is not watched = %v, want an *OutOfScopeError", err)
	}
	if _, err := lister.ByIndex("none", "x"); err == nil || !strings.Contains(err.Error(), "AddIndex") {
		t.Errorf("ByIndex of no index = %v, want an error that names the fix", err)
	}
	var empty Lister[thing]
	if _, err := empty.Get(named("a")); err == nil {
		t.Error("a Lister from nowhere finds objects")
	}
	if got := len(slices.Collect(empty.All())); got != 0 {
		t.Errorf("a Lister from nowhere yields %d objects", got)
	}
}

func TestLister_List(t *testing.T) {
	x := NewIndexer[thing](thingKind)
	if err := x.AddIndex("label", byLabel); err != nil {
		t.Fatal(err)
	}
	var deltas []Delta[thing]
	for i := range 8 {
		d := seenDelta(fmt.Sprint(i), types.UID(fmt.Sprint(i)), Version(i+1), string("ab"[i&1]))
		d.Key.Namespace = string("mn"[i>>1&1])
		d.Object.SetNamespace(d.Key.Namespace)
		d.Scope = ScopeID(i >> 2 & 1)
		deltas = append(deltas, d)
	}
	mustApply(t, x, deltas...)
	selector, err := labels.Parse("label=b")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		opts   QueryOptions
		scopes *scopeSet
		want   string
	}{
		{"all", QueryOptions{}, nil, "0 1 2 3 4 5 6 7"},
		{"a namespace", QueryOptions{Namespace: "n"}, nil, "2 3 6 7"},
		{"a selector", QueryOptions{Selector: selector}, nil, "1 3 5 7"},
		{"an index", QueryOptions{Index: "label", IndexValue: "a"}, nil, "0 2 4 6"},
		{"index and namespace", QueryOptions{Namespace: "m", Index: "label", IndexValue: "a"}, nil, "0 4"},
		{"namespace and selector", QueryOptions{Namespace: "m", Selector: selector}, nil, "1 5"},
		{"index and selector", QueryOptions{Index: "label", IndexValue: "a", Selector: selector}, nil, ""},
		{"one scope", QueryOptions{}, scopesOf(1), "4 5 6 7"},
		{"one scope, index and namespace", QueryOptions{Namespace: "n", Index: "label", IndexValue: "b"}, scopesOf(1), "7"},
		{"no scope", QueryOptions{}, scopesOf(), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			objects, err := listerOf(x, &sight{scopes: test.scopes}).List(test.opts)
			var names []string
			for _, o := range objects {
				names = append(names, o.GetName())
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestLister_GetDoesNotAllocate(t *testing.T) {
	x := NewIndexer[thing](thingKind)
	mustApply(t, x, seenDelta("a", "u", 5, ""))
	lister, key := listerOf(x, &sight{scopes: scopesOf(0)}), named("a")
	if got := testing.AllocsPerRun(100, func() { _, _ = lister.Get(key) }); got != 0 {
		t.Errorf("Get allocates %v times, want 0", got)
	}
}

func BenchmarkIndexer(b *testing.B) {
	const n = 100_000
	x := NewIndexer[thing](thingKind)
	deltas := make([]Delta[thing], n)
	for i := range deltas {
		deltas[i] = seenDelta(fmt.Sprintf("object-%d", i), types.UID(fmt.Sprint(i)), Version(i+1), "")
	}
	_, _ = x.apply(Batch[thing]{Deltas: deltas})
	lister := listerOf(x, &sight{scopes: scopesOf(0)})
	b.Run("Get", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := lister.Get(deltas[i*7919%n].Key); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Update", func(b *testing.B) {
		v := Version(n)
		one := make([]Delta[thing], 1)
		for i := 0; b.Loop(); i++ {
			v++
			one[0] = deltas[i*7919%n]
			one[0].Version = v
			_, _ = x.apply(Batch[thing]{Deltas: one})
		}
	})
	b.Run("UpdateBetweenReads", func(b *testing.B) {
		v := Version(1 << 40)
		one := make([]Delta[thing], 1)
		for i := 0; b.Loop(); i++ {
			v++
			one[0] = deltas[i*7919%n]
			one[0].Version = v
			for range lister.All() {
				break
			}
			_, _ = x.apply(Batch[thing]{Deltas: one})
		}
	})
	b.Run("All", func(b *testing.B) {
		for b.Loop() {
			for range lister.All() {
			}
		}
	})
	b.Run("Fill", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = NewIndexer[thing](thingKind).apply(Batch[thing]{Deltas: deltas})
		}
	})
}
