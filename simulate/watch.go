// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/faults"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/store"
)

const (
	bookmarkEvery = time.Minute
	lastBookmark  = 2 * time.Second // before the timeout

	noMore = 10 * 365 * 24 * time.Hour // no bookmark comes any more
)

func (s *Server) watch(answer http.ResponseWriter, c *call) error {
	query, err := c.query()
	if err != nil {
		return err
	}
	r, err := query.Watch()
	if err != nil {
		return err
	}
	if damage := s.listDamage(c); damage == faults.OtherPage {
		damage.Answer(answer, c.encoder, nil)
		return nil
	}
	var w *store.Watch
	if r.Timeout >= 0 {
		// Who has the header may count on what happens from then on.
		w = s.store.Watch(c.Context(), store.WatchOptions{
			Of: c.kind.GroupResource(), Held: c.kind.Held(), Selection: query.Selection(),
			Revision: r.Revision, Given: r.Given, Initial: r.Initial, Bookmarks: r.Bookmarks,
			Life: func() (oldest int64, served bool) {
				return c.kind.Oldest, s.kinds.Kind(c.kind.GroupVersionKind) == c.kind
			},
		})
		defer w.Close()
	}
	answer.Header().Set("Content-Type", c.encoder.StreamType())
	answer.WriteHeader(http.StatusOK)
	flush(answer)
	if w != nil {
		s.feed(answer, c, w, r.Timeout)
	}
	return nil
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// feed sends what is queued for w until it ends.
func (s *Server) feed(answer http.ResponseWriter, c *call, w *store.Watch, timeout time.Duration) {
	first, end := true, time.Now().Add(timeout)
	next := nextBookmark(time.Now(), end)
	for c.Context().Err() == nil {
		events, over := w.Next(c.Context(), min(time.Until(next), time.Until(end)))
		now := time.Now()
		if len(events) == 0 && !over && !now.Before(next) {
			events = w.Bookmark()
			next = nextBookmark(now, end)
		}
		encoder, line := c.encoder, []byte(nil)
		if len(events) > 0 && events[0].Type != revisions.Failed {
			encoder = encoder.ForMany(len(events), func() *object.Object { return events[0].Object })
		}
		for _, e := range events {
			var goesOn bool
			if line, goesOn = s.send(answer, c, encoder, line[:0], e, first); !goesOn {
				return
			}
			first = false
		}
		if over || !now.Before(end) {
			return
		}
	}
}

// nextBookmark is one minute from now, or shortly before the end.
func nextBookmark(now, end time.Time) time.Time {
	last := end.Add(-lastBookmark)
	switch next := now.Add(bookmarkEvery); {
	case next.Before(last):
		return next
	case now.Before(last):
		return last
	}
	return now.Add(noMore)
}

// send writes one event, and reports whether the stream goes on. first: there
// was none before. It encodes the event in line, which it returns to be used
// again.
func (s *Server) send(answer http.ResponseWriter, c *call, as encode.Encoder, line []byte, e revisions.Event, first bool) ([]byte, bool) {
	raw, err := as.Event(line, e, first)
	if err != nil {
		status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: fmt.Sprint(err)}
		raw, err = as.Event(line, revisions.Event{Type: revisions.Failed, Status: &status}, first)
	}
	if err != nil {
		return raw, false
	}
	if s.tracer != nil {
		s.tracer.Sending(c.traced, tracedEvent(e))
	}
	if e.Type != revisions.Bookmark && e.Type != revisions.Failed {
		if damage := s.requests.EventDamage(c.kind.GroupResource()); damage != "" {
			return raw, damage.Event(answer, as, raw)
		}
	}
	if _, err := answer.Write(raw); err != nil {
		return raw, false
	}
	flush(answer)
	return raw, true
}
