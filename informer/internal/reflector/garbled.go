// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"time"

	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/internal/steps"
)

// garble is what a session has passed over.
type garble struct {
	inRow  int
	last   error // since the last sound frame; nil: nothing
	passed error // before the last sound frame; nil: nothing
}

// pass says whether a watch goes on after err.
func (s *session[T]) pass(err error) bool {
	if _, is := err.(*encoding.GarbledFrame); !is || !s.passes {
		return false
	}
	s.garble.last = err
	if s.garble.inRow++; s.garble.inRow > encoding.MostGarbled {
		return false
	}
	s.alarm.Reset(encoding.GarbledWithin)
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
		r.Status.unreadable(s.garble.passed)
		s.garble.passed, r.garbled = nil, true
	}
	if r.garbled && time.Since(r.madeUp) >= encoding.GarbledLists {
		r.garbled, r.madeUp = false, time.Now()
		// What the stream has brought already counts first.
		time.AfterFunc(encoding.GarbledWithin, func() { r.Wants.Add(steps.Demand{Reason: steps.RelistGarbled}) })
	}
}
