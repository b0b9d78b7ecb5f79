// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bytes"
	"fmt"
	"time"
)

const (
	// mostGarbled frames in a row, and the time without a sound one after one of
	// them, end a watch.
	mostGarbled   = 16
	garbledWithin = time.Second
	// garbledLists is the time between lists that make up for garbled frames.
	garbledLists = time.Minute
	// mostSkipped bytes are looked at for the line after a garbled one.
	mostSkipped = 1 << 20
)

// garbledFrame is a frame that is no event. The stream can be read on: what follows is
// perhaps sound.
type garbledFrame struct{ err error }

func (g *garbledFrame) Error() string { return g.err.Error() }
func (g *garbledFrame) Unwrap() error { return g.err }

// garbled passes over a text that does not begin an event. The rest of its line is
// passed over when it is there.
func (f *frameReader) garbled() error {
	f.skipping = true
	return &garbledFrame{fmt.Errorf("not a watch event: %w", errNotJSON)}
}

// skip passes over the rest of a garbled line.
func (f *frameReader) skip() error {
	for skipped := 0; ; {
		if end := bytes.IndexByte(f.buf[f.r:f.w], '\n'); end >= 0 {
			f.r += end + 1
			f.skipping = false
			return nil
		}
		skipped += f.w - f.r
		f.r = f.w
		if skipped > mostSkipped {
			return fmt.Errorf("%d bytes without a watch event: %w", skipped, errNotJSON)
		}
		if err := f.need(1); err != nil {
			return err
		}
	}
}

// nextEvent is where a line of text begins an event, though the object before it has not
// ended; -1: none does. An API server writes each event on one line, and no string of JSON
// has a line break.
func nextEvent(text []byte) int {
	if i := bytes.Index(text, []byte("\n"+compactStart)); i >= 0 {
		return i + 1
	}
	return -1
}

// garble is what a session has passed over.
type garble struct {
	inRow  int
	last   error // since the last sound frame; nil: nothing
	passed error // before the last sound frame; nil: nothing
}

// pass says whether a watch goes on after err.
func (s *session[T]) pass(err error) bool {
	if _, is := err.(*garbledFrame); !is || !s.passes {
		return false
	}
	s.garble.last = err
	if s.garble.inRow++; s.garble.inRow > mostGarbled {
		return false
	}
	s.alarm.Reset(garbledWithin)
	return true
}

// sound notes a frame that is an event.
func (s *session[T]) sound() {
	if s.garble.last == nil {
		return
	}
	s.garble = garble{passed: s.garble.last}
	if s.within == 0 {
		s.alarm.Stop()
	}
}

// makeUp wants a list for the events that garbled frames have hidden, once in a while.
func (r *Reflector[T]) makeUp(s *session[T]) {
	if s.garble.passed != nil {
		r.status.unreadable(s.garble.passed)
		s.garble.passed, r.garbled = nil, true
	}
	if r.garbled && time.Since(r.madeUp) >= garbledLists {
		r.garbled, r.madeUp = false, time.Now()
		// What the stream has brought already counts first.
		time.AfterFunc(garbledWithin, func() { r.wants.add(demand{reason: relistGarbled}) })
	}
}
