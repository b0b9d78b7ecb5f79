// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"testing"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"k8s.io/apimachinery/pkg/types"
)

func (h holding) String() string {
	if h.scopes.Empty() {
		return "none"
	}
	var scopes []base.ScopeID
	for id := range h.scopes.All() {
		scopes = append(scopes, id)
	}
	s := fmt.Sprintf("%s@%d in %v", h.uid, h.version, scopes)
	if !h.own.Empty() {
		s += " own"
	}
	if h.bad {
		s += " bad"
	}
	return s
}

// The rules of own writes (a) to (e), and that the newest version wins.
func TestDecide_NewestVersionWins_I1(t *testing.T) {
	zero, one := ScopesOf(0), ScopesOf(0, 1)
	at5 := holding{scopes: zero, uid: "u", version: 5}
	own7 := holding{scopes: zero, uid: "u", version: 7, own: zero}
	in := func(ids ...base.ScopeID) *ScopeSet { return ScopesOf(ids...) }
	tests := []struct {
		rule string
		h    holding
		n    news
		w    world
		want string
		also string // of floor, bury, await, left, refused
	}{
		{"I1: a newer version is taken", at5, news{uid: "u", version: 6}, world{}, "u@6 in [0]", ""},
		{"I1: an older version is not", at5, news{uid: "u", version: 4}, world{}, "u@5 in [0]", ""},
		{"I1: an older version of another UID is not", at5, news{uid: "t", version: 4}, world{}, "u@5 in [0]", ""},
		{"I1: a scope that is behind does not join an entry that is ahead", at5, news{scope: 1, uid: "u", version: 4}, world{}, "u@5 in [0]", ""},
		{"the same version is no news", at5, news{uid: "u", version: 5}, world{}, "u@5 in [0]", ""},
		{"the same version from another scope is held by both", at5, news{scope: 1, uid: "u", version: 5}, world{}, "u@5 in [0 1]", ""},
		{"a newer version is held by all", at5, news{scope: 1, uid: "u", version: 6}, world{}, "u@6 in [0 1]", ""},
		{"another UID is held by its scope alone", holding{scopes: one, uid: "t", version: 5}, news{scope: 1, uid: "u", version: 6}, world{}, "u@6 in [1]", ""},
		{"what cannot be decoded stays", at5, news{uid: "u", version: 6, bad: true}, world{}, "u@6 in [0] bad", ""},
		{"and heals with its next version", holding{scopes: zero, uid: "u", version: 6, bad: true}, news{uid: "u", version: 7}, world{}, "u@7 in [0]", ""},
		{"and when the same version can be decoded", holding{scopes: zero, uid: "u", version: 6, bad: true}, news{uid: "u", version: 6}, world{}, "u@6 in [0]", ""},
		{"a key that is gone does not go back either", holding{}, news{uid: "u", version: 4}, world{floor: 5}, "none", ""},
		{"save in a list that is newer than what is known", holding{}, news{uid: "u", version: 4, list: 6}, world{floor: 5}, "u@4 in [0]", ""},

		{"(a) an own write is taken at once", at5, news{kind: stored, uid: "u", version: 7, in: in(0)}, world{}, "u@7 in [0] own", ""},
		{"(a) its echo is no news", own7, news{uid: "u", version: 7}, world{}, "u@7 in [0] own", ""},
		{"(a) a late watch does not take it back", own7, news{uid: "u", version: 6}, world{}, "u@7 in [0] own", ""},
		{"(a) an answer that is older than the watch is not taken", at5, news{kind: stored, uid: "u", version: 4, in: in(0)}, world{}, "u@5 in [0]", ""},
		{"(a) a creation is taken", holding{}, news{kind: stored, uid: "u", version: 7, in: in(0)}, world{reached: []base.Version{6}}, "u@7 in [0] own", ""},
		{"(a) save where the watch has passed it: it is gone again", holding{}, news{kind: stored, uid: "u", version: 7, in: in(0)}, world{reached: []base.Version{8}}, "none", ""},

		{"(a) in its own scope too if another has shown it first", holding{scopes: in(1), uid: "u", version: 7}, news{kind: stored, uid: "u", version: 7, in: in(0)}, world{reached: []base.Version{5, 7}}, "u@7 in [0 1] own", ""},
		{"(a) but not in one that has seen it leave", holding{scopes: in(1), uid: "u", version: 7}, news{kind: stored, uid: "u", version: 7, in: in(0)}, world{reached: []base.Version{7, 7}}, "u@7 in [1]", ""},
		{"(a) which then keeps it until it has reached it", holding{scopes: one, uid: "u", version: 7}, news{kind: stored, uid: "u", version: 7, in: in(0)}, world{reached: []base.Version{5, 7}}, "u@7 in [0 1] own", ""},
		{"(a) an older answer shows its scope the newer state that another has", holding{scopes: in(1), uid: "u", version: 7}, news{kind: stored, uid: "u", version: 5, in: in(0), held: in(0)}, world{reached: []base.Version{3, 7}}, "u@7 in [0 1] own", ""},
		{"(a) also if the watch has delivered the older one, which was not taken", holding{scopes: in(1), uid: "u", version: 7}, news{kind: stored, uid: "u", version: 5, in: in(0), held: in(0)}, world{reached: []base.Version{5, 7}}, "u@7 in [0 1] own", ""},
		{"(a) or if the scope has it, which could still let it go", holding{scopes: one, uid: "u", version: 7}, news{kind: stored, uid: "u", version: 5, in: in(0), held: in(0)}, world{reached: []base.Version{3, 7}}, "u@7 in [0 1] own", ""},
		{"(a) but not in one that has seen the newer one", holding{scopes: in(1), uid: "u", version: 7}, news{kind: stored, uid: "u", version: 5, in: in(0), held: in(0)}, world{reached: []base.Version{7, 7}}, "u@7 in [1]", ""},
		{"(a) nor in one that does not have the newer one", holding{scopes: in(1), uid: "u", version: 7}, news{kind: stored, uid: "u", version: 5, in: in(0), unheld: in(0)}, world{reached: []base.Version{3, 7}}, "u@7 in [1]", ""},
		{"(a) nor in one of which that is not known", holding{scopes: in(1), uid: "u", version: 7}, news{kind: stored, uid: "u", version: 5, in: in(0)}, world{reached: []base.Version{3, 7}}, "u@7 in [1]", "hidden"},
		{"(a) nor of an earlier object", holding{scopes: in(1), uid: "u", version: 7}, news{kind: stored, uid: "t", version: 5, in: in(0), held: in(0)}, world{reached: []base.Version{3, 7}}, "u@7 in [1]", ""},
		{"(a) nor in one that is gone from all, maybe because it left theirs", holding{}, news{kind: stored, uid: "u", version: 5, in: in(0)}, world{reached: []base.Version{3, 7}, floor: 7}, "none", "hidden"},
		{"(a) or also from its own", holding{}, news{kind: stored, uid: "u", version: 5, in: in(0)}, world{reached: []base.Version{7, 3}, floor: 7}, "none", ""},
		{"(b) an own deletion hides the UID until the watch confirms", at5, news{kind: removed, uid: "u"}, world{reached: []base.Version{5}}, "none", "floor 5 bury u after 5"},
		{"(b) hidden", holding{}, news{uid: "u", version: 6}, world{tomb: tombstone{after: 5}}, "none", "bury u after 5"},
		{"(b) hidden from the answer to an earlier own write", holding{}, news{kind: stored, uid: "u", version: 6, in: in(0)}, world{tomb: tombstone{after: 5}}, "none", ""},
		{"(b) confirmed", holding{}, news{kind: ended, uid: "u", version: 7}, world{tomb: tombstone{after: 5}}, "none", "dig up u"},
		{"(b) shown by a first list", holding{}, news{uid: "u", version: 6, list: 9}, world{tomb: tombstone{after: 5}}, "none", "bury u after 5 listed 1"},
		{"(b) shown by a second list, it lives", holding{}, news{uid: "u", version: 6, list: 10}, world{tomb: tombstone{after: 5, lists: 1}}, "u@6 in [0]", "dig up u"},
		{"(b) and by a second answer of the same version, it does not", holding{}, news{uid: "u", version: 6, list: 9}, world{tomb: tombstone{after: 5, lists: 1, list: 9}}, "none", "bury u after 5 listed 1"},
		{"(b) an own deletion with a version", at5, news{kind: removed, uid: "u", version: 7}, world{reached: []base.Version{5}}, "none", "floor 7 bury u after 7"},
		{"(b) with the version of the last state", at5, news{kind: removed, uid: "u", version: 5}, world{reached: []base.Version{4}}, "none", "floor 5 bury u after 5"},
		{"(b) whose frame is late", holding{}, news{uid: "u", version: 5}, world{floor: 5, tomb: tombstone{after: 5, last: true}}, "none", "bury u after 5"},
		{"(b) or which a list has", holding{}, news{uid: "u", version: 5, list: 6}, world{floor: 5, tomb: tombstone{after: 5, last: true}}, "none", "bury u after 5 listed 1"},
		{"(b) or several lists", holding{}, news{uid: "u", version: 5, list: 8}, world{floor: 5, tomb: tombstone{after: 5, last: true, lists: 3}}, "none", "bury u after 5 listed 4"},
		{"(b) but not forever: a backup was restored", holding{}, news{uid: "u", version: 5, list: 9}, world{floor: 5, tomb: tombstone{after: 5, last: true, lists: 4}}, "u@5 in [0]", "dig up u"},
		{"(b) whose end was seen before the answer", holding{}, news{kind: removed, uid: "u", version: 5}, world{reached: []base.Version{7}}, "none", ""},
		{"(b) hidden in a later state, from before the deletion", holding{}, news{uid: "u", version: 6}, world{tomb: tombstone{after: 5, last: true}}, "none", "bury u after 5"},
		{"(b) that is older than what is stored", own7, news{kind: removed, uid: "u", version: 6}, world{reached: []base.Version{5}}, "none", "floor 7 bury u after 7"},
		{"(b) of a UID that another followed", own7, news{kind: removed, uid: "t", version: 6}, world{reached: []base.Version{5}}, "u@7 in [0] own", "floor 6 bury t after 6"},
		{"(b) of another UID", at5, news{kind: removed, uid: "t"}, world{reached: []base.Version{5}}, "u@5 in [0]", "floor 5 bury t after 5"},

		{"a read that does not find the key ends the object", at5, news{kind: absent, version: 6}, world{reached: []base.Version{5}}, "none", "floor 6"},
		{"also one that an own write brought", own7, news{kind: absent, version: 7}, world{reached: []base.Version{5}}, "none", "floor 7"},
		{"not one that is newer than the read", own7, news{kind: absent, version: 6}, world{reached: []base.Version{5}}, "u@7 in [0] own", ""},
		{"and hides states before the read", holding{}, news{uid: "u", version: 6}, world{floor: 7}, "none", ""},
		{"of a key that the watch has not brought yet, too", holding{}, news{kind: absent, version: 7}, world{reached: []base.Version{5}}, "none", "floor 7"},
		{"a read without a version ends nothing", at5, news{kind: absent}, world{}, "u@5 in [0]", "refused"},
		{"nor one of an object without", holding{scopes: zero, uid: "u"}, news{kind: absent, version: 7}, world{}, "u@0 in [0]", "refused"},

		{"(c) a deletion at or above the version removes", at5, news{kind: ended, uid: "u", version: 5}, world{reached: []base.Version{5}}, "none", ""},
		{"(c) a deletion below an own write does not", own7, news{kind: ended, uid: "u", version: 6}, world{reached: []base.Version{5}}, "u@7 in [0] own", ""},
		{"(c) nor if another scope has a newer state by now", holding{scopes: one, uid: "u", version: 8}, news{kind: ended, uid: "u", version: 6}, world{reached: []base.Version{5, 8}, ahead: ahead{7, zero}}, "u@8 in [0 1]", ""},
		{"(c) but one above it does", holding{scopes: one, uid: "u", version: 9}, news{kind: ended, uid: "u", version: 8}, world{reached: []base.Version{5, 9}, ahead: ahead{7, zero}}, "u@9 in [1]", ""},
		{"(c) nor one of another UID", at5, news{kind: ended, uid: "t", version: 9}, world{reached: []base.Version{5}}, "u@5 in [0]", ""},
		{"(c) a list removes what is at or below its version", at5, news{kind: ended, uid: "u", version: 5, missing: true}, world{reached: []base.Version{5}}, "none", ""},
		{"(c) and not what is above", own7, news{kind: ended, uid: "u", version: 6, missing: true}, world{reached: []base.Version{5}}, "u@7 in [0] own", ""},
		{"(c) another UID ends the one before", at5, news{uid: "v", version: 6}, world{}, "v@6 in [0]", ""},
		{"(c) an own creation too", at5, news{kind: stored, uid: "v", version: 6, in: in(0)}, world{reached: []base.Version{5}}, "v@6 in [0] own", ""},
		{"(c) also when that is hidden", at5, news{uid: "v", version: 8}, world{tomb: tombstone{after: 7}}, "none", "floor 8 bury v after 7"},
		{"an entry goes when the last scope lets go", holding{scopes: one, uid: "u", version: 5}, news{kind: ended, uid: "u", version: 6}, world{}, "u@5 in [1]", ""},
		{"a scope that is behind lets go of what another has brought forward", holding{scopes: one, uid: "u", version: 7}, news{kind: ended, uid: "u", version: 6}, world{reached: []base.Version{5, 7}}, "u@7 in [1]", ""},
		{"a scope that never held it ends nothing", at5, news{kind: ended, scope: 1, uid: "u", version: 6}, world{}, "u@5 in [0]", ""},
		{"the end is remembered for a scope that is behind", at5, news{kind: ended, uid: "u", version: 6}, world{reached: []base.Version{5, 4}}, "none", "floor 6"},
		{"missing at a version is not ended by it", at5, news{kind: ended, uid: "u", version: 9, missing: true}, world{reached: []base.Version{5, 4}}, "none", "floor 5"},

		{"(d) an own write that leaves the scopes removes", at5, news{kind: stored, uid: "u", version: 7}, world{reached: []base.Version{5}}, "none", "floor 7 left"},
		{"(d) one that leaves one of them stays in the other", holding{scopes: one, uid: "u", version: 5}, news{kind: stored, uid: "u", version: 7, in: in(1)}, world{reached: []base.Version{5, 5}}, "u@7 in [1] own", ""},
		{"(d) one that cannot be judged is awaited", at5, news{kind: stored, uid: "u", version: 7, unsure: in(0)}, world{reached: []base.Version{5}}, "u@5 in [0]", "await 7"},
		{"(d) one that can be judged for some", holding{scopes: one, uid: "u", version: 5}, news{kind: stored, uid: "u", version: 7, in: in(0), unsure: in(1)}, world{reached: []base.Version{5, 5}}, "u@7 in [0 1] own", "await 7"},
		{"(d) what was not judged is let go by its own scope", holding{scopes: one, own: zero, uid: "u", version: 7}, news{kind: ended, scope: 1, uid: "u", version: 6}, world{reached: []base.Version{5, 5}}, "u@7 in [0] own", ""},

		{"(e) without a version the order of arrival decides", at5, news{uid: "u"}, world{}, "u@0 in [0]", ""},
		{"(e) also after one without", holding{scopes: zero, uid: "u"}, news{uid: "u", version: 3}, world{}, "u@3 in [0]", ""},
		{"(e) and for deletions", at5, news{kind: ended, uid: "u"}, world{reached: []base.Version{9}}, "none", "floor 5"},
		{"(e) an own write without a version is not taken", at5, news{kind: stored, uid: "u", in: in(0)}, world{}, "u@5 in [0]", "refused"},
		{"(e) nor over an entry without", holding{scopes: zero, uid: "u"}, news{kind: stored, uid: "u", version: 7, in: in(0)}, world{}, "u@0 in [0]", "refused"},
		{"(e) nor a deletion", holding{scopes: zero, uid: "u"}, news{kind: removed, uid: "u"}, world{}, "u@0 in [0]", "refused"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			f := decide(test.h, test.n, test.w)
			if got := f.next.String(); got != test.want {
				t.Errorf("%s becomes %s, want %s", test.h, got, test.want)
			}
			if got := f.also(); got != test.also {
				t.Errorf("beside it: %q, want %q", got, test.also)
			}
		})
	}
}

// also returns what is recorded besides the entry.
func (f fate) also() (s string) {
	add := func(format string, args ...any) {
		if s != "" {
			s += " "
		}
		s += fmt.Sprintf(format, args...)
	}
	if f.floor != 0 {
		add("floor %d", f.floor)
	}
	switch {
	case f.buried == "":
	case f.bury == tombstone{}:
		add("dig up %s", f.buried)
	default:
		add("bury %s after %d", f.buried, f.bury.after)
		if f.bury.lists > 0 {
			add("listed %d", f.bury.lists)
		}
	}
	if f.await != 0 {
		add("await %d", f.await)
	}
	if f.left {
		add("left")
	}
	if f.refuse {
		add("refused")
	}
	if f.hidden {
		add("hidden")
	}
	return s
}

func TestAgeing_IsBounded(t *testing.T) {
	m := ageing[int, int]{limit: 100}
	for i := range 1000 {
		m.set(i, i)
		m.set(i, -i)
		if i%3 == 0 {
			m.drop(i)
		}
	}
	if m.len() != 99 || m.forgotten == 0 || m.get(998) != -998 {
		t.Errorf("it has %d entries, %d forgotten, the newest is %d; want 99, some, and -998", m.len(), m.forgotten, m.get(998))
	}
	if k, _, _ := m.oldest(); k != 851 {
		t.Errorf("the oldest is %d, want 851: the entry that was set first goes first", k)
	}
	for i := range 100_000 {
		m.set(-1, i)
		m.drop(-1)
	}
	if m.order.Len() > 1000 {
		t.Errorf("the order has %d places for %d entries: it grows with the changes", m.order.Len(), m.len())
	}
}

// An answer that comes after the watch has shown the end leaves nothing behind; nor does one
// about an object that no scope has, once the watches are past it.
func TestIndexer_TombstonesDoNotAccumulate(t *testing.T) {
	x := NewIndexer(fixture.ThingKind)
	x.Begin(0)
	fifo := NewDeltaFIFO(x)
	fifo.Replace(0).Commit(1)
	apply := func() {
		b, err := fifo.PopBatch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.Apply(b); err != nil {
			t.Fatal(err)
		}
	}
	apply()
	for i := range 100 {
		key, uid, v := base.Key{Name: "a"}, types.UID(fmt.Sprint("u", i)), base.Version(10*i+10)
		push := func(kind DeltaType, v base.Version) {
			fifo.Push(Delta{Type: kind, Scope: 0, Key: key, UID: uid, Version: v, Object: fixture.NewThing(key, uid, v, "a")})
			apply()
		}
		push(Added, v)
		push(Deleted, v+1)
		for _, w := range []Observed{
			{Effect: base.Removed, Key: key, UID: uid, Version: v},
			{Effect: base.Removed, Key: base.Key{Name: "elsewhere"}, UID: uid + "-elsewhere", Version: v + 2},
		} {
			if _, _, err := x.Observe(w); err != nil {
				t.Fatal(err)
			}
		}
		fifo.Bookmark(0, v+3)
		apply()
	}
	if n := x.mu.tombs.len(); n != 0 {
		t.Errorf("%d tombstones are left after every watch has passed every end", n)
	}
}
