// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

// However many objects have Events, the book is bounded, and series that are evicted
// early are sent with their count.
func TestEventBook_RemembersABoundedNumber(t *testing.T) {
	b := newEventBook()
	now := time.Unix(0, 0)
	var first *series
	told := func(name string) {
		b.record(&eventsv1.Event{Regarding: corev1.ObjectReference{Name: name}, Reason: "Busy"}, now)
	}
	counts := 0
	for i := range 3 * maxEventSeries {
		told(fmt.Sprint("map-", i))
		for s := b.next(); s != nil; s = b.next() {
			if first == nil {
				first = s
			}
			if s == first && s.created {
				counts++
			}
			s.created, s.sent, s.sentAt = true, s.count, now
		}
		if i == 0 {
			for range 4 {
				told("map-0")
			}
			first.sent, b.waiting, first.queued = 2, nil, false // as for later counts
		}
		now = now.Add(time.Millisecond)
	}
	if len(b.open) > maxEventSeries || len(b.order) > maxEventSeries || len(b.limits) > maxEventSeries {
		t.Errorf("remembered: %d series in %d places, and %d allowances; want %d at most", len(b.open), len(b.order), len(b.limits), maxEventSeries)
	}
	if counts != 1 || first.sent != 5 {
		t.Errorf("the first series was sent %d times more, with count %d; want once, with 5", counts, first.sent)
	}
	for range 25 {
		told("loud")
		now = now.Add(seriesEnds)
	}
	b.sweep(now.Add(24*time.Hour), false)
	if len(b.open)+len(b.order)+len(b.limits) > 0 {
		t.Errorf("after a day of rest %d series, %d places, %d allowances are remembered", len(b.open), len(b.order), len(b.limits))
	}
}

func TestEventBook_EventsThatDifferInTheirNoteAreMergedAndCounted(t *testing.T) {
	b := newEventBook()
	record := func(reason, note string) eventResult {
		return b.record(&eventsv1.Event{Regarding: corev1.ObjectReference{Name: "a"}, Reason: reason, Note: note}, time.Unix(0, 0))
	}
	for i, c := range []struct {
		reason, note string
		want         eventResult
	}{
		{"Failed", "one", eventAccepted}, {"Failed", "one", eventCounted}, {"Failed", "two", eventMerged}, {"Gone", "two", eventAccepted},
	} {
		if got := record(c.reason, c.note); got != c.want {
			t.Errorf("event %d, %s %q: %s, want %s", i, c.reason, c.note, got, c.want)
		}
	}
}

func TestEventBook_WarningsHaveTheirOwnBudget_M19(t *testing.T) {
	now := time.Unix(0, 0)
	event := func(object, kind string, n int) *eventsv1.Event {
		return &eventsv1.Event{Regarding: corev1.ObjectReference{Name: object}, Type: kind, Reason: fmt.Sprint("Reason", n)}
	}
	b := newEventBook()
	logged := 0
	for n := range 40 {
		if result := b.record(event("a", corev1.EventTypeNormal, n), now); result == eventLimited && b.firstDropped(event("a", corev1.EventTypeNormal, n), now) {
			logged++
		}
	}
	if logged != 1 {
		t.Errorf("of the dropped events of one object %d are logged, want the first", logged)
	}
	if got := b.record(event("a", corev1.EventTypeWarning, 0), now); got != eventAccepted {
		t.Errorf("a Warning after 40 other events: %s, want accepted", got)
	}
	b = newEventBook()
	for n := range 2 * maxEventsWaiting {
		b.record(event(fmt.Sprint("map-", n), corev1.EventTypeNormal, 0), now)
	}
	if got := b.record(event("a", corev1.EventTypeWarning, 0), now); got != eventAccepted {
		t.Errorf("a Warning while %d others wait: %s, want accepted", len(b.waiting), got)
	}
	for n := range 3 * maxEventsWaiting {
		b.record(event(fmt.Sprint("map-", n), corev1.EventTypeWarning, 0), now)
	}
	if len(b.waiting) != 2*maxEventsWaiting {
		t.Errorf("%d events wait, want a bound of %d", len(b.waiting), 2*maxEventsWaiting)
	}
}
