// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// What each hop costs an update, alone and warm; hack/bench has the whole path
// beside the peers'.

const (
	benchKeys  = 20_000
	benchBatch = 256
)

// benchStore is an Indexer of benchKeys objects with an index beside the
// namespaces, and the deltas of the next update of each.
func benchStore(b *testing.B) (f *DeltaFIFO[thing], x *Indexer[thing], next func(i int, v Version) Delta[thing]) {
	x = NewIndexer[thing](thingKind)
	if err := x.AddIndex("value", func(obj thing) []string { return []string{"v"} }); err != nil {
		b.Fatal(err)
	}
	f = NewDeltaFIFO[thing](x)
	keys := make([]Key, benchKeys)
	objects := make([]thing, benchKeys)
	list := f.Replace(0)
	for i := range keys {
		keys[i] = named(fmt.Sprint("object-", i))
		objects[i] = newThing(keys[i], types.UID(fmt.Sprint("uid-", i)), 1, "v")
	}
	next = func(i int, v Version) Delta[thing] {
		i = i * 7919 % benchKeys
		return Delta[thing]{Type: Updated, Key: keys[i], UID: objects[i].GetUID(), Version: v, Object: objects[i]}
	}
	for i := range keys {
		list.Add(next(i, 1))
	}
	list.Commit(benchKeys)
	batch, err := f.PopBatch(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	if _, err := x.apply(batch); err != nil {
		b.Fatal(err)
	}
	return f, x, next
}

// BenchmarkPath_DeltaFIFO pushes and pops updates, as many at a time as wait for
// a dispatch that keeps pace.
func BenchmarkPath_DeltaFIFO(b *testing.B) {
	f, _, next := benchStore(b)
	ctx := context.Background()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		f.Push(next(n, Version(benchKeys+n)))
		if n++; n%benchBatch == 0 {
			if _, err := f.popBatch(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkPath_Indexer stores updates.
func BenchmarkPath_Indexer(b *testing.B) {
	_, x, next := benchStore(b)
	batch := Batch[thing]{Deltas: make([]Delta[thing], 0, benchBatch)}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		batch.Deltas = append(batch.Deltas, next(n, Version(2*benchKeys+n)))
		if n++; n%benchBatch == 0 {
			changes, err := x.apply(batch)
			if err != nil || len(changes) != benchBatch {
				b.Fatal(len(changes), err)
			}
			clear(changes)
			batch.Deltas = batch.Deltas[:0]
		}
	}
}

// BenchmarkPath_Waiting gives a handler changes and takes its events.
func BenchmarkPath_Waiting(b *testing.B) {
	_, x, next := benchStore(b)
	var changes []change[thing]
	for from := 0; from < benchKeys; from += benchBatch {
		var batch Batch[thing]
		for i := range benchBatch {
			batch.Deltas = append(batch.Deltas, next(from+i, Version(2*benchKeys+from+i)))
		}
		told, err := x.apply(batch)
		if err != nil {
			b.Fatal(err)
		}
		changes = append(changes, told...)
	}
	for _, kind := range []struct {
		name    string
		waiting waiting[thing]
	}{{"level", newBacklog[thing]()}, {"every", &eventStream[thing]{}}} {
		b.Run(kind.name, func(b *testing.B) {
			var buf [2]Event[thing]
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				c := &changes[n%len(changes)]
				c.newUID = "other" // an update to the same object is no news
				kind.waiting.push(*c, nil, false)
				if n++; n%benchBatch == 0 {
					for kind.waiting.len() > 0 {
						kind.waiting.take(buf[:0])
					}
				}
			}
		})
	}
}

// BenchmarkPath_Read reads one object, and all.
func BenchmarkPath_Read(b *testing.B) {
	_, x, next := benchStore(b)
	var all atomic.Pointer[sight]
	all.Store(&sight{})
	lister := newLister[thing](x, nil, nil, &all)
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
