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
	seriesEnds       = 6 * time.Minute // after its last event
	seriesRefreshed  = 30 * time.Minute
	eventBurst       = 25 // for one object, controller and type: a Warning is no victim of Normal ones
	eventRefill      = 5 * time.Minute
)

// eventResult is what became of a recorded event.
type eventResult string

const (
	eventAccepted eventResult = "accepted"
	eventCounted  eventResult = "counted" // counted in an identical series
	eventMerged   eventResult = "merged"  // counted in a series with another note, so that its own is dropped
	eventLimited  eventResult = "limited"
	eventOverflow eventResult = "overflow"
)

// sameEvent identifies a series. The note is not part of it, because the server does
// not allow its change.
type sameEvent struct {
	namespace, controller, kind, reason, action string
	regarding, related                          corev1.ObjectReference
}

// series is an Event, and how often it was recorded.
type series struct {
	event   *eventsv1.Event
	count   int32
	last    time.Time
	queued  bool
	created bool      // exists on the server
	tries   int       // to create it
	sent    int32     // count on the server
	sentAt  time.Time // time of that
}

// eventBook decides what to send. It has no lock and no clock.
type eventBook struct {
	open    map[sameEvent]*series
	order   []*series // the open series, oldest first
	waiting []*series // to be sent
	limits  map[sameEvent]*allowance
	limited []*allowance // oldest first
	named   int64        // nanoseconds of the last name
}

// allowance is how many events of one object and type may be sent.
type allowance struct {
	of     sameEvent
	left   float64
	since  time.Time
	logged bool // that one was dropped
}

func newEventBook() eventBook {
	return eventBook{open: map[sameEvent]*series{}, limits: map[sameEvent]*allowance{}}
}

func keyOf(e *eventsv1.Event) sameEvent {
	key := sameEvent{e.Namespace, e.ReportingController, e.Type, e.Reason, e.Action, e.Regarding, corev1.ObjectReference{}}
	key.regarding.ResourceVersion = "" // a write between two events does not make them different
	if e.Related != nil {
		key.related = *e.Related
		key.related.ResourceVersion = ""
	}
	return key
}

// record records e, which it then owns.
func (b *eventBook) record(e *eventsv1.Event, now time.Time) eventResult {
	key := keyOf(e)
	if s := b.open[key]; s != nil && now.Sub(s.last) < seriesEnds {
		s.count++
		s.last = now
		if s.created && s.sent == 1 {
			b.queue(s) // the second makes it a series; sweep sends later counts
		}
		if e.Note != s.event.Note {
			return eventMerged
		}
		return eventCounted
	}
	if len(b.waiting) >= room(e) {
		return eventOverflow
	}
	a := b.allowanceOf(e, now)
	if a.left < 1 {
		return eventLimited
	}
	a.left--
	b.named = max(b.named+1, now.UnixNano()) // unique, even at the same moment
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

// room returns how many events may wait before e: Warnings have places of their own.
func room(e *eventsv1.Event) int {
	if e.Type == corev1.EventTypeWarning {
		return 2 * maxEventsWaiting
	}
	return maxEventsWaiting
}

// allowanceOf returns the allowance of e's object and type.
func (b *eventBook) allowanceOf(e *eventsv1.Event, now time.Time) *allowance {
	of := sameEvent{controller: e.ReportingController, namespace: e.Namespace, kind: e.Type, regarding: corev1.ObjectReference{
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
	return a
}

// firstDropped reports whether e is the first of its object and type that was dropped,
// until the object has its whole allowance again.
func (b *eventBook) firstDropped(e *eventsv1.Event, now time.Time) bool {
	a := b.allowanceOf(e, now)
	first := !a.logged
	a.logged = true
	return first
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

// next removes and returns the next series to send; nil: none.
func (b *eventBook) next() *series {
	if len(b.waiting) == 0 {
		return nil
	}
	s := b.waiting[0]
	b.waiting = b.waiting[1:]
	s.queued = false
	return s
}

// sweep queues the series whose count is due: those that have ended or are long, or
// all. It drops those that have ended.
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
		full := a.left == eventBurst // also one of which only an overflow was logged
		if full {
			delete(b.limits, a.of)
		}
		return full
	})
}

// finish drops s, and queues its count.
func (b *eventBook) finish(s *series) {
	b.count(s)
	b.forget(s)
}

// forget closes s: the next such event begins another series.
func (b *eventBook) forget(s *series) {
	if key := keyOf(s.event); b.open[key] == s {
		delete(b.open, key)
	}
}

// count queues s if the server has it with an old count.
func (b *eventBook) count(s *series) {
	if s.created && s.count > s.sent {
		b.queue(s)
	}
}
