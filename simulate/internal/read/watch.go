// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"context"
	"time"

	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/store"
)

const (
	bookmarkEvery = time.Minute
	lastBookmark  = 2 * time.Second // before the timeout
)

// Watch is an open watch: the events that its client gets, with bookmarks once a minute and
// shortly before its end.
type Watch struct {
	watch    *store.Watch // nil: it ends at once
	end      time.Time
	bookmark time.Time // when the next one is due; zero: none is
}

// Watch opens a watch, which shows each change from its return on. The caller closes it.
func (r *Reader) Watch(ctx context.Context, q Request, asked WatchQuery, sel Selection) *Watch {
	if asked.Timeout < 0 {
		return &Watch{}
	}
	open := r.Store.Watch(ctx, store.WatchOptions{
		Of: q.Kind.GroupResource(), Held: q.Kind.Held(), Selection: sel,
		Revision: asked.Revision, Given: asked.Given, Initial: asked.Initial, Bookmarks: asked.Bookmarks,
		Life: func() (oldest int64, served bool) {
			return q.Kind.Oldest, r.Kinds.Kind(q.Kind.GroupVersionKind) == q.Kind
		},
	})
	now := time.Now()
	w := &Watch{watch: open, end: now.Add(asked.Timeout)}
	w.bookmark = nextBookmark(now, w.end)
	return w
}

// Next waits for events. It returns none if ctx ends. over: none will follow.
func (w *Watch) Next(ctx context.Context) (events []revisions.Event, over bool) {
	for w.watch != nil && ctx.Err() == nil {
		until := w.end
		if !w.bookmark.IsZero() && w.bookmark.Before(until) {
			until = w.bookmark
		}
		events, over = w.watch.Next(ctx, time.Until(until))
		now := time.Now()
		if len(events) == 0 && !over && !w.bookmark.IsZero() && !now.Before(w.bookmark) {
			events = w.watch.Bookmark()
			w.bookmark = nextBookmark(now, w.end)
		}
		over = over || !now.Before(w.end)
		if len(events) > 0 || over {
			return events, over
		}
	}
	return nil, true
}

// Close closes the watch.
func (w *Watch) Close() {
	if w.watch != nil {
		w.watch.Close()
	}
}

// nextBookmark returns one minute from now, or shortly before the end. After that it returns
// zero.
func nextBookmark(now, end time.Time) time.Time {
	last := end.Add(-lastBookmark)
	switch next := now.Add(bookmarkEvery); {
	case next.Before(last):
		return next
	case now.Before(last):
		return last
	}
	return time.Time{}
}
