// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/delivery"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

// The cost of each step for an update, alone and warm; hack/tools/bench compares the
// whole path with other libraries.

const (
	benchKeys  = 20_000
	benchBatch = 256
)

// benchStore returns an Indexer of benchKeys objects with an index besides the
// namespaces, and the deltas of the next update of each.
func benchStore(b *testing.B) (f *store.DeltaFIFO, x *store.Indexer, next func(i int, v kube.Version) store.Delta) {
	x = store.NewIndexer(fixture.ThingKind)
	if err := x.AddIndex("value", func(obj kube.Object) []string { return []string{"v"} }); err != nil {
		b.Fatal(err)
	}
	f = store.NewDeltaFIFO(x)
	keys := make([]kube.Key, benchKeys)
	objects := make([]kube.Object, benchKeys)
	list := f.Replace(0)
	for i := range keys {
		keys[i] = fixture.Named(fmt.Sprint("object-", i))
		objects[i] = fixture.NewThing(keys[i], types.UID(fmt.Sprint("uid-", i)), 1, "v")
	}
	next = func(i int, v kube.Version) store.Delta {
		i = i * 7919 % benchKeys
		return store.Delta{Type: store.Updated, Key: keys[i], UID: objects[i].GetUID(), Version: v, Object: objects[i]}
	}
	for i := range keys {
		list.Add(next(i, 1))
	}
	list.Commit(benchKeys)
	batch, err := f.PopBatch(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	if _, err := x.Apply(batch); err != nil {
		b.Fatal(err)
	}
	return f, x, next
}

// BenchmarkPath_DeltaFIFO pushes and pops updates, in batches of the size that
// waits for a dispatch that keeps up.
func BenchmarkPath_DeltaFIFO(b *testing.B) {
	f, _, next := benchStore(b)
	ctx := context.Background()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		f.Push(next(n, kube.Version(benchKeys+n)))
		if n++; n%benchBatch == 0 {
			if _, err := f.PopBatchWoken(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkPath_Indexer stores updates.
func BenchmarkPath_Indexer(b *testing.B) {
	_, x, next := benchStore(b)
	batch := store.Batch{Deltas: make([]store.Delta, 0, benchBatch)}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		batch.Deltas = append(batch.Deltas, next(n, kube.Version(2*benchKeys+n)))
		if n++; n%benchBatch == 0 {
			changes, err := x.Apply(batch)
			if err != nil || len(changes) != benchBatch {
				b.Fatal(len(changes), err)
			}
			clear(changes)
			batch.Deltas = batch.Deltas[:0]
		}
	}
}

// BenchmarkPath_Waiting passes changes to a handler's backlog and takes its
// events.
func BenchmarkPath_Waiting(b *testing.B) {
	_, x, next := benchStore(b)
	var changes []store.Change
	for from := 0; from < benchKeys; from += benchBatch {
		var batch store.Batch
		for i := range benchBatch {
			batch.Deltas = append(batch.Deltas, next(from+i, kube.Version(2*benchKeys+from+i)))
		}
		told, err := x.Apply(batch)
		if err != nil {
			b.Fatal(err)
		}
		changes = append(changes, told...)
	}
	for _, kind := range []struct {
		name    string
		waiting delivery.Backlog
	}{{"level", delivery.NewBacklog(delivery.Options{})}, {"every", delivery.NewBacklog(delivery.Options{EveryEvent: true})}} {
		b.Run(kind.name, func(b *testing.B) {
			var buf [2]kube.Event[kube.Object]
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				c := &changes[n%len(changes)]
				c.NewUID = "other" // an update to the same object is ignored
				kind.waiting.Push(*c, nil, false)
				if n++; n%benchBatch == 0 {
					for kind.waiting.Len() > 0 {
						kind.waiting.Take(buf[:0])
					}
				}
			}
		})
	}
}

// BenchmarkPath_Read reads one object, and all.
func BenchmarkPath_Read(b *testing.B) {
	_, x, next := benchStore(b)
	var all atomic.Pointer[listerView]
	all.Store(&listerView{})
	lister := newLister[kube.Object](x, nil, nil, &all, nil, nil)
	lister.v.usage = new(usage)
	b.Run("Get", func(b *testing.B) {
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			if _, err := lister.Get(next(n, 0).Key); err != nil {
				b.Fatal(err)
			}
			n++
		}
	})
	b.Run("List", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if objects, err := lister.List(QueryOptions{}); err != nil || len(objects) != benchKeys {
				b.Fatal(len(objects), err)
			}
		}
	})
}
