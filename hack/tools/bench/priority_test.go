// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/flyball-dev/flyball/internal/cputime"
	"github.com/flyball-dev/flyball/workqueue"
)

// prioritized is a contestant with priorities.
type prioritized struct {
	name string
	make func() (q queue, add func(k key, priority int))
}

// prioritizedPeers returns our queue, also with flows by namespace, and
// controller-runtime's.
func prioritizedPeers() []prioritized {
	return []prioritized{
		{"flyball", func() (queue, func(key, int)) {
			q := newFlyball()
			return q, func(k key, priority int) { q.AddWith(k, workqueue.AddOptions{Priority: priority}) }
		}},
		{"flyball-fair", func() (queue, func(key, int)) {
			q := newFairFlyball(func(k key) string { return k.Namespace })
			return q, func(k key, priority int) { q.AddWith(k, workqueue.AddOptions{Priority: priority}) }
		}},
		{"controller-runtime", func() (queue, func(key, int)) {
			q := peers()[2].make().(priorityqueue.PriorityQueue[key])
			return q, func(k key, priority int) { q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, k) }
		}},
	}
}

// BenchmarkQueue_PriorityBurst adds 1000 keys, every other one of low priority, and
// processes them; a time is per key.
func BenchmarkQueue_PriorityBurst(b *testing.B) {
	for _, p := range prioritizedPeers() {
		b.Run(p.name, func(b *testing.B) {
			q, add := p.make()
			defer q.ShutDown()
			keys := newKeys(1000)
			b.ReportAllocs()
			start := cputime.Used()
			for b.Loop() {
				for i, k := range keys {
					add(k, -100*(i%2))
				}
				for range keys {
					k, _ := q.Get()
					q.Done(k)
				}
			}
			perItem(b, len(keys), start)
		})
	}
}

// BenchmarkQueue_LiveBeforeBacklog starts with 100,000 waiting keys of low priority, then
// adds live keys and processes as many, one at a time. passed is how many other keys were
// handed out before a live key.
func BenchmarkQueue_LiveBeforeBacklog(b *testing.B) {
	const backlog = 100_000
	keys := newKeys(backlog + 1000)
	for _, p := range prioritizedPeers() {
		b.Run(p.name, func(b *testing.B) {
			q, add := p.make()
			defer q.ShutDown()
			for _, k := range keys[:backlog] {
				add(k, -100)
			}
			for q.Len() < backlog { // controller-runtime's queue adds keys from a goroutine
				time.Sleep(time.Millisecond)
			}
			i, passed, start := 0, 0, cputime.Used()
			for b.Loop() {
				live := keys[backlog+i%1000]
				add(live, 0)
				for k, _ := q.Get(); ; k, _ = q.Get() {
					q.Done(k)
					if k == live {
						break
					}
					add(k, -100)
					passed++
				}
				i++
			}
			perItem(b, 1, start)
			b.ReportMetric(float64(passed)/float64(b.N), "passed")
		})
	}
}
