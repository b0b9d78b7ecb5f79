// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/kube"
)

func TestDecide_ContentCountsWhereItWasCompared_A9(t *testing.T) {
	zero := ScopesOf(0)
	at5 := entryState{scopes: zero, uid: "u", version: 5}
	own7 := entryState{scopes: zero, uid: "u", version: 7, own: zero}
	for _, test := range []struct {
		rule string
		h    entryState
		n    input
		want string
		take bool
	}{
		{"the same version with another content is taken where it was compared", at5, input{uid: "u", version: 5, list: 9, recompared: true}, "u@5 in [0]", true},
		{"and is held by both scopes", at5, input{scope: 1, uid: "u", version: 5, list: 9, recompared: true}, "u@5 in [0 1]", true},
		{"and may be what cannot be decoded any more", at5, input{uid: "u", version: 5, list: 9, recompared: true, bad: true}, "u@5 in [0] bad", true},
		{"an own write stays one", own7, input{uid: "u", version: 7, list: 9, recompared: true}, "u@7 in [0] own", true},
		{"and a newer own write is not undone", own7, input{uid: "u", version: 5, list: 6, recompared: true}, "u@7 in [0] own", false},
		{"a newer version needs no comparison", at5, input{uid: "u", version: 6, list: 9, recompared: true}, "u@6 in [0]", true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			f := decide(test.h, test.n, knowledge{})
			if got := f.next.String(); got != test.want || f.take != test.take {
				t.Errorf("%s becomes %s, its content taken: %v; want %s, %v", test.h, got, f.take, test.want, test.take)
			}
		})
	}
}

func TestReplacement_ComparesContentWhereAsked_A9(t *testing.T) {
	made := func(value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "5"}, Data: map[string]string{"v": value}}
	}
	delta := func(scope base.ScopeID, value string) Delta {
		return Delta{Key: kube.Key{Name: "a"}, Scope: scope, UID: "u", Version: 5, Object: made(value)}
	}
	list := func(x *Indexer, fifo *DeltaFIFO, byContent bool, scope base.ScopeID, value string) {
		r := fifo.Replace(scope)
		if byContent {
			r.Recompare()
		}
		r.Add(delta(scope, value))
		r.Commit(9)
	}
	apply := func(x *Indexer, fifo *DeltaFIFO) int {
		n := 0
		for fifo.mu.log.places.Len() > 0 {
			b, err := fifo.PopBatch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			changes, _ := x.Apply(b)
			n += len(changes)
		}
		return n
	}
	for _, test := range []struct {
		name      string
		byContent bool
		value     string
		scopes    []base.ScopeID
		told      int
		want      string
	}{
		{"not asked", false, "new", []base.ScopeID{0}, 0, "old"},
		{"equal", true, "old", []base.ScopeID{0}, 0, "old"},
		{"another content", true, "new", []base.ScopeID{0}, 1, "new"},
		{"another content in two scopes at once", true, "new", []base.ScopeID{0, 1}, 1, "new"},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := NewIndexer(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			fifo := NewDeltaFIFO(x)
			for _, scope := range test.scopes {
				list(x, fifo, false, scope, "old")
			}
			apply(x, fifo)
			for _, scope := range test.scopes {
				list(x, fifo, test.byContent, scope, test.value)
			}
			if n := apply(x, fifo); n != test.told {
				t.Errorf("%d changes, want %d: what is equal is no news, and what differs is news once", n, test.told)
			}
			if obj, _, _ := x.Get(kube.Key{Name: "a"}); obj.(*corev1.ConfigMap).Data["v"] != test.want {
				t.Errorf("the store has %v, want %q", obj, test.want)
			}
		})
	}
}

// guarded has an unexported field.
type guarded struct {
	corev1.ConfigMap
	hidden func()
}

func (g *guarded) GetHidden() func() { return g.hidden }

func TestAlike_ReadsEveryType_A9(t *testing.T) {
	a, b := &guarded{ConfigMap: corev1.ConfigMap{Data: map[string]string{"v": "1"}}}, &guarded{ConfigMap: corev1.ConfigMap{Data: map[string]string{"v": "1"}}}
	if !compact.Alike(a, b) {
		t.Error("two equal objects differ")
	}
	b.Data["v"] = "2"
	if compact.Alike(a, b) {
		t.Error("two different objects are alike")
	}
}
