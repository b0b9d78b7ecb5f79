// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"reflect"
	"testing"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/store"
)

// A batch popped before its scope ended, and a Reflector that has not noticed
// the end yet, bring nothing back, and no other scope gets the number
// meanwhile.
func TestCore_LateDeltasOfAnEndedScopeNeverComeBack_I10(t *testing.T) {
	c := newCore(reflect.TypeFor[Object](), fixture.ThingKind, Options{}, func(WatchScope) (ListerWatcher[Object], error) { return nil, nil })
	c.shared = true
	view := func(scope Scope) *SharedInformer[Object] {
		h, err := c.handle([]Scope{scope}, nil)
		return &SharedInformer[Object]{core: c, handle: h, err: err}
	}
	stays, i := view(Scope{LabelSelector: "stays"}), view(Scope{Namespaces: []string{"ns"}})
	id := i.handle.holds[0].id
	push := func(name string) {
		obj := fixture.NewThing(fixture.Named(name), "u-"+"x", 5, "")
		c.fifo.Push(store.Delta{Type: store.Added, Key: fixture.Named(name), Scope: id, UID: obj.GetUID(), Version: 5, Object: obj})
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
	c.store(batch, false, func() ([]store.Change, error) { return c.indexer.Apply(c.livingLocked(batch)) })
	if n, waiting := c.indexer.Len(), c.fifo.Len(); n != 0 || waiting != 0 {
		t.Errorf("%d objects are stored and %d deltas wait of a scope that has ended, want none", n, waiting)
	}
}

// Thousands of scopes begin and end in parts, between which events and own writes are stored.
func TestCore_ManyScopesBeginAndEndInParts_I10(t *testing.T) {
	const many = 4*scopesAtOnce + 10
	var c *core
	opened := make(map[int]int) // number of new scopes, by the number of those there were before
	c = newCore(reflect.TypeFor[Object](), fixture.ThingKind, Options{}, func(WatchScope) (ListerWatcher[Object], error) {
		opened[len(c.critical.byID)]++
		return silent{}, nil
	})
	c.shared = true
	stays, err := c.handle([]Scope{namespacesNamed(2)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.handle([]Scope{namespacesNamed(many)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for there, n := range opened {
		if n > scopesAtOnce+1 { // one more to check the options
			t.Errorf("beside %d scopes %d begin at once, want %d at most", there, n, scopesAtOnce)
		}
	}
	if n := len(c.critical.scopes); n != many || len(h.holds) != many {
		t.Fatalf("%d scopes are watched, %d held, want %d", n, len(h.holds), many)
	}
	c.releaseUnder(h)
	for more := true; more; {
		before := len(c.critical.scopes)
		more = endSome(c)
		if n := before - len(c.critical.scopes); n > scopesAtOnce {
			t.Errorf("%d scopes end at once, want %d at most", n, scopesAtOnce)
		}
	}
	if len(c.critical.scopes) != 2 || len(c.critical.within) != 2 || len(c.critical.unheld) != 0 || len(stays.holds) != 2 {
		t.Errorf("%d scopes in %d namespaces are left and %d unheld, want those two of the other handle",
			len(c.critical.scopes), len(c.critical.within), len(c.critical.unheld))
	}
	if _, err := c.handle([]Scope{namespacesNamed(many)}, nil); err != nil || len(c.critical.byID) > many+2 {
		t.Errorf("%d numbers are in use after another opening (%v), want %d at most: those of ended scopes are used again", len(c.critical.byID), err, many+2)
	}
}

// What the last handle of a scope has let go stays if another takes it up before it ends.
func TestCore_ScopeThatIsTakenUpAgainStays_I10(t *testing.T) {
	c := newCore(reflect.TypeFor[Object](), fixture.ThingKind, Options{}, func(WatchScope) (ListerWatcher[Object], error) { return silent{}, nil })
	c.shared = true
	first, err := c.handle([]Scope{{Namespaces: []string{"ns"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.handle([]Scope{{Namespaces: []string{"other"}}}, nil); err != nil {
		t.Fatal(err)
	}
	w := first.holds[0]
	c.releaseUnder(first)
	second, err := c.handle([]Scope{{Namespaces: []string{"ns"}}}, nil) // ends what nothing holds
	if err != nil || second.holds[0] != w || w.reflector == nil || len(c.critical.ended) != 0 {
		t.Errorf("the scope was ended although a handle had taken it up again (%v)", err)
	}
	c.release(second)
	if w.reflector != nil || len(c.critical.scopes) != 1 {
		t.Error("the scope goes on although the last handle has released it")
	}
}
