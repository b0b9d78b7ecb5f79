// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"testing"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/kube"
	"k8s.io/apimachinery/pkg/types"
)

func (h entryState) String() string {
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
	at5 := entryState{scopes: zero, uid: "u", version: 5}
	own7 := entryState{scopes: zero, uid: "u", version: 7, own: zero}
	in := func(ids ...base.ScopeID) *ScopeSet { return ScopesOf(ids...) }
	tests := []struct {
		rule string
		h    entryState
		n    input
		w    knowledge
		want string
		also string // of floor, tombstone, await, left, refused
	}{
		{"I1: a newer version is taken", at5, input{uid: "u", version: 6}, knowledge{}, "u@6 in [0]", ""},
		{"I1: an older version is not", at5, input{uid: "u", version: 4}, knowledge{}, "u@5 in [0]", ""},
		{"I1: an older version of another UID is not", at5, input{uid: "t", version: 4}, knowledge{}, "u@5 in [0]", ""},
		{"I1: a scope that is behind does not join an entry that is ahead", at5, input{scope: 1, uid: "u", version: 4}, knowledge{}, "u@5 in [0]", ""},
		{"the same version is no news", at5, input{uid: "u", version: 5}, knowledge{}, "u@5 in [0]", ""},
		{"the same version from another scope is held by both", at5, input{scope: 1, uid: "u", version: 5}, knowledge{}, "u@5 in [0 1]", ""},
		{"a newer version is held by all", at5, input{scope: 1, uid: "u", version: 6}, knowledge{}, "u@6 in [0 1]", ""},
		{"another UID is held by its scope alone", entryState{scopes: one, uid: "t", version: 5}, input{scope: 1, uid: "u", version: 6}, knowledge{}, "u@6 in [1]", ""},
		{"what cannot be decoded stays", at5, input{uid: "u", version: 6, bad: true}, knowledge{}, "u@6 in [0] bad", ""},
		{"and heals with its next version", entryState{scopes: zero, uid: "u", version: 6, bad: true}, input{uid: "u", version: 7}, knowledge{}, "u@7 in [0]", ""},
		{"and when the same version can be decoded", entryState{scopes: zero, uid: "u", version: 6, bad: true}, input{uid: "u", version: 6}, knowledge{}, "u@6 in [0]", ""},
		{"a key that is gone does not go back either", entryState{}, input{uid: "u", version: 4}, knowledge{floor: 5}, "none", ""},
		{"save in a list that is newer than what is known", entryState{}, input{uid: "u", version: 4, list: 6}, knowledge{floor: 5}, "u@4 in [0]", ""},

		{"(a) an own write is taken at once", at5, input{kind: stored, uid: "u", version: 7, in: in(0)}, knowledge{}, "u@7 in [0] own", ""},
		{"(a) its echo is no news", own7, input{uid: "u", version: 7}, knowledge{}, "u@7 in [0] own", ""},
		{"(a) a late watch does not take it back", own7, input{uid: "u", version: 6}, knowledge{}, "u@7 in [0] own", ""},
		{"(a) an answer that is older than the watch is not taken", at5, input{kind: stored, uid: "u", version: 4, in: in(0)}, knowledge{}, "u@5 in [0]", ""},
		{"(a) a creation is taken", entryState{}, input{kind: stored, uid: "u", version: 7, in: in(0)}, knowledge{reached: []kube.Version{6}}, "u@7 in [0] own", ""},
		{"(a) save where the watch has passed it: it is gone again", entryState{}, input{kind: stored, uid: "u", version: 7, in: in(0)}, knowledge{reached: []kube.Version{8}}, "none", ""},

		{"(a) in its own scope too if another has shown it first", entryState{scopes: in(1), uid: "u", version: 7}, input{kind: stored, uid: "u", version: 7, in: in(0)}, knowledge{reached: []kube.Version{5, 7}}, "u@7 in [0 1] own", ""},
		{"(a) but not in one that has seen it leave", entryState{scopes: in(1), uid: "u", version: 7}, input{kind: stored, uid: "u", version: 7, in: in(0)}, knowledge{reached: []kube.Version{7, 7}}, "u@7 in [1]", ""},
		{"(a) which then keeps it until it has reached it", entryState{scopes: one, uid: "u", version: 7}, input{kind: stored, uid: "u", version: 7, in: in(0)}, knowledge{reached: []kube.Version{5, 7}}, "u@7 in [0 1] own", ""},
		{"(a) an older answer shows its scope the newer state that another has", entryState{scopes: in(1), uid: "u", version: 7}, input{kind: stored, uid: "u", version: 5, in: in(0), held: in(0)}, knowledge{reached: []kube.Version{3, 7}}, "u@7 in [0 1] own", ""},
		{"(a) also if the watch has delivered the older one, which was not taken", entryState{scopes: in(1), uid: "u", version: 7}, input{kind: stored, uid: "u", version: 5, in: in(0), held: in(0)}, knowledge{reached: []kube.Version{5, 7}}, "u@7 in [0 1] own", ""},
		{"(a) or if the scope has it, which could still let it go", entryState{scopes: one, uid: "u", version: 7}, input{kind: stored, uid: "u", version: 5, in: in(0), held: in(0)}, knowledge{reached: []kube.Version{3, 7}}, "u@7 in [0 1] own", ""},
		{"(a) but not in one that has seen the newer one", entryState{scopes: in(1), uid: "u", version: 7}, input{kind: stored, uid: "u", version: 5, in: in(0), held: in(0)}, knowledge{reached: []kube.Version{7, 7}}, "u@7 in [1]", ""},
		{"(a) nor in one that does not have the newer one", entryState{scopes: in(1), uid: "u", version: 7}, input{kind: stored, uid: "u", version: 5, in: in(0), unheld: in(0)}, knowledge{reached: []kube.Version{3, 7}}, "u@7 in [1]", ""},
		{"(a) nor in one of which that is not known", entryState{scopes: in(1), uid: "u", version: 7}, input{kind: stored, uid: "u", version: 5, in: in(0)}, knowledge{reached: []kube.Version{3, 7}}, "u@7 in [1]", "hidden"},
		{"(a) nor of an earlier object", entryState{scopes: in(1), uid: "u", version: 7}, input{kind: stored, uid: "t", version: 5, in: in(0), held: in(0)}, knowledge{reached: []kube.Version{3, 7}}, "u@7 in [1]", ""},
		{"(a) nor in one that is gone from all, maybe because it left theirs", entryState{}, input{kind: stored, uid: "u", version: 5, in: in(0)}, knowledge{reached: []kube.Version{3, 7}, floor: 7}, "none", "hidden"},
		{"(a) or also from its own", entryState{}, input{kind: stored, uid: "u", version: 5, in: in(0)}, knowledge{reached: []kube.Version{7, 3}, floor: 7}, "none", ""},
		{"(b) an own deletion hides the UID until the watch confirms", at5, input{kind: removed, uid: "u"}, knowledge{reached: []kube.Version{5}}, "none", "floor 5 tombstone u after 5"},
		{"(b) hidden", entryState{}, input{uid: "u", version: 6}, knowledge{tomb: tombstone{after: 5}}, "none", "tombstone u after 5"},
		{"(b) hidden from the answer to an earlier own write", entryState{}, input{kind: stored, uid: "u", version: 6, in: in(0)}, knowledge{tomb: tombstone{after: 5}}, "none", ""},
		{"(b) confirmed", entryState{}, input{kind: ended, uid: "u", version: 7}, knowledge{tomb: tombstone{after: 5}}, "none", "dig up u"},
		{"(b) shown by a first list", entryState{}, input{uid: "u", version: 6, list: 9}, knowledge{tomb: tombstone{after: 5}}, "none", "tombstone u after 5 listed 1"},
		{"(b) shown by a second list, it lives", entryState{}, input{uid: "u", version: 6, list: 10}, knowledge{tomb: tombstone{after: 5, lists: 1}}, "u@6 in [0]", "dig up u"},
		{"(b) and by a second answer of the same version, it does not", entryState{}, input{uid: "u", version: 6, list: 9}, knowledge{tomb: tombstone{after: 5, lists: 1, list: 9}}, "none", "tombstone u after 5 listed 1"},
		{"(b) an own deletion with a version", at5, input{kind: removed, uid: "u", version: 7}, knowledge{reached: []kube.Version{5}}, "none", "floor 7 tombstone u after 7"},
		{"(b) with the version of the last state", at5, input{kind: removed, uid: "u", version: 5}, knowledge{reached: []kube.Version{4}}, "none", "floor 5 tombstone u after 5"},
		{"(b) whose frame is late", entryState{}, input{uid: "u", version: 5}, knowledge{floor: 5, tomb: tombstone{after: 5, last: true}}, "none", "tombstone u after 5"},
		{"(b) or which a list has", entryState{}, input{uid: "u", version: 5, list: 6}, knowledge{floor: 5, tomb: tombstone{after: 5, last: true}}, "none", "tombstone u after 5 listed 1"},
		{"(b) or several lists", entryState{}, input{uid: "u", version: 5, list: 8}, knowledge{floor: 5, tomb: tombstone{after: 5, last: true, lists: 3}}, "none", "tombstone u after 5 listed 4"},
		{"(b) but not forever: a backup was restored", entryState{}, input{uid: "u", version: 5, list: 9}, knowledge{floor: 5, tomb: tombstone{after: 5, last: true, lists: 4}}, "u@5 in [0]", "dig up u"},
		{"(b) whose end was seen before the answer", entryState{}, input{kind: removed, uid: "u", version: 5}, knowledge{reached: []kube.Version{7}}, "none", ""},
		{"(b) hidden in a later state, from before the deletion", entryState{}, input{uid: "u", version: 6}, knowledge{tomb: tombstone{after: 5, last: true}}, "none", "tombstone u after 5"},
		{"(b) that is older than what is stored", own7, input{kind: removed, uid: "u", version: 6}, knowledge{reached: []kube.Version{5}}, "none", "floor 7 tombstone u after 7"},
		{"(b) of a UID that another followed", own7, input{kind: removed, uid: "t", version: 6}, knowledge{reached: []kube.Version{5}}, "u@7 in [0] own", "floor 6 tombstone t after 6"},
		{"(b) of another UID", at5, input{kind: removed, uid: "t"}, knowledge{reached: []kube.Version{5}}, "u@5 in [0]", "floor 5 tombstone t after 5"},

		{"a read that does not find the key ends the object", at5, input{kind: absent, version: 6}, knowledge{reached: []kube.Version{5}}, "none", "floor 6"},
		{"also one that an own write brought", own7, input{kind: absent, version: 7}, knowledge{reached: []kube.Version{5}}, "none", "floor 7"},
		{"not one that is newer than the read", own7, input{kind: absent, version: 6}, knowledge{reached: []kube.Version{5}}, "u@7 in [0] own", ""},
		{"and hides states before the read", entryState{}, input{uid: "u", version: 6}, knowledge{floor: 7}, "none", ""},
		{"of a key that the watch has not brought yet, too", entryState{}, input{kind: absent, version: 7}, knowledge{reached: []kube.Version{5}}, "none", "floor 7"},
		{"a read without a version ends nothing", at5, input{kind: absent}, knowledge{}, "u@5 in [0]", "refused"},
		{"nor one of an object without", entryState{scopes: zero, uid: "u"}, input{kind: absent, version: 7}, knowledge{}, "u@0 in [0]", "refused"},

		{"(c) a deletion at or above the version removes", at5, input{kind: ended, uid: "u", version: 5}, knowledge{reached: []kube.Version{5}}, "none", ""},
		{"(c) a deletion below an own write does not", own7, input{kind: ended, uid: "u", version: 6}, knowledge{reached: []kube.Version{5}}, "u@7 in [0] own", ""},
		{"(c) nor if another scope has a newer state by now", entryState{scopes: one, uid: "u", version: 8}, input{kind: ended, uid: "u", version: 6}, knowledge{reached: []kube.Version{5, 8}, ahead: ahead{7, zero}}, "u@8 in [0 1]", ""},
		{"(c) but one above it does", entryState{scopes: one, uid: "u", version: 9}, input{kind: ended, uid: "u", version: 8}, knowledge{reached: []kube.Version{5, 9}, ahead: ahead{7, zero}}, "u@9 in [1]", ""},
		{"(c) nor one of another UID", at5, input{kind: ended, uid: "t", version: 9}, knowledge{reached: []kube.Version{5}}, "u@5 in [0]", ""},
		{"(c) a list removes what is at or below its version", at5, input{kind: ended, uid: "u", version: 5, missing: true}, knowledge{reached: []kube.Version{5}}, "none", ""},
		{"(c) and not what is above", own7, input{kind: ended, uid: "u", version: 6, missing: true}, knowledge{reached: []kube.Version{5}}, "u@7 in [0] own", ""},
		{"(c) another UID ends the one before", at5, input{uid: "v", version: 6}, knowledge{}, "v@6 in [0]", ""},
		{"(c) an own creation too", at5, input{kind: stored, uid: "v", version: 6, in: in(0)}, knowledge{reached: []kube.Version{5}}, "v@6 in [0] own", ""},
		{"(c) also when that is hidden", at5, input{uid: "v", version: 8}, knowledge{tomb: tombstone{after: 7}}, "none", "floor 8 tombstone v after 7"},
		{"an entry goes when the last scope lets go", entryState{scopes: one, uid: "u", version: 5}, input{kind: ended, uid: "u", version: 6}, knowledge{}, "u@5 in [1]", ""},
		{"a scope that is behind lets go of what another has brought forward", entryState{scopes: one, uid: "u", version: 7}, input{kind: ended, uid: "u", version: 6}, knowledge{reached: []kube.Version{5, 7}}, "u@7 in [1]", ""},
		{"a scope that never held it ends nothing", at5, input{kind: ended, scope: 1, uid: "u", version: 6}, knowledge{}, "u@5 in [0]", ""},
		{"the end is remembered for a scope that is behind", at5, input{kind: ended, uid: "u", version: 6}, knowledge{reached: []kube.Version{5, 4}}, "none", "floor 6"},
		{"missing at a version is not ended by it", at5, input{kind: ended, uid: "u", version: 9, missing: true}, knowledge{reached: []kube.Version{5, 4}}, "none", "floor 5"},

		{"(d) an own write that leaves the scopes removes", at5, input{kind: stored, uid: "u", version: 7}, knowledge{reached: []kube.Version{5}}, "none", "floor 7 left"},
		{"(d) one that leaves one of them stays in the other", entryState{scopes: one, uid: "u", version: 5}, input{kind: stored, uid: "u", version: 7, in: in(1)}, knowledge{reached: []kube.Version{5, 5}}, "u@7 in [1] own", ""},
		{"(d) one that cannot be judged is awaited", at5, input{kind: stored, uid: "u", version: 7, unsure: in(0)}, knowledge{reached: []kube.Version{5}}, "u@5 in [0]", "await 7"},
		{"(d) one that can be judged for some", entryState{scopes: one, uid: "u", version: 5}, input{kind: stored, uid: "u", version: 7, in: in(0), unsure: in(1)}, knowledge{reached: []kube.Version{5, 5}}, "u@7 in [0 1] own", "await 7"},
		{"(d) what was not judged is let go by its own scope", entryState{scopes: one, own: zero, uid: "u", version: 7}, input{kind: ended, scope: 1, uid: "u", version: 6}, knowledge{reached: []kube.Version{5, 5}}, "u@7 in [0] own", ""},

		{"(e) without a version the order of arrival decides", at5, input{uid: "u"}, knowledge{}, "u@0 in [0]", ""},
		{"(e) also after one without", entryState{scopes: zero, uid: "u"}, input{uid: "u", version: 3}, knowledge{}, "u@3 in [0]", ""},
		{"(e) and for deletions", at5, input{kind: ended, uid: "u"}, knowledge{reached: []kube.Version{9}}, "none", "floor 5"},
		{"(e) an own write without a version is not taken", at5, input{kind: stored, uid: "u", in: in(0)}, knowledge{}, "u@5 in [0]", "refused"},
		{"(e) nor over an entry without", entryState{scopes: zero, uid: "u"}, input{kind: stored, uid: "u", version: 7, in: in(0)}, knowledge{}, "u@0 in [0]", "refused"},
		{"(e) nor a deletion", entryState{scopes: zero, uid: "u"}, input{kind: removed, uid: "u"}, knowledge{}, "u@0 in [0]", "refused"},
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
func (f decision) also() (s string) {
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
	case f.tombstone == tombstone{}:
		add("dig up %s", f.buried)
	default:
		add("tombstone %s after %d", f.buried, f.tombstone.after)
		if f.tombstone.lists > 0 {
			add("listed %d", f.tombstone.lists)
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
		key, uid, v := kube.Key{Name: "a"}, types.UID(fmt.Sprint("u", i)), kube.Version(10*i+10)
		push := func(kind DeltaType, v kube.Version) {
			fifo.Push(Delta{Type: kind, Scope: 0, Key: key, UID: uid, Version: v, Object: fixture.NewThing(key, uid, v, "a")})
			apply()
		}
		push(Added, v)
		push(Deleted, v+1)
		for _, w := range []Observed{
			{Effect: kube.Removed, Key: key, UID: uid, Version: v},
			{Effect: kube.Removed, Key: kube.Key{Name: "elsewhere"}, UID: uid + "-elsewhere", Version: v + 2},
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
