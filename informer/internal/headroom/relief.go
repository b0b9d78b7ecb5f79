// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package headroom

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/internal/sleep"
)

// Relief packs the objects of a factory, kind by kind, while they do not fit into its Budget. Safe
// for concurrent use.
type Relief struct {
	Budget *Budget // not nil
	// Kinds returns the kinds that are not packed and may be.
	Kinds func() []Packable
	// Limit returns the limit of the budget now; not above 0: it stays. Nil: it always stays.
	Limit func() int64
	// Sweep is called when memory was freed: what the packed objects alone shared counts no more.
	Sweep func()

	packed atomic.Uint64 // kinds
	mu     sync.Mutex    // held while one is packed
}

// Packable is a kind whose objects may be packed.
type Packable struct {
	ID      any
	Heap    int64 // that its objects take
	Objects int64
	Reads   int64 // of its objects, about
	// Pack packs its objects, now and from now on. It reports whether it has.
	Pack func(why string) bool
}

// leastPacked is the memory below which packing a kind does not pay: its dictionary and hot
// objects take as much.
const leastPacked = 2 << 20

// relieveEvery is how often the budget is looked at beside the lists: changes that come by a watch
// are always stored, and the limit of the process may change. In the first minute, when lists
// arrive, it is each second.
const relieveEvery, relieveFirst = 10 * time.Second, 60

// Run packs what changes of the stores and of the limit make necessary, until ctx ends. If Limit
// is set, the collector of garbage keeps to the limit of the process's cgroup.
func (r *Relief) Run(ctx context.Context) error {
	var p pacer
	defer p.end()
	pause := time.Second
	for n, ok := 0, true; ok; ok = sleep.For(ctx, pause) {
		if n++; n > relieveFirst {
			pause = relieveEvery
		}
		if r.Limit != nil {
			p.update(os.DirFS("/"))
			r.Budget.SetLimit(r.Limit())
		}
		for r.Budget.Exceeded() && ctx.Err() == nil && r.Pack(nil, 0) {
		}
	}
	return nil
}

// Pack packs the kind whose objects take most memory per read, because a list of the kind with the
// ID asking needs so many bytes; nil: the stores alone are too large. It reports whether that, or
// another call meanwhile, may have freed memory.
func (r *Relief) Pack(asking any, needs int64) bool {
	before := r.packed.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.packed.Load() != before {
		return true
	}
	kind, ok := costliest(r.Kinds(), asking, needs)
	if !ok || !kind.Pack(fmt.Sprintf("the objects of all kinds do not fit into the memory budget of %s; those of this kind take %s and were read about %d times", Text(r.Budget.Limit()), Text(kind.Heap), kind.Reads)) {
		return false
	}
	debug.FreeOSMemory()
	r.Sweep()
	r.packed.Add(1)
	return true
}

// costliest returns the kind to pack next. ok: there is one. The list that asks would be refused
// otherwise, so its kind is packed even if it is small.
func costliest(kinds []Packable, asking any, needs int64) (found Packable, ok bool) {
	most := 0.0
	for _, k := range kinds {
		if k.ID == asking {
			k.Heap = max(k.Heap, needs)
			if !ok && needs > 0 {
				found, ok = k, true
			}
		}
		if k.Heap < leastPacked {
			continue
		}
		// Where each object was read once, as by reconcilers after a start, the kind counts half.
		if cost := float64(k.Heap) / (1 + float64(k.Reads)/float64(1+k.Objects)); cost > most {
			found, most, ok = k, cost, true
		}
	}
	return found, ok
}
