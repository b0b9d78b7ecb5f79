// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/delivery"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

func seenDelta(name string, uid types.UID, v kube.Version, label string) store.Delta {
	d := seenAs(store.Updated, name, uid, v)
	d.Object = fixture.NewThing(d.Key, uid, v, label)
	return d
}

func mustApply(t *testing.T, x *store.Indexer, deltas ...store.Delta) []store.Change {
	t.Helper()
	changes, err := x.Apply(store.Batch{Deltas: deltas})
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func byLabel(o kube.Object) []string { return []string{o.GetLabels()["label"]} }

func TestIndexer_KeyNeverGoesBack_I1(t *testing.T) {
	x := store.NewIndexer(fixture.ThingKind)
	mustApply(t, x, seenDelta("a", "u", 5, "new"))
	if changes := mustApply(t, x, seenDelta("a", "u", 4, "old")); len(changes) != 0 {
		t.Errorf("an older version told of %d changes, want none", len(changes))
	}
	if got, _, _ := x.Get(fixture.Named("a")); got.GetLabels()["label"] != "new" {
		t.Errorf("the store has %s after version 4 came late, want version 5: it went back", fixture.Sketch(got))
	}
}

func TestIndexer_CountsTheBytesOfWhatItHolds(t *testing.T) {
	x := store.NewIndexer(fixture.ThingKind)
	sized := func(name string, v kube.Version, bytes uint32) store.Delta {
		d := seenDelta(name, types.UID(name), v, "")
		d.Bytes = bytes
		return d
	}
	deleted := func(name string, v kube.Version) store.Delta {
		return seenAs(store.Deleted, name, types.UID(name), v)
	}
	for _, c := range []struct {
		does  string
		delta store.Delta
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
		if got := x.Snapshot().Bytes; got != c.want {
			t.Errorf("after %s: %d bytes, want %d", c.does, got, c.want)
		}
	}
}

// Readers see each batch as a whole. Every batch replaces all objects.
func TestIndexer_ReadersSeeWholeBatches_I3(t *testing.T) {
	const objects, rounds = 64, 300
	x := store.NewIndexer(fixture.ThingKind)
	if err := x.AddIndex("label", byLabel); err != nil {
		t.Fatal(err)
	}
	lister := listerOf(x, &listerView{})
	round := func(n int) {
		var deltas []store.Delta
		for i := range objects {
			v := kube.Version(n*2*objects + i + 1)
			if n > 0 {
				deltas = append(deltas, seenAs(store.Deleted, fmt.Sprint(i+objects*((n-1)%2)), types.UID(fmt.Sprint(n-1)), v))
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
	x := store.NewIndexer(fixture.ThingKind)
	mustApply(t, x, seenDelta("early", "e", 1, "bad"), seenDelta("fine", "f", 2, "good"))
	index := func(o kube.Object) []string {
		if o.GetLabels()["label"] == "bad" {
			panic("no values today")
		}
		return byLabel(o)
	}
	if err := x.AddIndex("label", index); err == nil || !strings.Contains(err.Error(), "no values today") {
		t.Errorf("AddIndex = %v, want the panic it met", err)
	}
	changes, err := x.Apply(store.Batch{Deltas: []store.Delta{
		seenDelta("a", "u", 3, "bad"), seenDelta("b", "v", 4, "good"), seenDelta("fine", "f", 5, "bad"), seenDelta("early", "e", 6, "good"),
	}})
	if err == nil || len(changes) != 4 {
		t.Errorf("apply = %d changes, %v; want 4, and the panic", len(changes), err)
	}
	lister := listerOf(x, &listerView{})
	keys, err := sortedKeys(lister.List(QueryOptions{Index: "label", IndexValue: "good"}))
	if got := fmt.Sprint(keys); err != nil || got != "[ns/b ns/early]" {
		t.Errorf("the index has %s, %v; want [ns/b ns/early]: a panic costs the object it is about, until its next version", got, err)
	}
	if s := x.Snapshot(); s.IndexPanics != 3 || s.Objects != 4 {
		t.Errorf("%d panics counted and %d objects, want 3 and 4", s.IndexPanics, s.Objects)
	}
	for _, err := range []error{x.AddIndex("label", index), x.AddIndex("", index), x.AddIndex("nil", nil)} {
		if err == nil {
			t.Error("an index whose name is taken or empty, or without a function, is not an error")
		}
	}
}

func TestIndexer_SeveralIndexValues(t *testing.T) {
	x := store.NewIndexer(fixture.ThingKind)
	words := func(o kube.Object) []string { return strings.Fields(o.GetLabels()["label"]) }
	mustApply(t, x, seenDelta("a", "u", 1, "x y y z"))
	if err := x.AddIndex("words", words); err != nil {
		t.Fatal(err)
	}
	mustApply(t, x, seenDelta("b", "v", 2, "y"), seenDelta("c", "w", 3, ""))
	lister := listerOf(x, &listerView{})
	want := func(what, values, keys string) {
		t.Helper()
		v, _ := lister.IndexValues("words")
		k, err := sortedKeys(lister.List(QueryOptions{Index: "words", IndexValue: "y"}))
		if err != nil || fmt.Sprint(v) != values || fmt.Sprint(k) != keys {
			t.Errorf("%s: the values are %v and y has %v, want %s and %s", what, v, k, values, keys)
		}
	}
	want("added", "[x y z]", "[ns/a ns/b]")
	values, _ := lister.IndexValuesOf("words", fixture.NewThing(fixture.Named("q"), "q", 9, "z y"))
	if like, err := sortedKeys(lister.List(QueryOptions{Index: "words", IndexValues: values})); len(like) != 2 {
		t.Errorf("%v and %v share a value of %q, want 2 objects, each once", like, err, values)
	}
	mustApply(t, x, seenDelta("a", "u", 4, "x"))
	want("a changed", "[x y]", "[ns/b]")
	mustApply(t, x, seenAs(store.Deleted, "b", "v", 5))
	want("b deleted", "[x]", "[]")
}

// waitingOf returns how many events a handler without Undecodable receives.
func waitingOf(changes []store.Change) int {
	level := delivery.NewBacklog(delivery.Options{})
	for _, c := range changes {
		level.Push(c, nil, false)
	}
	return level.Len()
}

func TestIndexer_UndecodableHarmsItselfAlone_I8(t *testing.T) {
	x := store.NewIndexer(fixture.ThingKind)
	lister := listerOf(x, &listerView{})
	broken := func(name string, uid types.UID, v kube.Version) store.Delta {
		return store.Delta{Type: store.Updated, Key: fixture.Named(name), UID: uid, Version: v, Err: errors.New("bad bytes")}
	}
	mustApply(t, x, seenDelta("a", "u", 1, ""), seenDelta("b", "v", 2, ""))
	if got := waitingOf(mustApply(t, x, broken("a", "u", 3), broken("new", "n", 4))); got != 0 {
		t.Errorf("%d events of what cannot be shown, want none", got)
	}
	_, err := lister.Get(fixture.Named("a"))
	if e, ok := errors.AsType[*kube.UndecodableError](err); !ok || e.Key != fixture.Named("a") {
		t.Errorf("Get = %v, want an *UndecodableError that names the key", err)
	}
	if got := len(slices.Collect(lister.All())); got != 1 {
		t.Errorf("a walk yields %d objects, want the 1 that can be decoded", got)
	}
	if s := x.Snapshot(); s.Undecodable != 2 || s.Objects != 3 {
		t.Errorf("%d of %d cannot be decoded, want 2 of 3", s.Undecodable, s.Objects)
	}
	changes := mustApply(t, x, seenDelta("a", "u", 5, ""), seenDelta("new", "n", 6, ""))
	if len(changes) != 2 || changes[0].Before.Empty() || !changes[1].Before.Empty() {
		t.Errorf("healed, they are told as %d changes; want an update of what was shown before, and an addition", len(changes))
	}
	if changes := mustApply(t, x, broken("a", "w", 7)); len(changes) != 1 || !changes[0].After.Empty() || changes[0].Old == nil {
		t.Error("another object that cannot be decoded has the name: the one before is not told as deleted")
	}
	if got := waitingOf(mustApply(t, x, seenAs(store.Deleted, "a", "w", 8))); got != 0 || x.Snapshot().Undecodable != 0 {
		t.Errorf("%d events of the end of what was never shown, or its quarantine stays", got)
	}
}

func BenchmarkIndexer(b *testing.B) {
	const n = 100_000
	x := store.NewIndexer(fixture.ThingKind)
	deltas := make([]store.Delta, n)
	for i := range deltas {
		deltas[i] = seenDelta(fmt.Sprintf("object-%d", i), types.UID(fmt.Sprint(i)), kube.Version(i+1), "")
	}
	_, _ = x.Apply(store.Batch{Deltas: deltas})
	lister := listerOf(x, &listerView{scopes: store.ScopesOf(0)})
	b.Run("Get", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := lister.Get(deltas[i*7919%n].Key); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Update", func(b *testing.B) {
		v := kube.Version(n)
		one := make([]store.Delta, 1)
		for i := 0; b.Loop(); i++ {
			v++
			one[0] = deltas[i*7919%n]
			one[0].Version = v
			_, _ = x.Apply(store.Batch{Deltas: one})
		}
	})
	b.Run("UpdateBetweenReads", func(b *testing.B) {
		v := kube.Version(1 << 40)
		one := make([]store.Delta, 1)
		for i := 0; b.Loop(); i++ {
			v++
			one[0] = deltas[i*7919%n]
			one[0].Version = v
			for range lister.All() {
				break
			}
			_, _ = x.Apply(store.Batch{Deltas: one})
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
			_, _ = store.NewIndexer(fixture.ThingKind).Apply(store.Batch{Deltas: deltas})
		}
	})
}

// seenAs returns a delta of named(name).
func seenAs(typ store.DeltaType, name string, uid types.UID, v kube.Version) store.Delta {
	key := fixture.Named(name)
	d := store.Delta{Type: typ, Key: key, UID: uid, Version: v}
	if typ != store.Deleted {
		d.Object = fixture.NewThing(key, uid, v, "")
	}
	return d
}

// sortedKeys returns the keys of objects, sorted.
func sortedKeys(objects []kube.Object, err error) ([]kube.Key, error) {
	var keys []kube.Key
	for _, o := range objects {
		keys = append(keys, kube.KeyOf(o))
	}
	slices.SortFunc(keys, kube.CompareKeys)
	return keys, err
}
