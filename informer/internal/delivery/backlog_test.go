// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

// slotOf returns a different slot for each name.
func slotOf(name string) uint32 {
	slot := uint32(0)
	for _, r := range name {
		slot = slot*37 + uint32(r)
	}
	return slot % (1 << 20)
}

// became returns a change of name between two states, "uid@version" or empty.
func became(name, old, new string) store.Change {
	c := store.Change{Key: fixture.Named(name), Slot: slotOf(name)}
	read := func(s string) (kube.Object, types.UID, *store.ScopeSet) {
		var uid string
		var v kube.Version
		if s == "" {
			return nil, "", nil
		}
		_, _ = fmt.Sscanf(s, "%1s@%d", &uid, &v)
		return fixture.NewThing(fixture.Named(name), types.UID(uid), v, ""), types.UID(uid), store.ScopesOf(0)
	}
	c.Old, c.OldUID, c.Before = read(old)
	if c.New, c.NewUID, c.After = read(new); new == "" {
		c.New, c.NewUID = c.Old, c.OldUID
	}
	return c
}

func tell(events []kube.Event[kube.Object]) (out []string) {
	for _, e := range events {
		s := fmt.Sprintf("%s %s", e.Type, e.Key.Name)
		if e.Old != nil {
			s += fmt.Sprintf(" from %s@%s", e.Old.GetUID(), e.Old.GetResourceVersion())
		}
		if e.New != nil {
			s += fmt.Sprintf(" to %s@%s", e.New.GetUID(), e.New.GetResourceVersion())
		}
		for flag, set := range map[string]bool{" initial": e.Initial, " resync": e.Resync, " unknown": e.FinalStateUnknown, " left": e.LeftScope} {
			if set {
				s += flag
			}
		}
		out = append(out, s)
	}
	return out
}

func drain(w Backlog) (events []kube.Event[kube.Object]) {
	for w.Len() > 0 {
		told, _ := w.Take(nil)
		events = append(events, told...)
	}
	return events
}

// A handler that read the key while it was undecodable must look again: the
// update that heals it says so, even if the handler did not receive the bad
// version.
func TestBacklog_HealingIsTold_I8(t *testing.T) {
	bad := &kube.Undecodable{Key: fixture.Named("a"), UID: "u", Version: 2}
	fell, rose := became("a", "u@1", "u@1"), became("a", "u@1", "u@3")
	fell.New, fell.Same = fell.Old, true
	fell.Trouble = &store.Trouble{Before: fell.Before, After: fell.After, Is: bad}
	rose.Trouble = &store.Trouble{Before: rose.Before, After: rose.After, Was: bad}
	level := newBacklog()
	level.undecodable = true
	for name, w := range map[string]Backlog{"level-triggered": level, "every event": &eventStream{undecodable: true}} {
		w.Push(fell, nil, false)
		told := drain(w)
		w.Push(rose, nil, false)
		told = append(told, drain(w)...)
		if len(told) != 2 || told[0].Type != kube.Undecoded || told[0].Healed || told[1].Type != kube.Updated || !told[1].Healed {
			t.Errorf("%s: told %+v, want an undecodable version and an update that heals", name, told)
		}
		w.Push(fell, nil, false)
		w.Push(rose, nil, false)
		if told := drain(w); len(told) == 0 || !told[len(told)-1].Healed {
			t.Errorf("%s: told %+v at once, want an update that heals", name, told)
		}
		w.Push(became("a", "u@3", "u@4"), nil, false)
		if told := drain(w); len(told) != 1 || told[0].Healed {
			t.Errorf("%s: told %+v of a plain update, want that it heals nothing", name, told)
		}
	}
}

func TestBacklog_EndsInTheCurrentState_I4(t *testing.T) {
	again := becameAgain("a", "u@1")
	tests := []struct {
		name  string
		push  []store.Change
		want  []string
		every []string
	}{
		{"updates merge", []store.Change{became("a", "u@1", "u@2"), became("a", "u@2", "u@3")},
			[]string{"updated a from u@1 to u@3"}, []string{"updated a from u@1 to u@2", "updated a from u@2 to u@3"}},
		{"an addition shows the newest state", []store.Change{became("a", "", "u@1"), became("a", "u@1", "u@2")},
			[]string{"added a to u@2"}, []string{"added a to u@1", "updated a from u@1 to u@2"}},
		{"what came and went is not told", []store.Change{became("a", "", "u@1"), became("a", "u@1", "")},
			nil, []string{"added a to u@1", "deleted a from u@1"}},
		{"a deletion has what was given", []store.Change{became("a", "u@1", "u@2"), became("a", "u@2", "")},
			[]string{"deleted a from u@1"}, []string{"updated a from u@1 to u@2", "deleted a from u@2"}},
		{"another UID is a deletion and an addition", []store.Change{became("a", "u@1", ""), became("a", "", "v@3"), became("a", "v@3", "v@4")},
			[]string{"deleted a from u@1", "added a to v@4"}, []string{"deleted a from u@1", "added a to v@3", "updated a from v@3 to v@4"}},
		{"another UID at once", []store.Change{became("a", "u@1", "v@3")},
			[]string{"deleted a from u@1 unknown", "added a to v@3"}, []string{"deleted a from u@1 unknown", "added a to v@3"}},
		{"another UID that went too", []store.Change{became("a", "u@1", "v@3"), became("a", "v@3", "")},
			[]string{"deleted a from u@1 unknown"}, []string{"deleted a from u@1 unknown", "added a to v@3", "deleted a from v@3"}},
		{"the same UID come back", []store.Change{became("a", "u@1", ""), became("a", "", "u@3")},
			[]string{"updated a from u@1 to u@3"}, []string{"deleted a from u@1", "added a to u@3"}},
		{"the order is that of first waiting", []store.Change{became("a", "u@1", "u@2"), became("b", "", "w@3"), became("a", "u@2", "u@4")},
			[]string{"updated a from u@1 to u@4", "added b to w@3"}, []string{"updated a from u@1 to u@2", "added b to w@3", "updated a from u@2 to u@4"}},
		{"a resync", []store.Change{again}, []string{"updated a from u@1 to u@1 resync"}, []string{"updated a from u@1 to u@1 resync"}},
		{"a resync that turns into an update", []store.Change{again, became("a", "u@1", "u@2")},
			[]string{"updated a from u@1 to u@2"}, []string{"updated a from u@1 to u@1 resync", "updated a from u@1 to u@2"}},
		{"an update needs no resync", []store.Change{became("a", "u@1", "u@2"), becameAgain("a", "u@2")},
			[]string{"updated a from u@1 to u@2"}, []string{"updated a from u@1 to u@2", "updated a from u@2 to u@2 resync"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			level, every := newBacklog(), &eventStream{}
			for _, c := range test.push {
				level.Push(c, nil, false)
				every.Push(c, nil, false)
			}
			if got := tell(drain(level)); !slices.Equal(got, test.want) {
				t.Errorf("level-triggered:\n got %q\nwant %q", got, test.want)
			}
			if got := tell(drain(every)); !slices.Equal(got, test.every) {
				t.Errorf("every event:\n got %q\nwant %q", got, test.every)
			}
		})
	}
}

func becameAgain(name, state string) store.Change {
	c := became(name, state, state)
	c.Resync = true
	return c
}

func TestBacklog_ShowsItsScopes(t *testing.T) {
	moved := became("a", "u@1", "u@1")
	moved.New, moved.Same = moved.Old, true
	moved.Before, moved.After = store.ScopesOf(0), store.ScopesOf(1)
	both := moved
	both.After = store.ScopesOf(0, 1)
	left := became("a", "u@1", "")
	left.LeftScope = true
	for _, every := range []bool{false, true} {
		tests := []struct {
			what   string
			c      store.Change
			filter *store.ScopeSet
			want   []string
		}{
			{"left", moved, store.ScopesOf(0), []string{"deleted a from u@1"}},
			{"joined", moved, store.ScopesOf(1), []string{"added a to u@1"}},
			{"moved within", moved, store.ScopesOf(0, 1), nil},
			{"moved within all", moved, nil, nil},
			{"elsewhere", moved, store.ScopesOf(2), nil},
			{"held by one more", both, store.ScopesOf(0), nil},
			{"left by an own write", left, store.ScopesOf(0), []string{"deleted a from u@1 left"}},
		}
		for _, test := range tests {
			var w Backlog = newBacklog()
			if every {
				w = &eventStream{}
			}
			w.Push(test.c, test.filter, false)
			if got := tell(drain(w)); !slices.Equal(got, test.want) {
				t.Errorf("%s, every event %v: got %q, want %q", test.what, every, got, test.want)
			}
		}
	}
}

func TestBacklog_IsBoundedByTheObjects_I7(t *testing.T) {
	b := newBacklog()
	for i := range 100_000 {
		v := 3*i + 1
		a, b1, c := fmt.Sprintf("u@%d", v), fmt.Sprintf("u@%d", v+1), fmt.Sprintf("u@%d", v+2)
		b.Push(became("lives", a, b1), nil, false)
		b.Push(became(fmt.Sprint("passes", i), "", c), nil, false)
		b.Push(became(fmt.Sprint("passes", i), c, ""), nil, false)
	}
	places := 0
	for p := b.ring.next; p != &b.ring; p = p.next {
		places++
	}
	if places != 1 || b.Len() != 1 {
		t.Errorf("%d places wait for 1 object after 300,000 changes: the backlog grows with the events", places)
	}
}

// Consecutive bursts reuse the entries. The entries of the last burst are freed
// while events continue.
func TestBacklog_KeepsTheEntriesOfABurstForTheNext_I7(t *testing.T) {
	const keys = 4 * freeEntries // the pages of the table are kept too
	changes := make([]store.Change, keys)
	for i := range changes {
		changes[i] = became("one", "u@1", "u@2")
		changes[i].Key, changes[i].Slot = fixture.Named(fmt.Sprint(i)), uint32(i)
	}
	b := newBacklog()
	var buf [3]kube.Event[kube.Object]
	burst := func(changes []store.Change) {
		for _, c := range changes {
			b.Push(c, nil, false)
		}
		for b.Len() > 0 {
			b.Take(buf[:0])
		}
	}
	burst(changes)
	if n := testing.AllocsPerRun(5, func() { burst(changes) }); n > 0 {
		t.Errorf("a burst of %d keys after others of the same size allocates %v times, want 0", keys, n)
	}
	for second := range uint32(10) {
		b.Clock((second + 1) * halvedEvery)
		burst(changes[:freeEntries])
	}
	if limit := 2 * freeEntries; b.frees > limit {
		t.Errorf("%d entries are kept after ten seconds of bursts of %d, want %d at most: what a burst took is never given back", b.frees, freeEntries, limit)
	}
}

func TestEventStream_MergesUpdatesOnlyInABacklog(t *testing.T) {
	const below = 200
	// The size of an Object is unknown.
	s := newEventStream(Options{BacklogBytes: below * (store.EventBytes + store.UnknownBytes)})
	for i := range below {
		s.Push(became("a", fmt.Sprintf("u@%d", i+1), fmt.Sprintf("u@%d", i+2)), nil, false)
	}
	if s.Len() != below {
		t.Fatalf("%d events wait, want %d: none merges below the bound", s.Len(), below)
	}
	for range 1000 {
		s.Push(became("a", "u@1", "u@9"), nil, false)
		s.Push(became("b", "v@1", "v@9"), nil, false)
	}
	if got, want := s.Len(), below+2; got != want {
		t.Errorf("%d events wait, want %d: above the bound an update goes into the one before", got, want)
	}
	for range 1000 {
		s.Push(became("a", "u@9", ""), nil, false)
		s.Push(became("a", "", "u@9"), nil, false)
		s.Push(became("a", "u@9", "u@9"), nil, false)
	}
	if got, want := s.Len(), below+2+3000; got != want {
		t.Errorf("%d events wait, want %d: additions and deletions are never dropped, and nothing merges across them", got, want)
	}
	drain(s)
	if s.update != nil {
		t.Error("empty, it keeps its index")
	}
}

func TestEventStream_RelistsWaitOnceInABacklog(t *testing.T) {
	relisted := func(state string) store.Change {
		c := becameAgain("a", state)
		c.Relisted = true
		return c
	}
	s := newEventStream(Options{BacklogBytes: 3 * store.EventBytes})
	for range 10 {
		s.Push(relisted("u@1"), nil, false)
	}
	s.Push(became("a", "u@1", "u@2"), nil, false)
	s.Push(relisted("u@2"), nil, false)
	bytes, merged := s.Size()
	if s.Len() != 4 || merged != 8 || bytes != 4*store.EventBytes+store.UnknownBytes {
		t.Errorf("%d events of %d bytes wait and %d merged, want 4 of %d, and 8: below the bound each waits, above it the object once", s.Len(), bytes, merged, 4*store.EventBytes+store.UnknownBytes)
	}
	again, last := 0, kube.Event[kube.Object]{}
	for _, e := range drain(s) {
		if e.Relisted {
			again++
		}
		last = e
	}
	if got := tell([]kube.Event[kube.Object]{last}); again != 3 || got[0] != "updated a from u@1 to u@2" {
		t.Errorf("given again %d times and then %q, want 3 times and the update that followed", again, got)
	}
	if bytes, _ := s.Size(); bytes != 0 {
		t.Errorf("empty, it counts %d bytes", bytes)
	}
}

func TestBacklog_RelistIsAnUpdateToItself(t *testing.T) {
	b := newBacklog()
	c := becameAgain("a", "u@1")
	c.Relisted = true
	b.Push(c, nil, false)
	b.Push(c, nil, false)
	got := drain(b)
	if len(got) != 1 || got[0].Type != kube.Updated || !got[0].Relisted || got[0].Resync || got[0].Old.GetResourceVersion() != got[0].New.GetResourceVersion() {
		t.Errorf("told %+v, want one update to itself, because of a list", got)
	}
	b.Push(c, nil, false)
	b.Push(became("a", "u@1", "u@2"), nil, false)
	if got := drain(b); len(got) != 1 || got[0].Relisted {
		t.Errorf("told %+v, want an update whose cause is the change", got)
	}
}

// An event is that of an own write only if each change that is merged into it is.
func TestBacklog_TellsOwnWrites(t *testing.T) {
	own := func(c store.Change) store.Change {
		c.Own = true
		return c
	}
	made, changed := became("a", "", "u@1"), became("a", "u@1", "u@2")
	for name, row := range map[string]struct {
		changes []store.Change
		every   []bool // of a handler of every event that is not merged
		merged  bool
	}{
		"of others":             {[]store.Change{made}, []bool{false}, false},
		"own":                   {[]store.Change{own(made)}, []bool{true}, true},
		"own twice":             {[]store.Change{own(made), own(changed)}, []bool{true, true}, true},
		"own after another":     {[]store.Change{made, own(changed)}, []bool{false, true}, false},
		"another after own":     {[]store.Change{own(made), changed}, []bool{true, false}, false},
		"an own deletion":       {[]store.Change{own(became("a", "u@1", ""))}, []bool{true}, true},
		"deleted by an outside": {[]store.Change{became("a", "u@1", "")}, []bool{false}, false},
	} {
		b, s := newBacklog(), newEventStream(Options{})
		for _, c := range row.changes {
			b.Push(c, store.ScopesOf(0), false)
			s.Push(c, store.ScopesOf(0), false)
		}
		if e := drain(b); len(e) != 1 || e[0].Own != row.merged {
			t.Errorf("%s: merged %+v, want own: %v", name, e, row.merged)
		}
		for i, e := range drain(s) {
			if e.Own != row.every[i] {
				t.Errorf("%s: event %d is own: %v, want %v", name, i, e.Own, row.every[i])
			}
		}
	}
}
