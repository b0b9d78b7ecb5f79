// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// Delivery are the faults between the store and its open watches: of the watch cache, of
// which a real server has one for each resource, and of the stream of changes. It
// implements store.Cache.
type Delivery struct {
	mu struct {
		sync.Mutex
		deliveryFaults
	}
}

// deliveryFaults are the present faults. Maps are nil until they are needed.
type deliveryFaults struct {
	lag           int64                                     // 0: none
	behind        map[schema.GroupResource]int64            // of resources that lag alone
	late          []revisions.Change                        // of these, in the order of revisions
	drop          map[schema.GroupResource]int              // how many
	duplicate     map[schema.GroupResource]int              // how many
	reorder       map[schema.GroupResource]bool             // hold the next one
	held          map[schema.GroupResource]revisions.Change // delivered after the next one
	coalesce      map[schema.GroupResource]bool             // hold the next one
	first         map[schema.GroupResource]revisions.Change // merged with the next one of its object
	noEndBookmark map[schema.GroupResource]bool
}

// sound reports whether there is no fault that changes what is delivered.
func (f *deliveryFaults) sound() bool {
	return len(f.behind)+len(f.late)+len(f.drop)+len(f.duplicate)+len(f.reorder)+len(f.held)+len(f.coalesce)+len(f.first) == 0
}

// LagTo stops the caches of all resources at a revision. 0 ends that.
func (d *Delivery) LagTo(revision int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.lag = revision
}

// LagKindTo stops the cache of one resource at a revision.
func (d *Delivery) LagKindTo(r schema.GroupResource, revision int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	set(&d.mu.behind, r, revision)
}

// CatchUpKind ends LagKindTo.
func (d *Delivery) CatchUpKind(r schema.GroupResource) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.mu.behind, r)
}

// Drop drops the next changes of a resource.
func (d *Delivery) Drop(r schema.GroupResource, times int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	set(&d.mu.drop, r, times)
}

// DropOneMore drops one more change of a resource.
func (d *Delivery) DropOneMore(r schema.GroupResource) {
	d.mu.Lock()
	defer d.mu.Unlock()
	set(&d.mu.drop, r, d.mu.drop[r]+1)
}

// Duplicate delivers the next changes of a resource twice.
func (d *Delivery) Duplicate(r schema.GroupResource, times int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	set(&d.mu.duplicate, r, times)
}

// Reorder delivers the next change of a resource after the one that follows it.
func (d *Delivery) Reorder(r schema.GroupResource) {
	d.mu.Lock()
	defer d.mu.Unlock()
	set(&d.mu.reorder, r, true)
}

// Coalesce merges the next two changes of one object of a resource.
func (d *Delivery) Coalesce(r schema.GroupResource) {
	d.mu.Lock()
	defer d.mu.Unlock()
	set(&d.mu.coalesce, r, true)
}

// NoEndBookmark omits the bookmark that ends a streaming list, or ends that.
func (d *Delivery) NoEndBookmark(r schema.GroupResource, missing bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	set(&d.mu.noEndBookmark, r, missing)
}

// EndBookmark reports whether a streaming list ends with a bookmark.
func (d *Delivery) EndBookmark(r schema.GroupResource) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.mu.noEndBookmark[r]
}

// Shown returns how much of a revision the caches know, except those that lag alone.
func (d *Delivery) Shown(revision int64) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.lag > 0 {
		return min(d.mu.lag, revision)
	}
	return revision
}

// ShownOf returns how much the cache of a resource knows of what Shown returns.
func (d *Delivery) ShownOf(r schema.GroupResource, shown int64) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.known(r, shown)
}

func (f *deliveryFaults) known(r schema.GroupResource, revision int64) int64 {
	if behind, lags := f.behind[r]; lags {
		return min(behind, revision)
	}
	return revision
}

// Deliver returns what watches receive now that changes are shown: these, as faults leave
// them, after those that were late and are not any more.
func (d *Delivery) Deliver(changes []revisions.Change) (delivered []revisions.Change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.sound() {
		return changes
	}
	for _, c := range append(d.mu.due(), changes...) {
		if d.mu.known(c.Resource, c.Revision) < c.Revision {
			d.mu.late = append(d.mu.late, c)
			continue
		}
		delivered = append(delivered, d.mu.distort(c)...)
	}
	return delivered
}

// due removes and returns the late changes whose resources do not lag behind them any more.
func (f *deliveryFaults) due() (out []revisions.Change) {
	f.late = slices.DeleteFunc(f.late, func(c revisions.Change) bool {
		due := f.known(c.Resource, c.Revision) == c.Revision
		if due {
			out = append(out, c)
		}
		return due
	})
	return out
}

// distort returns what watches receive instead of c.
func (f *deliveryFaults) distort(c revisions.Change) []revisions.Change {
	r := c.Resource
	if f.drop[r] > 0 {
		f.drop[r]--
		return nil
	}
	if first, ok := f.first[r]; ok && first.Key == c.Key {
		delete(f.first, r)
		return merge(first, c)
	}
	if f.coalesce[r] {
		f.coalesce[r] = false
		set(&f.first, r, c)
		return nil
	}
	if f.duplicate[r] > 0 {
		f.duplicate[r]--
		return []revisions.Change{c, c}
	}
	if late, ok := f.held[r]; ok {
		delete(f.held, r)
		return []revisions.Change{c, late}
	}
	if f.reorder[r] {
		f.reorder[r] = false
		set(&f.held, r, c)
		return nil
	}
	return []revisions.Change{c}
}

// merge returns one change for c and the one that follows it, of the same object. There is
// none if there is no object before and after both.
func merge(c, next revisions.Change) []revisions.Change {
	if next.Before = c.Before; next.Before == nil && next.After == nil {
		return nil
	}
	return []revisions.Change{next}
}

// Rewound forgets late changes after a revision, which have been undone.
func (d *Delivery) Rewound(to int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	undone := func(c revisions.Change) bool { return c.Revision > to }
	ofResource := func(_ schema.GroupResource, c revisions.Change) bool { return undone(c) }
	d.mu.late = slices.DeleteFunc(d.mu.late, undone)
	maps.DeleteFunc(d.mu.held, ofResource)
	maps.DeleteFunc(d.mu.first, ofResource)
}

// Heal ends all faults, and returns the changes that they held back, in the order of
// revisions.
func (d *Delivery) Heal() []revisions.Change {
	d.mu.Lock()
	defer d.mu.Unlock()
	late := slices.AppendSeq(d.mu.late, maps.Values(d.mu.held))
	late = slices.AppendSeq(late, maps.Values(d.mu.first))
	slices.SortFunc(late, func(a, b revisions.Change) int { return cmp.Compare(a.Revision, b.Revision) })
	d.mu.deliveryFaults = deliveryFaults{}
	return late
}
