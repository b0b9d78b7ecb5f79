// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/kube"
)

func delta(typ DeltaType, name string, uid types.UID, v kube.Version) Delta {
	d := Delta{Type: typ, Key: fixture.Named(name), UID: uid, Version: v}
	if typ != Deleted {
		d.Object = fixture.NewThing(d.Key, uid, v, "a")
	}
	return d
}

func missing(name string, uid types.UID, v kube.Version) Delta {
	d := delta(Deleted, name, uid, v)
	d.FinalStateUnknown = true
	return d
}

func sketches(deltas []Delta) (out []string) {
	for _, d := range deltas {
		s := fmt.Sprintf("%s %s %s@%d", d.Type, d.Key.Name, d.UID, d.Version)
		if d.FinalStateUnknown {
			s += " unknown"
		}
		out = append(out, s)
	}
	return out
}

func wantDeltas(t *testing.T, what string, got []Delta, want ...string) {
	t.Helper()
	if got := sketches(got); !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func newStore(t *testing.T) (*DeltaFIFO, *Indexer) {
	t.Helper()
	x := NewIndexer(fixture.ThingKind)
	return NewDeltaFIFO(x), x
}

func popBatch(t *testing.T, f *DeltaFIFO) Batch {
	t.Helper()
	b, err := f.PopBatch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// applyBatch does the work of dispatch until it would block.
func applyBatch(t *testing.T, f *DeltaFIFO, x *Indexer) {
	t.Helper()
	if _, err := x.Apply(popBatch(t, f)); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.log.release()
}

// list delivers a whole list to a scope.
func list(f *DeltaFIFO, scope base.ScopeID, v kube.Version, items ...Delta) {
	r := f.Replace(scope)
	for _, d := range items {
		r.Add(d)
	}
	r.Commit(v)
}

func TestDeltaFIFO_TwoDeletionsBecomeOne(t *testing.T) {
	tests := []struct {
		name string
		push []Delta
		want []string
	}{
		{"the one that knows the end is kept, first", []Delta{delta(Deleted, "a", "u", 5), missing("a", "u", 6)}, []string{"Deleted a u@5"}},
		{"the one that knows the end is kept, last", []Delta{missing("a", "u", 5), delta(Deleted, "a", "", 6)}, []string{"Deleted a u@6"}},
		{"not those of two objects", []Delta{delta(Deleted, "a", "u", 5), delta(Deleted, "a", "v", 6)}, []string{"Deleted a u@5", "Deleted a v@6"}},
		{"not with another delta between", []Delta{delta(Deleted, "a", "u", 5), delta(Added, "a", "v", 6), delta(Deleted, "a", "v", 7)}, []string{"Deleted a u@5", "Added a v@6", "Deleted a v@7"}},
		{"with another key between", []Delta{delta(Deleted, "a", "u", 5), delta(Added, "b", "w", 6), delta(Deleted, "a", "u", 7)}, []string{"Deleted a u@5", "Added b w@6"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, _ := newStore(t)
			for _, d := range test.push {
				f.Push(d)
			}
			wantDeltas(t, "popped", popBatch(t, f).Deltas, test.want...)
		})
	}
	t.Run("not those of two scopes", func(t *testing.T) {
		f, _ := newStore(t)
		f.Push(delta(Deleted, "a", "u", 5))
		other := delta(Deleted, "a", "u", 5)
		other.Scope = 1
		f.Push(other)
		if got := len(popBatch(t, f).Deltas); got != 2 {
			t.Errorf("%d deletions, want 2: each scope lets go for itself", got)
		}
	})
}

func TestDeltaFIFO_UpdatesMergeOnlyInABacklog(t *testing.T) {
	f, _ := newStore(t)
	f.Push(delta(Added, "a", "u", 1))
	f.Push(delta(Updated, "a", "u", 2))
	for i := range mergeAbove - 2 {
		f.Push(delta(Added, fmt.Sprint("x", i), types.UID(fmt.Sprint("x", i)), kube.Version(3+i)))
	}
	if got := f.Len(); got != mergeAbove {
		t.Fatalf("%d deltas wait, want %d: none may merge below the bound", got, mergeAbove)
	}
	last := kube.Version(mergeAbove)
	for range 100 {
		last++
		f.Push(delta(Updated, "a", "u", last))
	}
	f.Push(delta(Deleted, "a", "u", last+1))
	f.Push(delta(Added, "a", "v", last+2))
	f.Push(delta(Updated, "a", "v", last+3))
	f.Push(delta(Updated, "a", "w", last+4)) // another UID
	if got, want := f.Len(), mergeAbove+3; got != want {
		t.Errorf("%d deltas wait, want %d: updates of one object merge, additions, deletions and other UIDs do not", got, want)
	}
	b := popBatch(t, f)
	wantDeltas(t, "the key's first deltas", b.Deltas[:2], "Added a u@1", fmt.Sprintf("Updated a u@%d", last))
	if len(b.Deltas) < mergeAbove || b.Reached[0].Version < last {
		t.Errorf("a merged update was popped in a batch of %d deltas that reaches %d, though it shows version %d", len(b.Deltas), b.Reached[0].Version, last)
	}
}

func TestDeltaFIFO_KeepsUpdatesThatAHandlerAsksFor(t *testing.T) {
	f, _ := newStore(t)
	const kept = 2 * mergeAbove
	update := func(v int) {
		d := delta(Updated, "a", "u", kube.Version(v))
		d.Bytes = 1000
		f.Push(d)
	}
	f.Keep(kept * (EventBytes + 1000))
	for v := range kept {
		update(v + 1)
	}
	if got := f.Snapshot(); got.Deltas != kept || got.Merged != 0 {
		t.Fatalf("%d updates wait, %d merged; want %d and none below the bound", got.Deltas, got.Merged, kept)
	}
	for v := range 10 {
		update(kept + v + 1)
	}
	if got := f.Snapshot(); got.Deltas != kept || got.Merged != 10 {
		t.Errorf("%d updates wait, %d merged; want %d and 10: a bound in bytes is one", got.Deltas, got.Merged, kept)
	}
	b := popBatch(t, f)
	if b.Merged != 10 || len(b.Deltas) != kept {
		t.Errorf("a batch of %d says that %d merged, want %d and 10", len(b.Deltas), b.Merged, kept)
	}
	if f.mu.log.bytes != 0 {
		t.Errorf("an empty log counts %d bytes", f.mu.log.bytes)
	}
	f.Keep(-1)
	for v := range kept + 10 {
		update(kept + 10 + v + 1)
	}
	if got := f.Snapshot(); got.Deltas != kept+10 || got.Merged != 10 {
		t.Errorf("%d updates wait, %d merged; want all %d where there is no bound", got.Deltas, got.Merged-10, kept+10)
	}
}

// A list that is newer than the known state of an object, but has it in an
// older version, must be of another history.
func TestReplacement_FindsWhatWasUndone(t *testing.T) {
	f, x := newStore(t)
	f.Push(delta(Added, "a", "u", 5))
	f.Push(delta(Added, "b", "v", 6))
	applyBatch(t, f, x)
	for _, test := range []struct {
		name string
		list []Delta
		v    kube.Version
		want int
	}{
		{"older in a newer list", []Delta{delta(Replaced, "a", "u", 3), delta(Replaced, "b", "v", 6)}, 9, 1},
		{"another object of that version", []Delta{delta(Replaced, "a", "u", 5), delta(Replaced, "b", "w", 6)}, 9, 1},
		{"both", []Delta{delta(Replaced, "a", "w", 4), delta(Replaced, "b", "v", 2)}, 9, 2},
		{"older in an older list", []Delta{delta(Replaced, "a", "u", 3), delta(Replaced, "b", "v", 2)}, 4, 0},
		{"a stream that goes on to the newer state before its end", []Delta{delta(Replaced, "a", "u", 3), delta(Replaced, "a", "u", 5), delta(Replaced, "b", "v", 6)}, 9, 0},
		{"newer", []Delta{delta(Replaced, "a", "u", 8), delta(Replaced, "b", "w", 9)}, 9, 0},
	} {
		r := f.Replace(0)
		for _, d := range test.list {
			r.Add(d)
		}
		if got := r.Undone(test.v); len(got) != test.want {
			t.Errorf("%s: %v were undone, want %d", test.name, got, test.want)
		}
		r.Abort()
	}
}

// A watch's DELETED with an undecodable object has no final state.
// A second list may end before the first is applied: it must prove the rewind
// all the same.
func TestReplacement_FindsWhatWasUndoneWhileAListWaits(t *testing.T) {
	f, x := newStore(t)
	list(f, 0, 5, delta(Added, "a", "u", 5))
	applyBatch(t, f, x)
	for n := range 2 {
		r := f.Replace(0)
		r.Add(delta(Added, "a", "u", 4))
		if got := r.Undone(20); len(got) != 1 {
			t.Errorf("list %d has %v undone, want a", n+1, got)
		}
		r.Commit(20)
	}
	r := f.Replace(0)
	r.Epoch()
	r.Add(delta(Added, "a", "u", 4))
	r.Commit(20)
	r = f.Replace(0)
	r.Add(delta(Added, "a", "u", 4))
	if got := r.Undone(20); len(got) != 0 {
		t.Errorf("a list after that of a new epoch has %v undone, want nothing: its versions are the new ones", got)
	}
}

func TestDeltaFIFO_EndThatCannotBeReadIsReached_I3(t *testing.T) {
	f, x := newStore(t)
	f.Push(delta(Added, "a", "u", 11))
	f.Push(missing("a", "u", 13))
	applyBatch(t, f, x)
	if x.Len() != 0 || x.Reached(0) != 13 {
		t.Errorf("the store has %d objects and says that it is at version %d, where a was still there; want none at 13", x.Len(), x.Reached(0))
	}
}

func TestDeltaFIFO_ListEntersAsOneBatch_I3(t *testing.T) {
	f, x := newStore(t)
	f.Push(delta(Added, "early", "e", 1))
	var items []Delta
	for i := range 3 * BatchLimit {
		items = append(items, delta(Added, fmt.Sprint(i), types.UID(fmt.Sprint(i)), kube.Version(i+2)))
	}
	r := f.Replace(0)
	for _, d := range items {
		r.Add(d)
	}
	if got := f.Len(); got != 1 {
		t.Fatalf("%d deltas wait before the list has ended, want 1", got)
	}
	r.Commit(9999)
	f.Push(delta(Added, "late", "l", 10_000))
	b := popBatch(t, f)
	if len(b.Reached) != 1 || b.Reached[0].List != 9999 || len(b.Deltas) < len(items)+1 {
		t.Fatalf("the list of %d came in a batch of %d deltas that reaches %v: it was split, so that the store would show a state that never was", len(items), len(b.Deltas), b.Reached)
	}
	x.Apply(b)
	if x.Len() < len(items) || x.Reached(0) < 9999 {
		t.Errorf("after the batch the store has %d objects at version %d", x.Len(), x.Reached(0))
	}
}

func TestDeltaFIFO_FailedListChangesNothing(t *testing.T) {
	f, x := newStore(t)
	list(f, 0, 5, delta(Added, "a", "u", 1))
	applyBatch(t, f, x)
	r := f.Replace(0)
	r.Add(delta(Added, "b", "v", 6))
	r.Abort()
	if got := f.Len(); got != 0 {
		t.Errorf("%d deltas wait after a list that failed half way, want 0", got)
	}
}

func TestDeltaFIFO_RelistFindsTheDisappeared_I5(t *testing.T) {
	f, x := newStore(t)
	list(f, 0, 5, delta(Added, "known", "u1", 1), delta(Added, "stays", "u2", 2), delta(Added, "again", "u3", 3))
	list(f, 1, 5, delta(Added, "other", "u4", 4))
	applyBatch(t, f, x)
	f.Push(delta(Added, "waiting", "u5", 6))
	f.Push(delta(Deleted, "known", "u1", 7))
	f.Push(delta(Added, "known", "u6", 8))
	list(f, 0, 9, delta(Added, "stays", "u2", 2), delta(Added, "again", "u7", 9))

	b := popBatch(t, f)
	got := sketches(b.Deltas)
	slices.Sort(got)
	want := []string{
		"Added known u6@8", "Added waiting u5@6", "Deleted known u1@7", "Deleted known u6@9 unknown",
		"Deleted waiting u5@9 unknown", "Replaced again u7@9",
	}
	if !slices.Equal(got, want) {
		t.Errorf("a list that lacks what was known and what waited:\n got %q\nwant %q", got, want)
	}
	for _, d := range b.Deltas {
		if d.FinalStateUnknown && d.Object == nil {
			t.Errorf("%s is deleted without its last known state", d.Key)
		}
	}
	x.Apply(b)
	var names []string
	for k := range x.KnownIn(0) {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	if want := []string{"again", "stays"}; !slices.Equal(names, want) {
		t.Errorf("the scope has %q after the relist, want %q", names, want)
	}
	if _, held := x.knownAs(fixture.Named("other"), 1); !held {
		t.Error("a list of one scope took an object from another")
	}
}

func TestDeltaFIFO_UnreadableItemKeepsEverything(t *testing.T) {
	f, x := newStore(t)
	list(f, 0, 5, delta(Added, "a", "u", 1))
	applyBatch(t, f, x)
	r := f.Replace(0)
	r.Unreadable()
	r.Commit(6)
	wantDeltas(t, "deletions, though any object may be the one that could not be read", popBatch(t, f).Deltas)
}

func TestDeltaFIFO_UnchangedObjectIsNotNews_I6(t *testing.T) {
	f, x := newStore(t)
	items := []Delta{delta(Added, "a", "u", 1), delta(Added, "b", "v", 2)}
	list(f, 0, 5, items...)
	applyBatch(t, f, x)
	items[1] = delta(Added, "b", "v", 6)
	list(f, 0, 7, items...)
	wantDeltas(t, "what a relist brings", popBatch(t, f).Deltas, "Replaced b v@6")
}

func TestDeltaFIFO_WhatIsBeingAppliedStillWaits(t *testing.T) {
	f, x := newStore(t)
	list(f, 0, 5, delta(Added, "a", "u", 1))
	applyBatch(t, f, x)
	f.Push(delta(Deleted, "a", "u", 6))
	popBatch(t, f) // not applied yet
	list(f, 0, 7, delta(Added, "a", "u", 1))
	wantDeltas(t, "a list that has what is just being deleted", popBatch(t, f).Deltas, "Replaced a u@1")
}

func TestDeltaFIFO_EpochTakesEverything(t *testing.T) {
	f, x := newStore(t)
	list(f, 0, 500, delta(Added, "a", "u", 100), delta(Added, "b", "v", 200))
	applyBatch(t, f, x)
	f.Push(delta(Updated, "a", "u", 501))
	r := f.Replace(0)
	r.Epoch()
	r.Add(delta(Added, "a", "u", 3))
	r.Commit(4)
	b := popBatch(t, f)
	wantDeltas(t, "what is of the time before", b.Deltas, "Updated a u@501")
	x.Apply(b)
	b = popBatch(t, f)
	if !slices.Equal(b.Epochs, []base.ScopeID{0}) {
		t.Fatalf("the batch begins epochs %v, want that of scope 0", b.Epochs)
	}
	changes, _ := x.Apply(b)
	if got, _, _ := x.Get(fixture.Named("a")); fixture.VersionOf(got) != 3 || x.Len() != 1 || x.Reached(0) != 4 || len(changes) != 2 {
		t.Errorf("after revisions went back the store has %s and %d objects at version %d, want version 3, 1 object, at 4", fixture.Sketch(got), x.Len(), x.Reached(0))
	}
}

func TestDeltaFIFO_ResyncSkipsWhatWaits(t *testing.T) {
	f, x := newStore(t)
	list(f, 0, 5, delta(Added, "a", "u", 1), delta(Added, "b", "v", 2))
	applyBatch(t, f, x)
	f.Push(delta(Updated, "b", "v", 7))
	f.Resync(0, 1, x.ObjectsIn(0))
	b := popBatch(t, f)
	wantDeltas(t, "an update and a resync", b.Deltas, "Updated b v@7", "Sync a u@1")
	changes, _ := x.Apply(b)
	if len(changes) != 2 || !changes[1].Resync {
		t.Errorf("%d changes, want 2, and the second a resync", len(changes))
	}
}

func TestDeltaFIFO_ResyncOfEachHandler(t *testing.T) {
	f, x := newStore(t)
	list(f, 0, 5, delta(Added, "a", "u", 1))
	applyBatch(t, f, x)
	for _, handler := range []int{1, 2, 2} {
		f.Resync(0, handler, x.ObjectsIn(0))
	}
	b := popBatch(t, f)
	wantDeltas(t, "two handlers with the same moment of resync", b.Deltas, "Sync a u@1", "Sync a u@1")
	if b.Deltas[0].Handler == b.Deltas[1].Handler {
		t.Errorf("both are for handler %d", b.Deltas[0].Handler)
	}
}

// A streaming list may report the end of an object that it has just shown.
func TestDeltaFIFO_ObjectThatEndsInsideAListIsNeverHeld_I3(t *testing.T) {
	f, x := newStore(t)
	list(f, 0, 5, delta(Added, "old", "u", 1))
	applyBatch(t, f, x)
	r := f.Replace(0)
	r.Add(delta(Added, "old", "u", 1))
	r.Add(delta(Added, "new", "v", 2))
	r.Add(delta(Added, "again", "w", 3))
	r.Remove(delta(Deleted, "old", "u", 6))
	r.Remove(delta(Deleted, "new", "v", 7))
	r.Remove(delta(Deleted, "again", "w", 8))
	r.Add(delta(Added, "again", "z", 9))
	r.Commit(10)
	changes, err := x.Apply(popBatch(t, f))
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := x.Get(fixture.Named("again")); x.Len() != 1 || got == nil || got.GetUID() != "z" || x.Reached(0) != 10 {
		t.Errorf("at version %d the store has %d objects, want only what the server has at 10", x.Reached(0), x.Len())
	}
	for _, c := range changes {
		if c.Key.Name == "old" && c.finalStateUnknown {
			t.Error("the end of an object is called unknown, though the stream has told of it")
		}
	}
	if f.Len() != 0 {
		t.Errorf("%d deltas wait behind the list's batch", f.Len())
	}
}

func TestDeltaFIFO_BlocksUntilSomethingWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newStore(t)
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan any, 1)
		pop := func() {
			b, err := f.PopBatch(ctx)
			if err != nil {
				got <- err
				return
			}
			got <- len(b.Deltas) + len(b.Reached)
		}
		want := func(what string, do func(), want any) {
			go pop()
			synctest.Wait()
			select {
			case v := <-got:
				t.Fatalf("%s: popped %v from an empty log", what, v)
			default:
			}
			do()
			synctest.Wait()
			select {
			case v := <-got:
				if v != want {
					t.Errorf("%s: popped %v, want %v", what, v, want)
				}
			default:
				t.Fatalf("%s does not wake who waits", what)
			}
		}
		want("a push", func() { f.Push(delta(Added, "a", "u", 1)) }, 2)
		want("a bookmark", func() { f.Bookmark(0, 2) }, 1)
		want("an empty list", func() { list(f, 0, 3) }, 1)
		want("the end of the context", cancel, context.Canceled)
		ctx = t.Context()
		want("Close", f.Close, ErrClosed)
		f.Push(delta(Added, "a", "u", 9))
		if _, err := f.PopBatch(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("PopBatch after Close = %v, want ErrClosed", err)
		}
	})
}

func TestDeltaFIFO_BookmarksDoNotPileUp(t *testing.T) {
	f, _ := newStore(t)
	for i := range 10_000 {
		f.Bookmark(base.ScopeID(i%3), kube.Version(i+1))
	}
	if got := f.mu.log.places.Len(); got > 3 {
		t.Errorf("%d places hold the bookmarks of 3 scopes, want 3", got)
	}
	if got := fmt.Sprint(popBatch(t, f).Reached); got != "[{0 10000  <nil>} {1 9998  <nil>} {2 9999  <nil>}]" {
		t.Errorf("reached %s, want the last bookmark of each scope, in order", got)
	}
}

func TestDeltaFIFO_GivesMemoryBack(t *testing.T) {
	f, _ := newStore(t)
	var items []Delta
	for i := range 20_000 {
		items = append(items, delta(Added, fmt.Sprint(i), types.UID(fmt.Sprint(i)), kube.Version(i+1)))
	}
	list(f, 0, 30_000, items...)
	popBatch(t, f)
	f.Bookmark(0, 30_001)
	popBatch(t, f)
	l := &f.mu.log
	if cap(l.flight.Deltas) > BatchLimit || l.last != nil || l.places.Len() != 0 {
		t.Errorf("empty, the log keeps room for %d deltas, an index (%v) and %d places", cap(l.flight.Deltas), l.last != nil, l.places.Len())
	}
}

// The deltas of an ended scope are dropped; those of the others stay by key and
// in order, whether the log is indexed before or after.
func TestDeltaLog_EndOfAScopeKeepsTheOthers_I10(t *testing.T) {
	for _, indexed := range []bool{false, true} {
		f := NewDeltaFIFO(NewIndexer(fixture.ThingKind))
		push := func(scope base.ScopeID, name string, v kube.Version) {
			obj := fixture.NewThing(fixture.Named(name), "u", v, "")
			f.Push(Delta{Type: Updated, Key: fixture.Named(name), Scope: scope, UID: "u", Version: v, Object: obj})
		}
		push(1, "a", 1)
		push(0, "a", 2)
		push(1, "b", 3)
		push(0, "b", 4)
		if indexed {
			f.mu.log.index()
		}
		push(1, "a", 5)
		push(0, "a", 6)
		push(1, "a", 7)
		f.Bookmark(1, 8)
		f.End(ScopesOf(1))
		push(1, "a", 9)
		push(0, "b", 10)
		f.Bookmark(0, 11)
		if n := f.Len(); n != 4 {
			t.Errorf("%d deltas wait, want the 4 of the other scope", n)
		}
		var got []string
		for _, d := range popBatch(t, f).Deltas {
			got = append(got, fmt.Sprintf("%s@%d", d.Key.Name, d.Version))
		}
		if text := strings.Join(got, " "); text != "a@2 b@4 a@6 b@10" {
			t.Errorf("indexed %v: popped %q, want a@2 b@4 a@6 b@10", indexed, text)
		}
	}
}

// The backlog's bytes decide whether updates merge, so an ended scope gives its own back.
func TestDeltaFIFO_EndedScopeGivesItsBytesBack_G15(t *testing.T) {
	f, _ := newStore(t)
	f.Keep(2 * mergeAbove * (EventBytes + 1000))
	update := func(scope base.ScopeID, v int) {
		d := delta(Updated, "a", "u", kube.Version(v))
		d.Scope, d.Bytes, d.Heap = scope, 1000, 2000
		f.Push(d)
	}
	for round := range 3 {
		f.Open(1)
		for v := range mergeAbove {
			update(1, 1+v)
		}
		f.End(ScopesOf(1))
		if got := f.mu.log.bytes; got != 0 || f.Heap() != 0 || f.Len() != 0 {
			t.Fatalf("round %d: an empty log counts %d bytes, %d of the heap and %d deltas", round, got, f.Heap(), f.Len())
		}
	}
	const kept = 2*mergeAbove - 1
	for v := range kept {
		update(0, 1+v)
	}
	if got := f.Snapshot(); got.Deltas != kept || got.Merged != 0 {
		t.Errorf("%d updates wait, %d merged; want all %d: they are within the bound", got.Deltas, got.Merged, kept)
	}
}

// A list may lack an object only because the item could not be read. What this process wrote
// while the list was read then stays, as everything else does.
func TestIndexer_OwnWriteStaysThatAListSaysNothingOf_I8(t *testing.T) {
	for name, unsaid := range map[string]func(*Replacement){
		"an item without a readable key": (*Replacement).Unreadable,
		"an item of another kind":        func(r *Replacement) { r.Keep(fixture.Named("a")) },
		"nothing":                        func(*Replacement) {},
	} {
		t.Run(name, func(t *testing.T) {
			f, x := newStore(t)
			list(f, 0, 5, delta(Added, "a", "u", 4), delta(Added, "b", "v", 5))
			applyBatch(t, f, x)
			r := f.Replace(0)
			r.Add(delta(Added, "b", "v", 5))
			unsaid(r)
			r.Commit(9)
			key := fixture.Named("a")
			if _, _, err := x.Observe(Observed{
				Effect: kube.Stored, Key: key, UID: "u", Version: 7,
				Object: fixture.NewThing(key, "u", 7, "a"), In: ScopesOf(0),
			}); err != nil {
				t.Fatal(err)
			}
			applyBatch(t, f, x)
			obj, _, err := x.Get(key)
			if stays := name != "nothing"; err != nil || (obj != nil) != stays {
				t.Errorf("the own write is %v, %v; want that it stays %t", obj, err, stays)
			}
		})
	}
}
