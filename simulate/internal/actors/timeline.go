// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// task is an object for an actor to look at.
type task struct {
	actor string
	about Reference
}

func compareTasks(a, b task) int {
	return cmp.Or(
		cmp.Compare(a.actor, b.actor), cmp.Compare(a.about.Group, b.about.Group), cmp.Compare(a.about.Resource, b.about.Resource),
		revisions.CompareKeys(a.about.NamespacedName, b.about.NamespacedName),
	)
}

// timeline is the planned tasks and their times. It is pure: no lock, no clock. The zero
// value is empty.
type timeline struct {
	due  map[task]time.Time
	heap taskHeap // may contain outdated entries, which due does not have
}

type planned struct {
	at time.Time
	task
}

// plan plans an task at a time. If it is planned already, the earlier time counts.
func (t *timeline) plan(e task, at time.Time) {
	if !t.sooner(e, at) {
		return
	}
	if t.due == nil {
		t.due = map[task]time.Time{}
	}
	t.due[e] = at
	heap.Push(&t.heap, planned{at, e})
}

// sooner reports whether an task is not planned at or before a time.
func (t *timeline) sooner(e task, at time.Time) bool {
	known, ok := t.due[e]
	return !ok || at.Before(known)
}

func (t *timeline) has(e task) bool {
	_, ok := t.due[e]
	return ok
}

// next returns when the first task is due; false if there is none.
func (t *timeline) next() (time.Time, bool) {
	for len(t.heap) > 0 {
		first := t.heap[0]
		if at, ok := t.due[first.task]; ok && at.Equal(first.at) {
			return at, true
		}
		heap.Pop(&t.heap)
	}
	return time.Time{}, false
}

// take removes and returns the first task, if it is due.
func (t *timeline) take(now time.Time) (task, bool) {
	at, ok := t.next()
	if !ok || now.Before(at) {
		return task{}, false
	}
	first := t.heap[0].task
	heap.Pop(&t.heap)
	delete(t.due, first)
	return first, true
}

// taskHeap orders tasks by time, and those at the same time by name.
type taskHeap []planned

func (h taskHeap) Len() int      { return len(h) }
func (h taskHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h taskHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return compareTasks(h[i].task, h[j].task) < 0
}

// Push appends an task.
func (h *taskHeap) Push(x any) { *h = append(*h, x.(planned)) }

// Pop removes the last task.
func (h *taskHeap) Pop() any {
	last := len(*h) - 1
	out := (*h)[last]
	(*h)[last] = planned{}
	*h = (*h)[:last]
	return out
}
