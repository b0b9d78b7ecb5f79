// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

const (
	starvedFor  = 10 * time.Minute
	starvedRuns = 1000
	quickWait   = 10 * time.Second // of keys that go before a starved one: a bucket of the queue's
	lookEvery   = time.Minute
)

// starvation finds a key that waits while keys that became ready later run. It looks when a run
// begins, once a minute: nobody is passed over while none does. The zero starvation is ready to use.
// Safe for concurrent use.
type starvation[K comparable] struct {
	due   atomic.Int64 // nanoseconds since 1970
	known atomic.Bool  // there is a finding
	mu    struct {
		sync.Mutex
		looks []glance // the oldest first
		key   K
		found Finding // without the key; zero: none
		seen  time.Time
	}
}

// glance is how many keys a queue had handed out at a time, and those that had waited for less than
// quickWait.
type glance struct {
	at         time.Time
	all, quick uint64
}

// isDue reports whether the caller is to look.
func (s *starvation[K]) isDue(now time.Time) bool {
	due := s.due.Load()
	return now.UnixNano() >= due && s.due.CompareAndSwap(due, now.Add(lookEvery).UnixNano())
}

// look regards the numbers of a queue, and the key that has waited longest in it; nil: none. It
// returns whether a finding is new.
func (s *starvation[K]) look(now time.Time, stats workqueue.Stats, oldest *workqueue.KeyState[K]) (found Finding, isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := glance{now, stats.Latency.Count, quickIn(stats)}
	s.mu.looks = append(s.mu.looks, last)
	// Those that were handed out since the first of the others became ready after any starved key.
	s.mu.looks = slices.DeleteFunc(s.mu.looks, func(g glance) bool { return now.Sub(g.at) > starvedFor-quickWait })
	first := s.mu.looks[0]
	before := last.quick - first.quick
	if oldest == nil || oldest.Age < starvedFor || before < starvedRuns || 2*before < last.all-first.all {
		s.endLocked()
		return Finding{}, false
	}
	isNew = s.mu.found.Kind == "" || s.mu.key != oldest.Key
	s.mu.key, s.mu.seen = oldest.Key, now
	s.mu.found = Finding{Kind: Starved, Since: now.Add(-oldest.Age), Count: int(before), By: lineOf(*oldest)}
	s.known.Store(true)
	return s.mu.found, isNew
}

// quickIn returns how many keys were handed out that had waited for less than quickWait.
func quickIn(stats workqueue.Stats) (n uint64) {
	for bound, upTo := range stats.Latency.Buckets() {
		if bound <= quickWait {
			n = upTo
		}
	}
	return n
}

// lineOf returns the priority and flow of a key.
func lineOf[K comparable](k workqueue.KeyState[K]) string {
	text := fmt.Sprintf("priority %d", k.Priority)
	if k.Flow != "" {
		text += fmt.Sprintf(", flow %q", k.Flow)
	}
	return text
}

// end ends the finding if it is of key, which runs.
func (s *starvation[K]) end(key K) {
	if !s.known.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.key == key {
		s.endLocked()
	}
}

func (s *starvation[K]) endLocked() {
	s.mu.found = Finding{}
	s.known.Store(false)
}

// now returns the finding without its key, and the key. Where no run begins any more, none is
// passed over.
func (s *starvation[K]) now(now time.Time) (key K, found Finding, ok bool) {
	if !s.known.Load() {
		return key, found, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.key, s.mu.found, s.mu.found.Kind != "" && now.Sub(s.mu.seen) <= 2*lookEvery
}

// join adds the finding, and its key, to others.
func (s *starvation[K]) join(keys []K, all []Finding) ([]K, []Finding) {
	if key, f, ok := s.now(time.Now()); ok {
		keys, all = append(keys, key), append(all, f)
	}
	return keys, all
}
