// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// A batch that was popped before its scope ended, and a Reflector that has not
// heard of the end yet, bring nothing back; and no other scope is given the
// number meanwhile.
func TestCore_LateDeltasOfAnEndedScopeNeverComeBack_I10(t *testing.T) {
	c := newCore(reflect.TypeFor[thing](), thingKind, Options{}, func(WatchScope) (ListerWatcher[thing], error) { return nil, nil })
	c.shared = true
	view := func(scope Scope) *SharedInformer[thing] {
		h, err := c.handle([]Scope{scope}, nil)
		return &SharedInformer[thing]{core: c, handle: h, err: err}
	}
	stays, i := view(Scope{LabelSelector: "stays"}), view(Scope{Namespaces: []string{"ns"}})
	id := i.handle.holds[0].id
	push := func(name string) {
		obj := newThing(named(name), "u-"+"x", 5, "")
		c.fifo.Push(Delta[thing]{Type: Added, Key: named(name), Scope: id, UID: obj.GetUID(), Version: 5, Object: obj})
	}
	push("popped")
	batch, err := c.fifo.PopBatch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	push("waits")
	i.Release()
	push("late")
	if err := stays.SetScopes(Scope{Namespaces: []string{"other"}}); err != nil {
		t.Fatal(err)
	}
	if got := stays.handle.holds[0].id; got == id {
		t.Errorf("the number %d was given to another scope while a batch under way speaks of it", id)
	}
	c.store(batch, false, func() ([]change[thing], error) { return c.indexer.apply(c.livingLocked(batch)) })
	if n, waiting := c.indexer.Len(), c.fifo.Len(); n != 0 || waiting != 0 {
		t.Errorf("%d objects are stored and %d deltas wait of a scope that has ended, want none", n, waiting)
	}
}

// What waits of an ended scope is dropped; what waits of the others comes by key
// and in order, whether the log was indexed before or is so after.
func TestDeltaLog_EndOfAScopeKeepsTheOthers_I10(t *testing.T) {
	for _, indexed := range []bool{false, true} {
		f := NewDeltaFIFO[thing](NewIndexer[thing](thingKind))
		push := func(scope ScopeID, name string, v Version) {
			obj := newThing(named(name), "u", v, "")
			f.Push(Delta[thing]{Type: Updated, Key: named(name), Scope: scope, UID: "u", Version: v, Object: obj})
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
		f.end(1)
		push(1, "a", 9)
		push(0, "b", 10)
		f.Bookmark(0, 11)
		if n := f.Len(); n != 4 {
			t.Errorf("%d deltas wait, want the 4 of the other scope", n)
		}
		var got []string
		for f.Len() > 0 {
			deltas, err := f.Pop(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range deltas {
				got = append(got, fmt.Sprintf("%s@%d", d.Key.Name, d.Version))
			}
		}
		if text := strings.Join(got, " "); text != "a@2 a@6 b@4 b@10" {
			t.Errorf("indexed %v: popped %q, want a@2 a@6 b@4 b@10", indexed, text)
		}
	}
}
