// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/faults"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

var (
	things = schema.GroupResource{Resource: "things"}
	others = schema.GroupResource{Resource: "others"}
)

func keyOf(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

func thing(name, value string) *object.Object {
	return &object.Object{Fields: map[string]any{"metadata": map[string]any{"name": name}, "v": value}}
}

func put(s *Store, r schema.GroupResource, name, value string) *object.Object {
	tx := s.Begin()
	defer tx.End()
	return tx.Put(r, thing(name, value))
}

func remove(s *Store, r schema.GroupResource, name string) {
	tx := s.Begin()
	defer tx.End()
	tx.Remove(r, keyOf(name))
}

// all is a Selection of everything.
type all struct{}

func (all) Has(obj *object.Object) bool { return obj != nil }
func (all) Span() revisions.Span        { return revisions.Everything }
func (all) Event(c revisions.Change) (revisions.Event, bool) {
	switch {
	case c.After == nil:
		return revisions.Event{Type: revisions.Deleted, Object: c.Gone}, true
	case c.Before == nil:
		return revisions.Event{Type: revisions.Added, Object: c.After}, true
	}
	return revisions.Event{Type: revisions.Modified, Object: c.After}, true
}

func served() (int64, bool) { return 0, true }

// from are the options of a watch of things from a revision.
func from(revision int64) WatchOptions {
	return WatchOptions{Of: things, Held: things, Selection: all{}, Revision: revision, Given: true, Bookmarks: true, Life: served}
}

// next returns the events that a watch has now, in one line.
func next(t *testing.T, w *Watch) string {
	t.Helper()
	events, over := w.Next(t.Context(), 0)
	var b strings.Builder
	for _, e := range events {
		if e.Type == revisions.Failed {
			fmt.Fprintf(&b, "%s %d ", e.Type, e.Status.Code)
			continue
		}
		fmt.Fprintf(&b, "%s %s@%s ", e.Type, e.Object.Meta().GetName(), e.Object.Meta().GetResourceVersion())
	}
	if over {
		b.WriteString("over")
	}
	return strings.TrimSpace(b.String())
}

func expect(t *testing.T, when, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", when, got, want)
	}
}

func TestStore_WatchFromARevision(t *testing.T) {
	s := New(Options{})
	put(s, things, "a", "1")
	put(s, others, "a", "1")
	put(s, things, "b", "1")
	w := s.Watch(t.Context(), from(2))
	defer w.Close()
	expect(t, "from 2", next(t, w), "ADDED b@4")
	put(s, things, "a", "2")
	remove(s, things, "b")
	put(s, others, "b", "1")
	expect(t, "what comes", next(t, w), "MODIFIED a@5 DELETED b@6")

	opts := from(0)
	opts.Initial, opts.Given = true, false
	initial := s.Watch(t.Context(), opts)
	defer initial.Close()
	put(s, things, "c", "1")
	expect(t, "with what is there", next(t, initial), "ADDED a@5 BOOKMARK @7 ADDED c@8")

	s.Compact()
	old := s.Watch(t.Context(), from(2))
	defer old.Close()
	expect(t, "from before the compaction", next(t, old), "ERROR 410 over")
	if n := s.Watches(things); n != 2 {
		t.Errorf("%d watches are open, want 2", n)
	}
	s.DropCache()
	expect(t, "after DropCache", next(t, w), "ADDED c@8 over")
	if at := s.Watch(t.Context(), from(s.Revision()-1)); next(t, at) != "ERROR 410 over" {
		t.Error("the history of watches outlived DropCache")
	}
}

func TestStore_WatchOfAKindThatIsGone(t *testing.T) {
	s := New(Options{})
	opts := from(1)
	opts.Life = func() (int64, bool) { return 0, false }
	expect(t, "not served", next(t, s.Watch(t.Context(), opts)), "over")
	opts.Life = func() (int64, bool) { return 5, true }
	expect(t, "its history begins later", next(t, s.Watch(t.Context(), opts)), "ERROR 410 over")
}

// A future revision is waited for, and refused when it does not come.
func TestStore_WatchOfTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		opts := from(3)
		opts.Initial = true
		time.AfterFunc(time.Second, func() { put(s, things, "a", "1") })
		time.AfterFunc(2*time.Second, func() { put(s, things, "b", "1") })
		expect(t, "in time", next(t, s.Watch(t.Context(), opts)), "ADDED a@2 ADDED b@3 BOOKMARK @3")
		opts.Revision = 9
		began := time.Now()
		expect(t, "never", next(t, s.Watch(t.Context(), opts)), "ERROR 504 over")
		if took := time.Since(began); took != FreshWithin {
			t.Errorf("waited %s, want %s", took, FreshWithin)
		}
	})
}

// The queue of a watch that is not read is bounded by its end.
func TestStore_UnreadWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		w := s.Watch(t.Context(), from(1))
		defer w.Close()
		for n := range 2 * unreadAtMost {
			put(s, things, "a", strconv.Itoa(n))
		}
		if s.Watches(things) != 1 {
			t.Error("the watch ended before its second was over")
		}
		time.Sleep(unreadFor)
		put(s, things, "a", "last")
		if events, over := w.Next(t.Context(), 0); !over || len(events) != 2*unreadAtMost {
			t.Errorf("over: %v, with %d events; want its end with what was queued", over, len(events))
		}
	})
}

// What one Tx reads nobody else changes before it ends.
func TestStore_TxIsAtomic(t *testing.T) {
	s := New(Options{})
	put(s, things, "sum", "0")
	put(s, others, "sum", "0")
	var group sync.WaitGroup
	const writers, times = 4, 100
	for range writers {
		group.Go(func() {
			for range times {
				tx := s.Begin()
				for _, r := range []schema.GroupResource{things, others} {
					n, _ := strconv.Atoi(tx.Get(r, keyOf("sum")).Fields["v"].(string))
					tx.Put(r, thing("sum", strconv.Itoa(n+1)))
				}
				tx.End()
			}
		})
	}
	group.Go(func() {
		for range times {
			both := s.Lists(things, others)
			if a, b := both[0][0].Fields["v"], both[1][0].Fields["v"]; a != b {
				t.Errorf("saw %v and %v, which change together", a, b)
			}
		}
	})
	group.Wait()
	if got := s.Get(things, keyOf("sum")).Fields["v"]; got != strconv.Itoa(writers*times) {
		t.Errorf("the sum is %v, want %d", got, writers*times)
	}
}

// Observers are told of each change in order, of what After writes too, and of what a Rewind
// undoes.
func TestStore_ObserversSeeEachChange(t *testing.T) {
	s := New(Options{After: func(tx *Tx, c revisions.Change) {
		if c.Resource == things && c.Before == nil && c.After != nil {
			tx.Put(others, thing("of-"+c.Key.Name, "1"))
		}
	}})
	put(s, things, "a", "1")
	var seen []string
	leave := s.Observe(func(c revisions.Change) {
		seen = append(seen, fmt.Sprintf("%s %s %v>%v", c.Resource, c.Key.Name, c.Before != nil, c.After != nil))
	})
	put(s, things, "b", "1")
	remove(s, things, "a")
	w := s.Watch(t.Context(), from(0))
	defer w.Close()
	tx := s.Begin()
	tx.Rewind(2)
	tx.End()
	leave()
	put(s, things, "c", "1")
	want := "[others of-a false>true things a false>true things b false>true others of-b false>true things a true>false things a false>true others of-b true>false]"
	if got := fmt.Sprint(seen); got != want {
		t.Errorf("saw %s, want %s", got, want)
	}
	expect(t, "the watch after the rewind", next(t, w), "over")
	if s.Get(things, keyOf("a")) == nil || s.Revision() != 6 {
		t.Errorf("a is %v at revision %d, want it back, and c's creation after revision 4", s.Get(things, keyOf("a")), s.Revision())
	}
}

// lagging is a Cache that knows nothing after a revision.
type lagging struct {
	direct
	at int64 // 0: no limit
}

func (l *lagging) Shown(revision int64) int64 {
	if l.at > 0 {
		return min(l.at, revision)
	}
	return revision
}

func TestStore_WatchesSeeWhatTheCacheShows(t *testing.T) {
	cache := &lagging{at: 2}
	s := New(Options{Cache: cache})
	w := s.Watch(t.Context(), from(1))
	defer w.Close()
	for _, name := range []string{"a", "b", "c"} {
		put(s, things, name, "1")
	}
	expect(t, "while the cache lags", next(t, w), "ADDED a@2")
	tx := s.Begin()
	if tx.Shown(things) != 2 || tx.Revision() != 4 {
		t.Errorf("shown is %d of %d, want 2 of 4", tx.Shown(things), tx.Revision())
	}
	tx.End()
	s.Reshow(func() { cache.at = 0 })
	expect(t, "when it has caught up", next(t, w), "ADDED b@3 ADDED c@4")
}

// A resource that lags by itself has its changes later, also if those that all watches lagged behind
// by are compacted.
func TestStore_CompactionDuringALagTakesNothingFromAKindThatLagsAlone_S6(t *testing.T) {
	d := &faults.Delivery{}
	s := New(Options{Cache: d})
	put(s, things, "a", "1")
	s.Reshow(func() { d.LagTo(2) })
	put(s, things, "b", "1")
	s.Compact()
	s.Reshow(func() { d.LagKindTo(things, 4) })
	put(s, things, "c", "1")
	remove(s, things, "a")
	s.Reshow(func() { d.LagTo(0) })
	opts := from(0)
	opts.Initial = true
	w := s.Watch(t.Context(), opts)
	defer w.Close()
	expect(t, "a watch of the kind", next(t, w), "ADDED a@2 ADDED b@3 ADDED c@4 BOOKMARK @4")
	s.Reshow(func() { d.CatchUpKind(things) })
	expect(t, "when it has caught up", next(t, w), "DELETED a@5")
}

// A watch that opens while a lag ends has each change once.
func TestStore_WatchThatOpensWhileTheCacheCatchesUp_S6(t *testing.T) {
	for range 200 {
		d := &faults.Delivery{}
		s := New(Options{Cache: d})
		s.Reshow(func() { d.LagTo(1) })
		put(s, things, "a", "1")
		put(s, things, "a", "2")
		var catchUp sync.WaitGroup
		catchUp.Go(func() { s.Reshow(func() { d.LagTo(0) }) })
		w := s.Watch(t.Context(), from(1))
		catchUp.Wait()
		expect(t, "after the lag", next(t, w), "ADDED a@2 MODIFIED a@3")
		w.Close()
	}
}

func TestStore_RewindForgetsWhatIsHeldBack(t *testing.T) {
	d := &faults.Delivery{}
	s := New(Options{Cache: d})
	put(s, things, "a", "1")
	d.Reorder(things)
	put(s, things, "a", "2") // held back
	tx := s.Begin()
	tx.Rewind(1)
	tx.End()
	w := s.Watch(t.Context(), from(2))
	defer w.Close()
	put(s, things, "b", "1")
	expect(t, "after a rewind", next(t, w), "ADDED b@3")
}

// After a rewind a write has a revision that the file had before. It is acknowledged and shown
// only when it is in the file itself, and what the rewind undid too.
func TestStore_WriteAfterARewindIsKeptBeforeItIsShown_S23(t *testing.T) {
	s := New(Options{})
	tx := s.Begin()
	s.mu.keeping = keeping{to: NewJournal("x", &file{}), reached: s.mu.log.Revision}
	tx.End()
	put(s, things, "a", "1")
	put(s, things, "b", "1")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	keep := func() {
		if err := s.Keep(ended); err != nil {
			t.Fatal(err)
		}
	}
	keep()
	tx = s.Begin()
	tx.Rewind(2)
	tx.End()
	put(s, things, "c", "1")
	if s.Kept(ended) == nil {
		t.Errorf("S23: a write was acknowledged, and %d records are not in the file", len(s.mu.keeping.queue))
	}
	if shown := s.shownLocked(); shown == s.mu.log.Revision {
		t.Errorf("S23: watches are shown revision %d, which is not in the file", shown)
	}
	keep()
	if err := s.Kept(ended); err != nil || s.shownLocked() != s.mu.log.Revision {
		t.Errorf("S23: all is in the file, but Kept is %v and %d of %d is shown", err, s.shownLocked(), s.mu.log.Revision)
	}
}

// file is the file of a journal in memory.
type file struct {
	mu sync.Mutex
	bytes.Buffer
	fault error
}

func (f *file) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault != nil {
		return 0, f.fault
	}
	return f.Buffer.Write(p)
}

func (f *file) Sync() error  { return nil }
func (f *file) Close() error { return nil }

func (f *file) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = err
}

// With a journal a watch sees a change once it is in the file, and never one that cannot be
// written.
func TestStore_FirstInTheFile_S23(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Given: func() Counters { return Counters{UIDs: 7} }})
		into := &file{}
		tx := s.Begin()
		if err := tx.Resume(NewJournal("journal", into), &JournalContent{Log: revisions.NewLog()}); err != nil {
			t.Fatal(err)
		}
		tx.End()
		w := s.Watch(t.Context(), from(1))
		defer w.Close()
		put(s, things, "a", "1")
		expect(t, "before it is written", next(t, w), "")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Kept(ctx); err == nil {
			t.Error("Kept returned before it was written")
		}
		ctx, stop := context.WithCancel(t.Context())
		lost := make(chan error, 1)
		go func() { lost <- s.Keep(ctx) }()
		if err := s.Kept(t.Context()); err != nil || strings.Count(into.String(), `"uids":7`) != 1 {
			t.Errorf("kept: %v, with %q in the file", err, into.String())
		}
		expect(t, "when it is written", next(t, w), "ADDED a@2")
		into.fail(errors.New("no space left on device"))
		put(s, things, "b", "1")
		if err := <-lost; err == nil || !strings.Contains(err.Error(), "write journal: no space left on device") {
			t.Errorf("Keep returned %v, want the cause", err)
		}
		if err := s.Kept(t.Context()); err == nil {
			t.Error("Kept returned without an error for a change that is not in the file")
		}
		expect(t, "when it cannot be written", next(t, w), "over")
		stop()
	})
}

// What a Rewind undoes is undone in the file too.
func TestStore_RewindIsKept_S23(t *testing.T) {
	dir := t.TempDir()
	into, content, _, err := OpenJournal(dir)
	if err != nil || content != nil {
		t.Fatalf("a new directory has %v, %v", content, err)
	}
	s := New(Options{})
	tx := s.Begin()
	if err := tx.Resume(into, content); err != nil {
		t.Fatal(err)
	}
	tx.End()
	put(s, things, "a", "1")
	put(s, things, "a", "2")
	put(s, things, "b", "1")
	remove(s, things, "a")
	tx = s.Begin()
	tx.Rewind(3)
	tx.End()
	put(s, things, "c", "1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // Keep writes what is queued
	if err := s.Keep(ctx); err != nil {
		t.Fatal(err)
	}
	if err := into.Close(); err != nil {
		t.Fatal(err)
	}
	into, content, _, err = OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer into.Close()
	var got []string
	for _, c := range content.Log.All() {
		got = append(got, fmt.Sprintf("%s=%v@%d", c.Key.Name, c.After.Fields["v"], c.Revision))
	}
	if fmt.Sprint(got) != "[a=1@2 c=1@3]" || content.Log.Revision != s.Revision() {
		t.Errorf("the file has %v at revision %d, want a as it was and c, at %d", got, content.Log.Revision, s.Revision())
	}
}

// A watch that cannot catch up ends at once, also for a reader that waits.
func TestStore_WatchThatCannotCatchUpEnds_S6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &faults.Delivery{}
		s := New(Options{Cache: d})
		put(s, things, "a", "1")
		put(s, things, "b", "1")
		s.Reshow(func() { d.LagTo(2) })
		w := s.Watch(t.Context(), from(2))
		defer w.Close()
		s.Compact()
		var reader sync.WaitGroup
		began := time.Now()
		reader.Go(func() { w.Next(t.Context(), time.Hour) })
		synctest.Wait()
		s.Reshow(func() { d.LagTo(0) })
		reader.Wait()
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the reader waited for %v", waited)
		}
		if _, over := w.Next(t.Context(), 0); !over {
			t.Error("the watch goes on without a change that was compacted")
		}
	})
}

// A watch that opened during a lag of all resources has what its own resource holds back once, and
// then.
func TestStore_WatchThatCatchesUpWaitsForItsKind_S6(t *testing.T) {
	for name, end := range map[string]func(*Store, *faults.Delivery){
		"caught up": func(s *Store, d *faults.Delivery) { s.Reshow(func() { d.CatchUpKind(things) }) },
		"healed": func(s *Store, d *faults.Delivery) {
			tx := s.Begin()
			defer tx.End()
			tx.Show(d.Heal())
			tx.Deliver()
		},
	} {
		d := &faults.Delivery{}
		s := New(Options{Cache: d})
		put(s, things, "a", "1")
		s.Reshow(func() { d.LagKindTo(things, 2) })
		put(s, things, "b", "1") // held back
		s.Reshow(func() { d.LagTo(2) })
		w := s.Watch(t.Context(), from(2))
		defer w.Close()
		s.Reshow(func() { d.LagTo(0) })
		expect(t, name+": while its kind lags", next(t, w), "")
		end(s, d)
		expect(t, name+": after that", next(t, w), "ADDED b@3")
	}
}
