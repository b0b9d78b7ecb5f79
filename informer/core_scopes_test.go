// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import "testing"

// A batch that was popped before its scope ended, and a Reflector that has not
// heard of the end yet, bring nothing back; and no other scope is given the
// number meanwhile.
func TestCore_LateDeltasOfAnEndedScopeNeverComeBack_I10(t *testing.T) {
	c := newCore(thingKind, Options{}, func(WatchScope) (ListerWatcher[thing], error) { return nil, nil })
	c.shared = true
	stays := c.handle([]Scope{{LabelSelector: "stays"}}, nil)
	i := c.handle([]Scope{{Namespaces: []string{"ns"}}}, nil)
	id := i.handle.holds[0].id
	push := func(name string) {
		obj := newThing(named(name), "u-"+"x", 5, "")
		c.fifo.Push(Delta[thing]{Type: Added, Key: named(name), Scope: id, UID: obj.UID, Version: 5, Object: obj})
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
	c.store(batch.Synced, func() ([]change[thing], error) { return c.indexer.apply(c.livingLocked(batch)) })
	if n, waiting := c.indexer.Len(), c.fifo.Len(); n != 0 || waiting != 0 {
		t.Errorf("%d objects are stored and %d deltas wait of a scope that has ended, want none", n, waiting)
	}
}
