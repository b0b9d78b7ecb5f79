// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

const (
	// FreshWithin is how long a request waits for a version in the future.
	FreshWithin = 3 * time.Second

	// A watch whose client leaves more events unread than this, for this long, is ended.
	unreadAtMost = 1000
	unreadFor    = time.Second
)

// Selection decides which objects a watch shows. Its methods are called with the store's lock.
type Selection interface {
	// Has reports whether an object is selected.
	Has(obj *object.Object) bool
	// Event returns a change as the watch sees it, and whether it does.
	Event(c revisions.Change) (revisions.Event, bool)
	// Span returns keys outside of which nothing is selected.
	Span() revisions.Span
}

// WatchOptions is what a watch asks for.
type WatchOptions struct {
	// Of is the resource that the watch names, and Held the one under which its objects are
	// stored.
	Of, Held  schema.GroupResource
	Selection Selection
	// Revision is where the watch begins; Given is false if the client named none, and 0 is any.
	Revision int64
	Given    bool
	// Initial sends the objects that are there first.
	Initial   bool
	Bookmarks bool
	// Life returns the revision at which the kind's own history begins, and whether it is
	// still served as the watch knows it. It is called with the store's lock.
	Life func() (oldest int64, served bool)
}

// Watch is an open watch. The store's lock guards it.
type Watch struct {
	store     *Store
	of, held  schema.GroupResource
	selection Selection
	woken     *sync.Cond        // on the store's lock
	from      int64             // only newer changes are shown
	behind    int64             // it opened when the cache had gone back to this revision; 0: it has what others have
	queue     []revisions.Event // not sent yet
	initial   int               // of the queue, from the opening of the watch
	since     time.Time         // when the oldest other event was queued
	bookmarks bool
	muted     bool // shows nothing more, and stays open
	over      bool // ends when the queue is sent
}

// Watch opens a watch, which sees each change from its return on. The caller reads it with Next
// and closes it. A watch that cannot be served has one event, an error, and ends.
func (s *Store) Watch(ctx context.Context, opts WatchOptions) *Watch {
	w := &Watch{store: s, of: opts.Of, held: opts.Held, selection: opts.Selection, bookmarks: opts.Bookmarks, woken: sync.NewCond(&s.mu.Mutex)}
	tx := s.Begin()
	defer tx.End()
	tx.open(ctx, w, opts)
	return w
}

// open registers a watch and queues what it shows first.
func (tx *Tx) open(ctx context.Context, w *Watch, opts WatchOptions) {
	tx.CompactIfDue()
	at := opts.Revision
	if !opts.Given {
		at = tx.Revision() // consistent
	}
	if opts.Initial && !tx.Wait(ctx, FreshWithin, func() bool { return tx.Shown(w.held) >= at }) {
		w.failLocked(refusal.TooLarge(at, tx.Shown(w.held)).ErrStatus)
		return
	}
	tx.mu.watches[w] = struct{}{}
	oldest, served := opts.Life()
	if !served {
		w.over = true // removed or changed meanwhile
		return
	}
	shown := tx.Shown(w.held)
	if all := (*Store)(tx).shownLocked(); all < tx.mu.told {
		w.behind = all
	}
	switch {
	case opts.Initial:
		w.from = shown
		w.beginLocked()
		return
	case opts.Revision == 0:
		w.from = at
		return
	}
	w.from = opts.Revision
	oldest = max(tx.mu.oldest, tx.Compacted(), oldest)
	changes, ok := tx.mu.log.Since(opts.Revision, shown)
	if !ok || opts.Revision < oldest {
		w.failLocked(refusal.TooOld(opts.Revision, oldest).ErrStatus)
		return
	}
	for _, change := range changes {
		w.showLocked(change)
	}
}

// beginLocked queues the present objects and the bookmark that ends them.
func (w *Watch) beginLocked() {
	s := w.store
	then, ok := s.mu.log.At(w.held, w.from)
	if !ok { // a cache that lags is behind what the store has kept
		w.failLocked(refusal.TooOld(w.from, s.mu.log.Compacted).ErrStatus)
		return
	}
	in := w.selection.Span()
	for _, obj := range then.Take(in, then.Count(in)) {
		if w.selection.Has(obj) {
			w.queue = append(w.queue, revisions.Event{Type: revisions.Added, Object: obj})
		}
	}
	if w.bookmarks && s.cache.EndBookmark(w.of) {
		w.queue = append(w.queue, bookmark(w.from, true))
	}
	w.initial = len(w.queue)
}

// showLocked queues what the watch shows of a change. A watch that is not read ends, so that its
// queue stays bounded.
func (w *Watch) showLocked(c revisions.Change) {
	if c.Resource != w.held || c.Revision <= w.from || w.over {
		return
	}
	e, ok := w.selection.Event(c)
	if !ok || w.muted {
		return
	}
	switch unread := len(w.queue) - w.initial; {
	case unread == 0:
		w.since = time.Now()
	case unread >= unreadAtMost && time.Since(w.since) >= unreadFor:
		w.over = true
	}
	if !w.over {
		w.queue = append(w.queue, e)
	}
	w.woken.Signal()
}

// failLocked ends the watch with a Status.
func (w *Watch) failLocked(status metav1.Status) {
	w.queue, w.over = []revisions.Event{{Type: revisions.Failed, Status: &status}}, true
}

func (w *Watch) endLocked() { w.over = true }

func bookmark(revision int64, end bool) revisions.Event {
	metadata := map[string]any{"resourceVersion": strconv.FormatInt(revision, 10)}
	if end {
		metadata["annotations"] = map[string]any{metav1.InitialEventsAnnotationKey: "true"}
	}
	return revisions.Event{Type: revisions.Bookmark, Object: &object.Object{Fields: map[string]any{"metadata": metadata}}}
}

// Next waits for events for at most d. over: none will follow.
func (w *Watch) Next(ctx context.Context, d time.Duration) (events []revisions.Event, over bool) {
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waitLocked(ctx, w.woken, d, func() bool { return w.over || len(w.queue) > 0 && !w.muted })
	if w.muted {
		return nil, w.over
	}
	events, w.queue, w.initial = w.queue, nil, 0
	return events, w.over
}

// Bookmark returns a bookmark of how far the watch is, if it asks for them and has nothing else
// to show.
func (w *Watch) Bookmark() []revisions.Event {
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.cache.ShownOf(w.held, s.mu.told)
	if w.behind > 0 {
		told = min(told, w.behind)
	}
	if !w.bookmarks || w.muted || len(w.queue) > 0 || told < w.from {
		return nil
	}
	return []revisions.Event{bookmark(told, false)}
}

// Close unregisters the watch.
func (w *Watch) Close() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	delete(w.store.mu.watches, w)
}

// shownOfLocked returns the newest revision of a resource that lists from the cache and watches
// know.
func (s *Store) shownOfLocked(r schema.GroupResource) int64 {
	return s.cache.ShownOf(r, s.shownLocked())
}

// shownLocked is shownOfLocked for resources whose cache is not behind the others.
func (s *Store) shownLocked() int64 {
	shown := s.cache.Shown(s.mu.log.Revision)
	if s.mu.keeping.to != nil {
		shown = min(s.mu.keeping.reached, shown)
	}
	return shown
}

// Reshow calls change, which alters what the cache shows, and delivers that to the watches.
// A watch that opens meanwhile sees both or neither.
func (s *Store) Reshow(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.deliverLocked()
}

// deliverLocked tells watches what they have not been told, and wakes whoever waits.
func (s *Store) deliverLocked() {
	s.catchUpLocked()
	shown := s.shownLocked()
	changes, ok := s.mu.log.Since(s.mu.told, shown)
	if !ok && shown > s.mu.told { // compacted while the cache lagged behind
		s.eachWatchLocked(func(w *Watch) { w.failLocked(refusal.TooOld(s.mu.told, s.mu.log.Compacted).ErrStatus) })
		changes, _ = s.mu.log.Since(s.mu.log.Compacted, shown) // a resource may still lag by itself
	}
	for _, c := range s.cache.Deliver(changes) {
		for w := range s.mu.watches {
			w.showLocked(c)
		}
	}
	s.mu.told = max(s.mu.told, shown)
	s.changed.Broadcast()
}

// catchUpLocked shows each watch what the others have been told before it opened.
func (s *Store) catchUpLocked() {
	shown := min(s.shownLocked(), s.mu.told)
	for w := range s.mu.watches {
		w.catchUpLocked(shown)
	}
}

// catchUpLocked shows a watch what others have been told before it opened, up to a revision.
func (w *Watch) catchUpLocked(upTo int64) {
	if w.behind == 0 || w.over {
		return
	}
	if upTo = w.store.cache.ShownOf(w.held, upTo); upTo <= w.behind { // its resource may lag by itself
		return
	}
	changes, ok := w.store.mu.log.Since(w.behind, upTo)
	if !ok {
		w.failLocked(refusal.TooOld(w.behind, w.store.mu.log.Compacted).ErrStatus)
		w.woken.Signal()
		return
	}
	for _, c := range changes {
		w.showLocked(c)
	}
	w.from = max(w.from, upTo) // what was held back is not shown again
	if w.behind = upTo; upTo == w.store.mu.told {
		w.behind = 0
	}
}

// Show delivers changes that the cache has held back to the watches, whatever they have received
// since.
func (tx *Tx) Show(late []revisions.Change) {
	s := (*Store)(tx)
	s.catchUpLocked()
	for _, c := range late {
		s.eachWatchLocked(func(w *Watch) { w.showLocked(c) })
	}
}

// Deliver tells watches what the cache shows now.
func (tx *Tx) Deliver() { (*Store)(tx).deliverLocked() }

func (s *Store) eachWatchLocked(f func(*Watch)) {
	for w := range s.mu.watches {
		f(w)
		w.woken.Signal()
	}
	s.changed.Broadcast()
}

// EndWatches ends the watches of a resource; each shows first what is queued for it.
func (tx *Tx) EndWatches(of schema.GroupResource) {
	(*Store)(tx).eachWatchLocked(func(w *Watch) {
		if w.of == of {
			w.endLocked()
		}
	})
}

// EndAllWatches is EndWatches for all resources.
func (tx *Tx) EndAllWatches() { (*Store)(tx).eachWatchLocked((*Watch).endLocked) }

// MuteWatches keeps all later events from the open watches of a resource, which stay open.
func (tx *Tx) MuteWatches(of schema.GroupResource) {
	(*Store)(tx).eachWatchLocked(func(w *Watch) {
		if w.of == of {
			w.muted = true
		}
	})
}

// Watches counts the watches of a resource that have not ended.
func (s *Store) Watches(of schema.GroupResource) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.mu.watches {
		if w.of == of && !w.over {
			n++
		}
	}
	return n
}

// Watched returns the resources that open watches are of, in order.
func (s *Store) Watched() []schema.GroupResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[schema.GroupResource]bool{}
	for w := range s.mu.watches {
		all[w.of] = true
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
}
