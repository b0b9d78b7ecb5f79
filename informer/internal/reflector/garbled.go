// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"time"

	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/internal/steps"
)

// garble records the unreadable frames of a session.
type garble struct {
	inRow  int
	last   error // since the last readable frame
	passed error // before the last readable frame
}

// pass reports whether a watch continues after err.
func (s *session) pass(err error) bool {
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

// sound records a readable frame.
func (s *session) sound() {
	if s.garble.last == nil {
		return
	}
	s.garble = garble{passed: s.garble.last}
	if s.within == 0 {
		s.alarm.Stop()
	}
}

// makeUp demands a list for the events hidden in garbled frames, at a limited
// rate.
func (r *Reflector) makeUp(s *session) {
	if s.garble.passed != nil {
		r.Status.unreadable(s.garble.passed)
		s.garble.passed, r.garbled = nil, true
	}
	if r.garbled && time.Since(r.madeUp) >= encoding.GarbledLists {
		r.garbled, r.madeUp = false, time.Now()
		// Leave time for what the stream has already sent.
		time.AfterFunc(encoding.GarbledWithin, func() { r.Wants.Add(steps.Demand{Reason: steps.RelistGarbled}) })
	}
}
