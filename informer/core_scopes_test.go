// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// A batch popped before its scope ended, and a Reflector that has not noticed
// the end yet, bring nothing back, and no other scope gets the number
// meanwhile.
func TestCore_LateDeltasOfAnEndedScopeNeverComeBack_I10(t *testing.T) {
	c := newCore(reflect.TypeFor[kube.Object](), fixture.ThingKind, Options{}, func(listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error) { return nil, nil })
	c.shared = true
	view := func(scope Scope) *SharedInformer[kube.Object] {
		h, err := c.handle([]Scope{scope}, nil)
		return &SharedInformer[kube.Object]{core: c, handle: h, err: err}
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
	c.store(batch, false, func() ([]store.Change, error) { return c.indexer.Apply(c.critical.scopes.living(batch)) })
	if n, waiting := c.indexer.Len(), c.fifo.Len(); n != 0 || waiting != 0 {
		t.Errorf("%d objects are stored and %d deltas wait of a scope that has ended, want none", n, waiting)
	}
}

// Thousands of scopes begin and end in parts, between which events and own writes are stored.
func TestCore_ManyScopesBeginAndEndInParts_I10(t *testing.T) {
	const many = 4*scopesAtOnce + 10
	var c *core
	opened := make(map[int]int) // number of new scopes, by the number of those there were before
	c = newCore(reflect.TypeFor[kube.Object](), fixture.ThingKind, Options{}, func(listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error) {
		opened[len(c.critical.scopes.byScope)]++
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
	if n := len(c.critical.scopes.byScope); n != many || len(h.holds) != many {
		t.Fatalf("%d scopes are watched, %d held, want %d", n, len(h.holds), many)
	}
	h.releaseUnder()
	for more := true; more; {
		before := len(c.critical.scopes.byScope)
		more = endSome(c)
		if n := before - len(c.critical.scopes.byScope); n > scopesAtOnce {
			t.Errorf("%d scopes end at once, want %d at most", n, scopesAtOnce)
		}
	}
	if len(c.critical.scopes.byScope) != 2 || len(c.critical.scopes.within) != 2 || len(c.critical.scopes.unheld) != 0 || len(stays.holds) != 2 {
		t.Errorf("%d scopes in %d namespaces are left and %d unheld, want those two of the other handle",
			len(c.critical.scopes.byScope), len(c.critical.scopes.within), len(c.critical.scopes.unheld))
	}
	if _, err := c.handle([]Scope{namespacesNamed(many)}, nil); err != nil || len(c.critical.scopes.byID) > many+2 {
		t.Errorf("%d numbers are in use after another opening (%v), want %d at most: those of ended scopes are used again", len(c.critical.scopes.byID), err, many+2)
	}
	clear(opened)
	c.replan(true)
	if len(c.critical.scopes.byScope) != 1 {
		t.Errorf("%d scopes are watched of a cluster-scoped kind, want 1", len(c.critical.scopes.byScope))
	}
	c.replan(false)
	for there, n := range opened {
		if n > scopesAtOnce {
			t.Errorf("beside %d scopes %d begin at once when the kind has become namespaced, want %d at most", there, n, scopesAtOnce)
		}
	}
	if len(c.critical.scopes.byScope) != many {
		t.Errorf("%d scopes are watched of a namespaced kind, want %d", len(c.critical.scopes.byScope), many)
	}
}

// A handle of many namespaces of a cluster-scoped kind, opened before discovery has answered,
// sends no namespaced request, also while its first scopes are watched already.
func TestCore_ScopesThatAKindDoesNotHaveAskForNothing_I10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked sync.Map // the scopes that have sent a request
		var known atomic.Bool
		var namespaced atomic.Bool
		c := newCore(reflect.TypeFor[kube.Object](), fixture.ThingKind, Options{}, func(s listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error) {
			return remembering{scope: s, asked: &asked}, nil
		})
		c.shared = true
		c.namespaced = func() (bool, bool) { return namespaced.Load(), known.Load() }
		c.discover = func(context.Context) (bool, error) {
			known.Store(true)
			return namespaced.Load(), nil
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.run(ctx) }()

		// As coverInParts does, but with time for the first part before the handle takes it up.
		scope := namespacesNamed(2 * scopesAtOnce)
		part := watchScopesOf([]Scope{scope}, false)[:scopesAtOnce]
		var held []*watched
		err := coverInParts(c, nil, func() error {
			var err error
			held, err = c.opener.find(part)
			c.opener.hold(held)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		asked.Range(func(s, _ any) bool {
			t.Errorf("%v sends a request of a cluster-scoped kind before its handle is open", s)
			return false
		})
		h, err := c.handle([]Scope{scope}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = coverInParts(c, nil, func() error {
			c.critical.scopes.release(held)
			return nil
		})
		c.callPassed()
		synctest.Wait()
		if got := scopesOf(&asked); len(h.holds) != 1 || len(c.critical.scopes.byScope) != 1 || !slices.Equal(got, []listwatch.Scope{{}}) {
			t.Errorf("%d scopes are watched and %v have sent a request, want the whole kind alone", len(c.critical.scopes.byScope), got)
		}

		// A definition may be made again as a namespaced one.
		asked.Clear()
		namespaced.Store(true)
		if err := c.place(ctx, listwatch.Scope{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := scopesOf(&asked); len(h.holds) != 2*scopesAtOnce || len(got) != len(h.holds) || slices.Contains(got, listwatch.Scope{}) {
			t.Errorf("%d scopes are held and %d have sent a request, want each namespace", len(h.holds), len(got))
		}
		stop()
		<-done
	})
}

// remembering is silent, and records that it was asked.
type remembering struct {
	silent
	scope listwatch.Scope
	asked *sync.Map
}

func (l remembering) List(ctx context.Context, opts listwatch.ListOptions) (listwatch.Page[kube.Object], error) {
	l.asked.Store(l.scope, true)
	return l.silent.List(ctx, opts)
}

func (l remembering) Watch(ctx context.Context, opts listwatch.WatchOptions) (listwatch.Stream[kube.Object], error) {
	l.asked.Store(l.scope, true)
	return l.silent.Watch(ctx, opts)
}

func scopesOf(asked *sync.Map) (scopes []listwatch.Scope) {
	asked.Range(func(s, _ any) bool {
		scopes = append(scopes, s.(listwatch.Scope))
		return true
	})
	return scopes
}

// What the last handle of a scope has let go stays if another takes it up before it ends.
func TestCore_ScopeThatIsTakenUpAgainStays_I10(t *testing.T) {
	c := newCore(reflect.TypeFor[kube.Object](), fixture.ThingKind, Options{}, func(listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error) { return silent{}, nil })
	c.shared = true
	first, err := c.handle([]Scope{{Namespaces: []string{"ns"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.handle([]Scope{{Namespaces: []string{"other"}}}, nil); err != nil {
		t.Fatal(err)
	}
	w := first.holds[0]
	first.releaseUnder()
	second, err := c.handle([]Scope{{Namespaces: []string{"ns"}}}, nil) // ends what nothing holds
	if err != nil || second.holds[0] != w || w.reflector == nil || len(c.critical.scopes.ended) != 0 {
		t.Errorf("the scope was ended although a handle had taken it up again (%v)", err)
	}
	second.release()
	if w.reflector != nil || len(c.critical.scopes.byScope) != 1 {
		t.Error("the scope goes on although the last handle has released it")
	}
}

// A handler that wanted every event wants none after its handle's release, so that deltas merge
// again.
func TestCore_HandlersOfAReleasedHandleDoNotCount(t *testing.T) {
	c := newCore(reflect.TypeFor[kube.Object](), fixture.ThingKind, Options{}, func(listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error) { return silent{}, nil })
	h, err := c.handle([]Scope{{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.handle([]Scope{{}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.join(func(kube.Event[kube.Object]) {}, HandlerOptions{EveryEvent: true}); err != nil {
		t.Fatal(err)
	}
	if n := c.critical.handlers.every; n != 1 {
		t.Errorf("%d handlers want every event, want 1", n)
	}
	h.release()
	if n := c.critical.handlers.every; n != 0 {
		t.Errorf("%d handlers want every event after the release of their handle, want none", n)
	}
}
