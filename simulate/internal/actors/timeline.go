// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// errand is an object for an actor to look at.
type errand struct {
	actor string
	about Reference
}

func compareErrands(a, b errand) int {
	return cmp.Or(
		cmp.Compare(a.actor, b.actor), cmp.Compare(a.about.Group, b.about.Group), cmp.Compare(a.about.Resource, b.about.Resource),
		revisions.CompareKeys(a.about.NamespacedName, b.about.NamespacedName),
	)
}

// timeline is the planned errands and their times. It is pure: no lock, no clock. The zero
// value is empty.
type timeline struct {
	due  map[errand]time.Time
	heap errandHeap // may contain outdated entries, which due does not have
}

type planned struct {
	at time.Time
	errand
}

// plan plans an errand at a time. If it is planned already, the earlier time counts.
func (t *timeline) plan(e errand, at time.Time) {
	if !t.sooner(e, at) {
		return
	}
	if t.due == nil {
		t.due = map[errand]time.Time{}
	}
	t.due[e] = at
	heap.Push(&t.heap, planned{at, e})
}

// sooner reports whether an errand is not planned at or before a time.
func (t *timeline) sooner(e errand, at time.Time) bool {
	known, ok := t.due[e]
	return !ok || at.Before(known)
}

func (t *timeline) has(e errand) bool {
	_, ok := t.due[e]
	return ok
}

// next returns when the first errand is due; false if there is none.
func (t *timeline) next() (time.Time, bool) {
	for len(t.heap) > 0 {
		first := t.heap[0]
		if at, ok := t.due[first.errand]; ok && at.Equal(first.at) {
			return at, true
		}
		heap.Pop(&t.heap)
	}
	return time.Time{}, false
}

// take removes and returns the first errand, if it is due.
func (t *timeline) take(now time.Time) (errand, bool) {
	at, ok := t.next()
	if !ok || now.Before(at) {
		return errand{}, false
	}
	first := t.heap[0].errand
	heap.Pop(&t.heap)
	delete(t.due, first)
	return first, true
}

// errandHeap orders errands by time, and those at the same time by name.
type errandHeap []planned

func (h errandHeap) Len() int      { return len(h) }
func (h errandHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h errandHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return compareErrands(h[i].errand, h[j].errand) < 0
}

// Push appends an errand.
func (h *errandHeap) Push(x any) { *h = append(*h, x.(planned)) }

// Pop removes the last errand.
func (h *errandHeap) Pop() any {
	last := len(*h) - 1
	out := (*h)[last]
	(*h)[last] = planned{}
	*h = (*h)[:last]
	return out
}
