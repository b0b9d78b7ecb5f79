// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/queries"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

const (
	bookmarkEvery = time.Minute
	lastBookmark  = 2 * time.Second // before the timeout

	// A watch whose client leaves more events unread, for so long, is ended.
	unreadAtMost = 1000
	unreadFor    = time.Second

	noMore = 10 * 365 * 24 * time.Hour // no bookmark comes any more
)

// watch is one open watch. The server's lock guards it.
type watch struct {
	kind      *kinds.Kind
	sel       queries.Selection
	told      *sync.Cond     // on the server's lock
	from      int64          // what is not newer is not told
	queue     []encode.Frame // not sent yet
	initial   int            // of the queue, from the opening of the watch
	since     time.Time      // when the first of the queue that is not initial came
	bookmarks bool
	muted     bool // says nothing more, and stays open
	over      bool // ends when the queue is sent
}

// tell queues what the watch is to know of c. A watch that is not read ends, as
// nobody holds the whole world for one who sleeps.
func (w *watch) tell(c revisions.Change) {
	if c.Resource != w.kind.Held() || c.Revision <= w.from || w.over {
		return
	}
	f, ok := w.sel.Event(c)
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
		w.queue = append(w.queue, f)
	}
	w.told.Signal()
}

func (s *Server) watch(answer http.ResponseWriter, c *call) error {
	query, err := c.query()
	if err != nil {
		return err
	}
	r, err := query.Watch()
	if err != nil {
		return err
	}
	w := &watch{kind: c.kind, sel: query.Selection(), told: sync.NewCond(&s.mu.Mutex), bookmarks: r.Bookmarks}
	if spoil := s.spoilage(c); spoil == OtherPage {
		spoilBody(answer, c.encoder, spoil, nil)
		return nil
	}
	if r.Timeout >= 0 {
		// Who has the header may count on what happens from then on.
		s.open(c, w, r)
		defer s.close(w)
	}
	answer.Header().Set("Content-Type", c.encoder.StreamType())
	answer.WriteHeader(http.StatusOK)
	flush(answer)
	if r.Timeout >= 0 {
		s.feed(answer, c, w, r.Timeout)
	}
	return nil
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// open registers w with what it has to be told first.
func (s *Server) open(c *call, w *watch, r queries.Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compactLocked()
	at := r.Revision
	if !r.Given {
		at = s.mu.log.Revision // consistent
	}
	if r.Initial && !s.waitLocked(c.Context(), freshWithin, func() bool { return s.shownOfLocked(c.kind.Held()) >= at }) {
		w.fail(refusal.TooLarge(at, s.shownOfLocked(c.kind.Held())).ErrStatus)
		return
	}
	s.mu.watches[w] = struct{}{}
	if s.kinds.Kind(w.kind.GroupVersionKind) != w.kind {
		w.over = true // removed or changed meanwhile
		return
	}
	shown := s.shownOfLocked(w.kind.Held())
	switch {
	case r.Initial:
		w.from = shown
		s.initialLocked(w)
		return
	case r.Revision == 0:
		w.from = at
		return
	}
	w.from = r.Revision
	oldest := max(s.mu.oldest, s.mu.log.Compacted, w.kind.Oldest)
	changes, ok := s.mu.log.Since(r.Revision, shown)
	if !ok || r.Revision < oldest {
		w.fail(refusal.TooOld(r.Revision, oldest).ErrStatus)
		return
	}
	for _, change := range changes {
		w.tell(change)
	}
}

// fail ends w with a Status.
func (w *watch) fail(status metav1.Status) {
	w.queue, w.over = []encode.Frame{{Type: encode.FrameError, Status: &status}}, true
}

// initialLocked queues the present objects, and the bookmark that ends them.
func (s *Server) initialLocked(w *watch) {
	then, ok := s.mu.log.At(w.kind.Held(), w.from)
	if !ok { // a cache that lags is behind what the store has kept
		w.fail(refusal.TooOld(w.from, s.mu.log.Compacted).ErrStatus)
		return
	}
	in := revisions.SpanOf(w.sel.Namespace, "")
	for _, obj := range then.Take(in, then.Count(in)) {
		if w.sel.Has(obj) {
			w.queue = append(w.queue, encode.Frame{Type: encode.FrameAdded, Object: obj})
		}
	}
	if w.bookmarks && !s.mu.faults.noEndBookmark[w.kind.GroupResource()] {
		w.queue = append(w.queue, bookmark(w.from, true))
	}
	w.initial = len(w.queue)
}

func bookmark(revision int64, end bool) encode.Frame {
	metadata := map[string]any{"resourceVersion": strconv.FormatInt(revision, 10)}
	if end {
		metadata["annotations"] = map[string]any{metav1.InitialEventsAnnotationKey: "true"}
	}
	return encode.Frame{Type: encode.FrameBookmark, Object: &object.Object{Fields: map[string]any{"metadata": metadata}}}
}

func (s *Server) close(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.watches, w)
}

// feed sends what is queued for w until it ends.
func (s *Server) feed(answer http.ResponseWriter, c *call, w *watch, timeout time.Duration) {
	first, end := true, time.Now().Add(timeout)
	next := nextBookmark(time.Now(), end)
	for c.Context().Err() == nil {
		frames, over := s.take(c, w, min(time.Until(next), time.Until(end)))
		now := time.Now()
		if len(frames) == 0 && !over && !now.Before(next) {
			frames = s.heartbeat(w)
			next = nextBookmark(now, end)
		}
		encoder, line := c.encoder, []byte(nil)
		if len(frames) > 0 && frames[0].Type != encode.FrameError {
			encoder = encoder.ForMany(len(frames), func() *object.Object { return frames[0].Object })
		}
		for _, f := range frames {
			var goesOn bool
			if line, goesOn = s.send(answer, c, encoder, line[:0], f, first); !goesOn {
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

// take waits for something to send for at most d. over: nothing comes after.
func (s *Server) take(c *call, w *watch, d time.Duration) (frames []encode.Frame, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waitOnLocked(c.Context(), w.told, d, func() bool { return w.over || len(w.queue) > 0 && !w.muted })
	if w.muted {
		return nil, w.over
	}
	frames, w.queue, w.initial = w.queue, nil, 0
	return frames, w.over
}

// heartbeat is the bookmark that is due, if the watch gets one.
func (s *Server) heartbeat(w *watch) []encode.Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.mu.faults.known(w.kind.Held(), s.mu.told)
	if !w.bookmarks || w.muted || len(w.queue) > 0 || told < w.from {
		return nil
	}
	return []encode.Frame{bookmark(told, false)}
}

// send writes one frame, and reports whether the stream goes on. first: there
// was none before. It makes the frame in line, which it returns to be used
// again.
func (s *Server) send(answer http.ResponseWriter, c *call, e encode.Encoder, line []byte, f encode.Frame, first bool) ([]byte, bool) {
	raw, err := e.Event(line, f, first)
	if err != nil {
		status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: fmt.Sprint(err)}
		raw, err = e.Event(line, encode.Frame{Type: encode.FrameError, Status: &status}, first)
	}
	if err != nil {
		return raw, false
	}
	if s.tracer != nil {
		s.tracer.Sending(c.traced, tracedFrame(f))
	}
	if spoil := s.frameSpoilage(c.kind.GroupResource(), f); spoil != "" {
		return raw, spoilFrame(answer, e, spoil, raw)
	}
	if _, err := answer.Write(raw); err != nil {
		return raw, false
	}
	flush(answer)
	return raw, true
}
