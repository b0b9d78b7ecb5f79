// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package store holds the objects of a simulated server and tells watches, observers and a
// journal what changes.
//
//	Begin ─▶ Tx: Get, List, Put, Remove … ─▶ End
//	                      │ one revision each
//	                      ▼
//	          revisions.Log  ─▶ Cache ─▶ open watches
//	                         ─▶ observers, in the order of revisions
//	                         ─▶ the queue of the journal, if there is one
//	                         ─▶ Options.After, which may write more
//
// # Atomicity
//
// A Tx is the store with its lock held. All that happens between Begin and End is atomic: no
// other goroutine reads, writes or is told anything in between. A write that depends on what is
// stored, as an update of a version or the creation of a name, reads and writes in one Tx.
// Everything that must not see a change without another belongs into one Tx too. A Tx is not
// rolled back: each Put and each Remove is a revision at once.
//
// Tx.Wait gives the lock up while it waits; what was read before it may have changed after it.
//
// # Locks
//
// The store has one lock. Cache, observers, Options.After, and the functions of a WatchOptions
// are called with it. They may take locks of their own, under which nobody may call the store.
//
// # Who sees what
//
// Get and List show each change at once. Watches and lists from the cache show what the Cache
// lets through. With a journal they show a change once it is in the file, and Kept waits for
// that on behalf of requests that have read or written it.
package store

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// Options of a Store. The zero value is valid.
type Options struct {
	// CompactEvery is how often history is dropped, except for that of the last such
	// period. 0: five minutes. Negative: only by Compact.
	CompactEvery time.Duration
	// Cache lies between the store and its watches. nil: they see each change at once.
	Cache Cache
	// Given returns what the server has handed out, for the journal. nil: nothing.
	Given func() Counters
	// After is called in the Tx of each change, after watches and observers have been told
	// of it. It may change more. nil: nothing follows a change.
	After func(*Tx, revisions.Change)
}

// Cache is what watches and lists from the cache see of the store. Its methods are called with
// the store's lock.
type Cache interface {
	// Shown returns how far the caches of all resources are behind a revision, as the newest
	// revision that they know.
	Shown(revision int64) int64
	// ShownOf returns how much the cache of a resource knows of what all caches know.
	ShownOf(r schema.GroupResource, shown int64) int64
	// Deliver returns what watches are told now, given new changes.
	Deliver(changes []revisions.Change) []revisions.Change
	// EndBookmark reports whether the initial events of a watch end with a bookmark.
	EndBookmark(r schema.GroupResource) bool
	// Rewound forgets changes after a revision, which have been undone.
	Rewound(revision int64)
}

// Store is the stored objects, their history and the open watches. It is safe for concurrent
// use.
type Store struct {
	given   func() Counters
	cache   Cache
	after   func(*Tx, revisions.Change)
	changed *sync.Cond // on mu; something happened that a request may wait for
	mu      struct {
		sync.Mutex
		log        *revisions.Log
		watches    map[*Watch]struct{}
		compaction compaction
		observers  []func(revisions.Change) // nil: one that has left
		keeping    keeping
		told       int64 // the last revision that was delivered to watches
		oldest     int64 // where the history for watches begins, if after the log's
	}
}

// New returns an empty store.
func New(opts Options) *Store {
	s := &Store{cache: opts.Cache, given: opts.Given, after: opts.After}
	if s.cache == nil {
		s.cache = direct{}
	}
	if s.given == nil {
		s.given = func() Counters { return Counters{} }
	}
	s.changed = sync.NewCond(&s.mu.Mutex)
	s.mu.log = revisions.NewLog()
	s.mu.told = s.mu.log.Revision
	s.mu.watches = map[*Watch]struct{}{}
	s.mu.compaction = compaction{every: cmp.Or(opts.CompactEvery, compactUsually), last: time.Now(), revision: s.mu.log.Revision}
	return s
}

// direct is a Cache that hides nothing.
type direct struct{}

func (direct) Shown(revision int64) int64                            { return revision }
func (direct) ShownOf(_ schema.GroupResource, shown int64) int64     { return shown }
func (direct) Deliver(changes []revisions.Change) []revisions.Change { return changes }
func (direct) EndBookmark(schema.GroupResource) bool                 { return true }
func (direct) Rewound(int64)                                         {}

// Revision returns the newest revision.
func (s *Store) Revision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.log.Revision
}

// Get returns an object, or nil if there is none.
func (s *Store) Get(r schema.GroupResource, key types.NamespacedName) *object.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.log.Get(r, key)
}

// List returns the objects of a resource in the order of their keys.
func (s *Store) List(r schema.GroupResource) []*object.Object {
	return s.Lists(r)[0]
}

// Lists returns the objects of some resources, all at one revision.
func (s *Store) Lists(of ...schema.GroupResource) [][]*object.Object {
	tx := s.Begin()
	defer tx.End()
	out := make([][]*object.Object, len(of))
	for i, r := range of {
		out[i] = tx.List(r)
	}
	return out
}

// Observe calls see for each object, as if it were created now, and then for each change in
// the order of revisions. A change that Rewind undoes is reported as a change in the opposite
// direction. see must not block. leave ends the calls;
// see must not call it.
func (s *Store) Observe(see func(revisions.Change)) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, change := range s.mu.log.All() {
		see(change)
	}
	return s.observeLocked(see)
}

// ObserveChanges is Observe without the objects that are there already.
func (s *Store) ObserveChanges(see func(revisions.Change)) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.observeLocked(see)
}

func (s *Store) observeLocked(see func(revisions.Change)) (leave func()) {
	i := slices.IndexFunc(s.mu.observers, func(o func(revisions.Change)) bool { return o == nil })
	if i < 0 {
		i = len(s.mu.observers)
		s.mu.observers = append(s.mu.observers, nil)
	}
	s.mu.observers[i] = see
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.observers[i] = nil
	}
}

// observedLocked queues a change for the journal and calls the observers.
func (s *Store) observedLocked(c revisions.Change) {
	if s.mu.keeping.to != nil {
		s.mu.keeping.queue = append(s.mu.keeping.queue, JournalRecordOf(c, s.given()))
		s.mu.keeping.queued++
	}
	for _, see := range s.mu.observers {
		if see != nil {
			see(c)
		}
	}
}

// Wait blocks until done, which is called with the store's lock after changes, until a time, or
// until ctx ends. A zero time is never.
func (s *Store) Wait(ctx context.Context, until time.Time, done func() bool) {
	stop := context.AfterFunc(ctx, func() { s.wake(s.changed) })
	defer stop()
	if !until.IsZero() {
		timer := time.AfterFunc(time.Until(until), func() { s.wake(s.changed) })
		defer timer.Stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for !done() && ctx.Err() == nil && (until.IsZero() || time.Now().Before(until)) {
		s.changed.Wait()
	}
}

// wake makes the waiters of a condition check it again. The lock keeps one that is about to
// wait from missing it.
func (s *Store) wake(cond *sync.Cond) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cond.Broadcast()
}

// waitLocked waits for a condition on the store's lock until done, until ctx ends, or for at
// most d. It reports whether done is true.
func (s *Store) waitLocked(ctx context.Context, cond *sync.Cond, d time.Duration, done func() bool) bool {
	if done() || ctx.Err() != nil || d <= 0 {
		return done()
	}
	deadline := time.Now().Add(d)
	timer := time.AfterFunc(d, func() { s.wake(cond) })
	defer timer.Stop()
	stop := context.AfterFunc(ctx, func() { s.wake(cond) })
	defer stop()
	for !done() && ctx.Err() == nil && time.Now().Before(deadline) {
		cond.Wait()
	}
	return done()
}

// Compact drops the history: older versions can no longer be listed or watched from.
func (s *Store) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.log.Compact(s.mu.log.Revision)
}

// DropCache ends all watches and drops the history that watches are served from, but not that
// of the store.
func (s *Store) DropCache() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.oldest = s.mu.log.Revision
	s.eachWatchLocked((*Watch).endLocked)
}
