// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/informer/internal/headroom"
	"github.com/flyball-dev/flyball/internal/sleep"
)

// Memory is what the objects of a factory take, in bytes.
type Memory struct {
	// Kinds has each informer, in the order of the requests.
	Kinds []KindMemory
	// Shared is what the objects have in common. It counts once, for no kind:
	// parts may be shared between kinds.
	Shared int64
	// Budget is Options.MemoryBudget, or its default; 0: no bound.
	Budget int64
}

// KindMemory is what the objects of one informer take.
type KindMemory struct {
	Kind    string
	Objects int
	Heap    int64 // as in Snapshot
}

// Memory returns what the objects take now. It walks the table of shared parts:
// call it to show it, not for each event.
func (f *SharedInformerFactory) Memory() Memory {
	m := Memory{Shared: f.resolver.Server.Parts().Stats().Live, Budget: f.resolver.Server.Memory.Limit()}
	for _, c := range f.cores() {
		s := c.indexer.Snapshot()
		m.Kinds = append(m.Kinds, KindMemory{Kind: c.gvk().Kind, Objects: s.Objects, Heap: s.Heap})
	}
	return m
}

// String returns one line, such as "3 Website 4100 B, 6 Deployment 18 kB, shared
// 11 kB".
func (m Memory) String() string {
	var parts []string
	for _, k := range m.Kinds {
		parts = append(parts, fmt.Sprintf("%d %s %s", k.Objects, k.Kind, headroom.Text(k.Heap)))
	}
	parts = append(parts, "shared "+headroom.Text(m.Shared))
	if m.Budget > 0 {
		parts = append(parts, "budget "+headroom.Text(m.Budget))
	}
	return strings.Join(parts, ", ")
}

// relief packs the objects of a factory, kind by kind, while they do not fit into its memory
// budget. Safe for concurrent use.
type relief struct {
	factory *SharedInformerFactory
	log     logr.Logger
	times   atomic.Uint64 // that memory was freed
	mu      sync.Mutex    // held while one kind is packed
}

// relieveEvery is how often the budget is looked at beside the lists: changes that come by a watch
// are always stored, and the limit of the process may change.
const relieveEvery = 10 * time.Second

// run packs what changes of the stores and of the limit make necessary, until ctx ends.
func (r *relief) run(ctx context.Context) error {
	memory, unpace := r.factory.resolver.Server.Memory, func() {}
	defer func() { unpace() }()
	for ok := true; ok; ok = sleep.For(ctx, relieveEvery) {
		if !r.factory.packsWhenFull() {
			continue
		}
		if r.factory.opts.MemoryBudget == 0 {
			before := unpace
			unpace = headroom.Pace(os.DirFS("/"))
			before()
			memory.SetLimit(r.factory.opts.memoryBudget())
		}
		for memory.Exceeded() && ctx.Err() == nil && r.pack(nil, 0) {
		}
	}
	return nil
}

// packsWhenFull reports whether an informer of the factory packs when the budget is full.
func (f *SharedInformerFactory) packsWhenFull() bool {
	return f.opts.Compact.WhenFull || slices.ContainsFunc(f.cores(), func(c *core) bool { return c.settings.compact().WhenFull })
}

// pack packs the kind whose objects take most memory per read, because a list of asking needs so
// many bytes; nil: the stores alone are too large. It reports whether that, or another call
// meanwhile, has freed memory.
func (r *relief) pack(asking *core, needs int64) bool {
	before := r.times.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times.Load() != before {
		return true
	}
	c := r.factory.costliest(asking, needs)
	if c == nil {
		return false
	}
	why := fmt.Sprintf("the objects of all kinds do not fit into the memory budget of %s, and those of this kind took %s, with few reads",
		headroom.Text(r.factory.resolver.Server.Memory.Limit()), headroom.Text(c.heap(asking, needs)))
	packer, err := c.packing.begin(why)
	if packer == nil || err != nil {
		return err == nil // it was packed meanwhile
	}
	objects, freed := c.indexer.Len(), c.indexer.Pack(packer)
	c.log.Info("Packs the objects of this kind from now on; a read of one that was not read recently decodes it", "why", why, "objects", objects, "freed", headroom.Text(freed))
	debug.FreeOSMemory()
	r.factory.resolver.Server.Parts().Stats() // what the packed objects alone shared counts no more
	r.times.Add(1)
	return true
}

// leastPacked is the memory below which packing a kind does not pay: its dictionary and hot
// objects take as much.
const leastPacked = 2 << 20

// costliest returns the informer to pack next, nil if there is none.
func (f *SharedInformerFactory) costliest(asking *core, needs int64) (found *core) {
	most := 0.0
	for _, c := range f.cores() {
		heap := c.heap(asking, needs)
		if heap < leastPacked || !c.packing.isReady() {
			continue
		}
		reads := c.packing.reads.Swap(0)
		// Objects that are read once each, as by reconcilers after a start, count half.
		if cost := float64(heap) / (1 + float64(reads)/float64(1+c.indexer.Len())); cost > most {
			found, most = c, cost
		}
	}
	return found
}

// heap returns the memory of the objects that are stored or will be next, or that a list of asking
// needs.
func (c *core) heap(asking *core, needs int64) int64 {
	heap := c.indexer.Heap.Load() + c.fifo.Heap()
	if c == asking {
		heap = max(heap, needs)
	}
	return heap
}
