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
