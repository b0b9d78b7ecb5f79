// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/kube"
)

func TestIndexer_WhenPassed_R6(t *testing.T) {
	x := NewIndexer(fixture.ThingKind)
	applied(t, x, labelled("a", "u", 5, ""))
	var called []string
	wait := func(name, key string, than kube.Version) func() {
		return x.WhenPassed(fixture.Named(key), than, func() { called = append(called, name) })
	}
	wait("has passed", "a", 4)
	wait("is gone", "b", 4)
	wait("passes", "a", 5)
	wait("passes later", "a", 7)
	wait("stopped", "a", 5)()
	settle := func(what string, want ...string) {
		t.Helper()
		for _, do := range x.Passed() {
			do()
		}
		if !slices.Equal(called, want) {
			t.Errorf("%s: called %q, want %q", what, called, want)
		}
		called = nil
	}
	settle("at once", "has passed", "is gone")
	applied(t, x, labelled("a", "u", 5, ""))
	settle("the same version")
	applied(t, x, labelled("a", "u", 6, ""))
	settle("a newer version", "passes")
	applied(t, x, delta(Deleted, "a", "u", 7))
	settle("the end", "passes later")
	if len(x.mu.waiters) != 0 {
		t.Errorf("%d keys still have someone waiting", len(x.mu.waiters))
	}
}

func TestIndexer_GivesMemoryBack(t *testing.T) {
	x := NewIndexer(fixture.ThingKind)
	if err := x.AddIndex("label", byItsLabel); err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		applied(t, x, labelled(fmt.Sprint(i), "u", kube.Version(i+1), fmt.Sprint(i)))
	}
	for i := range 5000 {
		applied(t, x, delta(Deleted, fmt.Sprint(i), "u", kube.Version(i+6000)))
	}
	if x.Len() != 0 || x.mu.most > 2000 || len(x.mu.indices[0].buckets)+len(x.mu.indices[1].buckets) != 0 || x.mu.floors.len() != 0 {
		t.Errorf("empty, it has %d objects, a map of %d, %d buckets, %d memories", x.Len(), x.mu.most, len(x.mu.indices[1].buckets), x.mu.floors.len())
	}
}

func labelled(name string, uid types.UID, v kube.Version, label string) Delta {
	d := delta(Updated, name, uid, v)
	d.Object = fixture.NewThing(d.Key, uid, v, label)
	return d
}

func applied(t *testing.T, x *Indexer, deltas ...Delta) {
	t.Helper()
	if _, err := x.Apply(Batch{Deltas: deltas}); err != nil {
		t.Fatal(err)
	}
}

func byItsLabel(o kube.Object) []string { return []string{o.GetLabels()["label"]} }
