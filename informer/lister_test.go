// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

// listerOf returns a Lister of x with the listerView s.
func listerOf(x *store.Indexer, s *listerView) Lister[kube.Object] {
	var at atomic.Pointer[listerView]
	at.Store(s)
	return newLister[kube.Object](x, nil, nil, &at, nil, nil)
}

// A list that arrives while a Lister reads must not turn what it has not seen into NotFound.
func TestLister_SyncDuringAReadIsNoAnswer_I3(t *testing.T) {
	x, synced := store.NewIndexer(fixture.ThingKind), make(chan struct{})
	var at atomic.Pointer[listerView]
	at.Store(&listerView{synced: synced})
	arrives := sync.OnceFunc(func() {
		mustApply(t, x, seenDelta("a", "u", 5, ""))
		close(synced)
	})
	// Whether the kind has namespaces is asked after the store.
	lister := newLister[kube.Object](x, nil, func() (bool, bool) { arrives(); return true, true }, &at, nil, nil)
	if _, err := lister.Get(fixture.Named("a")); !isNotSynced(err) {
		t.Errorf("Get = %v, want a *NotSyncedError: the object came after the read", err)
	}
	if _, err := lister.Get(fixture.Named("a")); err != nil {
		t.Errorf("the next Get = %v, want the object", err)
	}
}

// A handle whose scopes change while a Lister lists has other objects, which may not be listed yet.
func TestLister_ScopesThatChangeDuringAListAreReadAgain_I3(t *testing.T) {
	x := store.NewIndexer(fixture.ThingKind)
	mustApply(t, x, seenDelta("a", "u", 5, ""))
	var at atomic.Pointer[listerView]
	at.Store(&listerView{})
	change := sync.OnceFunc(func() { at.Store(&listerView{scopes: store.ScopesOf(7), synced: make(chan struct{})}) })
	lister := newLister[kube.Object](x, nil, func() (bool, bool) { change(); return true, true }, &at, nil, nil)
	if got, err := lister.List(QueryOptions{Namespace: "ns"}); !isNotSynced(err) {
		t.Errorf("List = %v, %v; want a *NotSyncedError, as the new scope has no list", got, err)
	}
}

// What ByIndex yields is of the scopes in which the read was allowed, whatever happens meanwhile.
func TestLister_ByIndexIsOfItsCall_I3(t *testing.T) {
	x := store.NewIndexer(fixture.ThingKind)
	if err := x.AddIndex("label", byLabel); err != nil {
		t.Fatal(err)
	}
	mustApply(t, x, seenDelta("a", "u", 5, "x"))
	var at atomic.Pointer[listerView]
	at.Store(&listerView{})
	lister := newLister[kube.Object](x, nil, nil, &at, nil, nil)
	found, err := lister.ByIndex("label", "x")
	if err != nil {
		t.Fatal(err)
	}
	at.Store(&listerView{scopes: store.ScopesOf(7), synced: make(chan struct{})}) // with other scopes
	if got := len(slices.Collect(found)); got != 1 {
		t.Errorf("%d objects, want the 1 that was known at the call", got)
	}
	if _, err := lister.ByIndex("label", "x"); !isNotSynced(err) {
		t.Errorf("the next ByIndex = %v, want a *NotSyncedError", err)
	}
}

func TestLister_SaysWhyThereIsNoObject(t *testing.T) {
	x := store.NewIndexer(fixture.ThingKind)
	mustApply(t, x, seenDelta("a", "u", 5, ""))
	synced := make(chan struct{})
	lister := listerOf(x, &listerView{namespaces: map[string]bool{"ns": true}, synced: synced})
	if _, err := lister.Get(fixture.Named("a")); err != nil {
		t.Errorf("Get of what is known = %v, though the first list has not ended", err)
	}
	_, err := lister.Get(fixture.Named("b"))
	if _, ok := errors.AsType[*kube.NotSyncedError](err); !ok {
		t.Errorf("Get before the first list = %v, want a *NotSyncedError", err)
	}
	close(synced)
	if _, err = lister.Get(fixture.Named("b")); !apierrors.IsNotFound(err) {
		t.Errorf("Get of what does not exist = %v, want NotFound", err)
	}
	_, err = lister.Get(kube.Key{Namespace: "other", Name: "a"})
	if _, ok := errors.AsType[*kube.OutOfScopeError](err); !ok {
		t.Errorf("Get in a namespace that is not watched = %v, want an *OutOfScopeError", err)
	}
	if _, err := lister.ByIndex("none", "x"); err == nil || !strings.Contains(err.Error(), "AddIndex") {
		t.Errorf("ByIndex of no index = %v, want an error that names the fix", err)
	}
	var empty Lister[kube.Object]
	if _, err := empty.Get(fixture.Named("a")); err == nil {
		t.Error("a Lister from nowhere finds objects")
	}
	if got := len(slices.Collect(empty.All())); got != 0 {
		t.Errorf("a Lister from nowhere yields %d objects", got)
	}
}

func TestLister_List(t *testing.T) {
	x := store.NewIndexer(fixture.ThingKind)
	if err := x.AddIndex("label", byLabel); err != nil {
		t.Fatal(err)
	}
	var deltas []store.Delta
	for i := range 8 {
		d := seenDelta(fmt.Sprint(i), types.UID(fmt.Sprint(i)), kube.Version(i+1), string("ab"[i&1]))
		d.Key.Namespace = string("mn"[i>>1&1])
		d.Object.SetNamespace(d.Key.Namespace)
		d.Scope = base.ScopeID(i >> 2 & 1)
		deltas = append(deltas, d)
	}
	mustApply(t, x, deltas...)
	selector, err := labels.Parse("label=b")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		opts   QueryOptions
		scopes *store.ScopeSet
		want   string
	}{
		{"all", QueryOptions{}, nil, "0 1 2 3 4 5 6 7"},
		{"a namespace", QueryOptions{Namespace: "n"}, nil, "2 3 6 7"},
		{"a selector", QueryOptions{Selector: selector}, nil, "1 3 5 7"},
		{"an index", QueryOptions{Index: "label", IndexValue: "a"}, nil, "0 2 4 6"},
		{"index and namespace", QueryOptions{Namespace: "m", Index: "label", IndexValue: "a"}, nil, "0 4"},
		{"namespace and selector", QueryOptions{Namespace: "m", Selector: selector}, nil, "1 5"},
		{"index and selector", QueryOptions{Index: "label", IndexValue: "a", Selector: selector}, nil, ""},
		{"one scope", QueryOptions{}, store.ScopesOf(1), "4 5 6 7"},
		{"one scope, index and namespace", QueryOptions{Namespace: "n", Index: "label", IndexValue: "b"}, store.ScopesOf(1), "7"},
		{"no scope", QueryOptions{}, store.ScopesOf(), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			objects, err := listerOf(x, &listerView{scopes: test.scopes}).List(test.opts)
			var names []string
			for _, o := range objects {
				names = append(names, o.GetName())
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestLister_GetDoesNotAllocate(t *testing.T) {
	x := store.NewIndexer(fixture.ThingKind)
	mustApply(t, x, seenDelta("a", "u", 5, ""))
	lister, key := listerOf(x, &listerView{scopes: store.ScopesOf(0)}), fixture.Named("a")
	if got := testing.AllocsPerRun(100, func() { _, _ = lister.Get(key) }); got != 0 {
		t.Errorf("Get allocates %v times, want 0", got)
	}
}
