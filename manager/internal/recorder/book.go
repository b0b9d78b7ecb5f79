// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record/util"
)

// As in client-go's recorders.
const (
	maxEventsWaiting = 1000
	maxEventSeries   = 10 * maxEventsWaiting
	seriesEnds       = 6 * time.Minute // after the last of it
	seriesRefreshed  = 30 * time.Minute
	eventBurst       = 25 // of one object and controller
	eventRefill      = 5 * time.Minute
)

// eventResult is what became of an event that was told.
type eventResult string

const (
	eventAccepted eventResult = "accepted"
	eventCounted  eventResult = "counted" // in the series of one like it
	eventMerged   eventResult = "merged"  // the same, with another note, which nobody sees
	eventLimited  eventResult = "limited"
	eventOverflow eventResult = "overflow"
)

// sameEvent is what makes two events one series. The note is not of it, as the
// server lets nobody change it.
type sameEvent struct {
	namespace, controller, kind, reason, action string
	regarding, related                          corev1.ObjectReference
}

// series is an event, and how often it has been told.
type series struct {
	event   *eventsv1.Event
	count   int32
	last    time.Time
	queued  bool
	created bool      // the server has it
	tries   int       // to create it
	sent    int32     // count that the server was told
	sentAt  time.Time // and when
}

// eventBook decides what is to be sent. It has no lock and no clock.
type eventBook struct {
	open    map[sameEvent]*series
	order   []*series // that are open, the oldest first
	waiting []*series // to be sent
	limits  map[sameEvent]*allowance
	limited []*allowance // the oldest first
	named   int64        // the last name's nanoseconds
}

// allowance is how many events may be told of one object.
type allowance struct {
	of    sameEvent
	left  float64
	since time.Time
}

func newEventBook() eventBook {
	return eventBook{open: map[sameEvent]*series{}, limits: map[sameEvent]*allowance{}}
}

func keyOf(e *eventsv1.Event) sameEvent {
	key := sameEvent{e.Namespace, e.ReportingController, e.Type, e.Reason, e.Action, e.Regarding, corev1.ObjectReference{}}
	key.regarding.ResourceVersion = "" // a write between two of them makes no other event
	if e.Related != nil {
		key.related = *e.Related
		key.related.ResourceVersion = ""
	}
	return key
}

// tell takes e, which it owns from then on.
func (b *eventBook) tell(e *eventsv1.Event, now time.Time) eventResult {
	key := keyOf(e)
	if s := b.open[key]; s != nil && now.Sub(s.last) < seriesEnds {
		s.count++
		s.last = now
		if s.created && s.sent == 1 {
			b.queue(s) // from the second on it is a series; later counts are sent by sweep
		}
		if e.Note != s.event.Note {
			return eventMerged
		}
		return eventCounted
	}
	if len(b.waiting) >= maxEventsWaiting {
		return eventOverflow
	}
	if !b.allow(e, now) {
		return eventLimited
	}
	b.named = max(b.named+1, now.UnixNano()) // two of one moment have two names
	e.Name = util.GenerateEventName(e.Regarding.Name, b.named)
	e.EventTime = metav1.NewMicroTime(now)
	s := &series{event: e, count: 1, last: now}
	if before := b.open[key]; before != nil {
		b.order = slices.DeleteFunc(b.order, func(other *series) bool { return other == before })
		b.finish(before)
	}
	if len(b.order) >= maxEventSeries {
		b.finish(b.order[0])
		b.order = b.order[1:]
	}
	b.open[key] = s
	b.order = append(b.order, s)
	b.queue(s)
	return eventAccepted
}

// allow takes one of the allowance of who e is about.
func (b *eventBook) allow(e *eventsv1.Event, now time.Time) bool {
	of := sameEvent{controller: e.ReportingController, namespace: e.Namespace, regarding: corev1.ObjectReference{
		APIVersion: e.Regarding.APIVersion, Kind: e.Regarding.Kind, Name: e.Regarding.Name, UID: e.Regarding.UID,
	}}
	a := b.limits[of]
	if a == nil {
		if len(b.limited) >= maxEventSeries {
			delete(b.limits, b.limited[0].of)
			b.limited = b.limited[1:]
		}
		a = &allowance{of: of, left: eventBurst, since: now}
		b.limits[of] = a
		b.limited = append(b.limited, a)
	}
	a.refill(now)
	if a.left < 1 {
		return false
	}
	a.left--
	return true
}

func (a *allowance) refill(now time.Time) {
	a.left = min(eventBurst, a.left+now.Sub(a.since).Seconds()/eventRefill.Seconds())
	a.since = now
}

func (b *eventBook) queue(s *series) {
	if !s.queued {
		s.queued = true
		b.waiting = append(b.waiting, s)
	}
}

// next takes the series that is to be sent; nil: none.
func (b *eventBook) next() *series {
	if len(b.waiting) == 0 {
		return nil
	}
	s := b.waiting[0]
	b.waiting = b.waiting[1:]
	s.queued = false
	return s
}

// sweep queues the series whose count the server is to be told now: those that
// have ended or are long ones, or all of them. It forgets those that have ended.
func (b *eventBook) sweep(now time.Time, all bool) {
	b.order = slices.DeleteFunc(b.order, func(s *series) bool {
		over := now.Sub(s.last) >= seriesEnds
		switch {
		case over:
			b.finish(s)
		case all || now.Sub(s.sentAt) >= seriesRefreshed:
			b.count(s)
		}
		return over
	})
	b.limited = slices.DeleteFunc(b.limited, func(a *allowance) bool {
		a.refill(now)
		full := a.left == eventBurst
		if full {
			delete(b.limits, a.of)
		}
		return full
	})
}

// finish forgets s, and has the server told its count.
func (b *eventBook) finish(s *series) {
	b.count(s)
	b.forget(s)
}

// forget has what is told next begin another series.
func (b *eventBook) forget(s *series) {
	if key := keyOf(s.event); b.open[key] == s {
		delete(b.open, key)
	}
}

// count queues s if the server has it and does not know how often it has been told.
func (b *eventBook) count(s *series) {
	if s.created && s.count > s.sent {
		b.queue(s)
	}
}
