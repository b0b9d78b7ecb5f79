// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate"
)

// record takes down what happens in a run.
type record struct {
	start   time.Time
	history *History
	most    int           // events that a run may have
	full    chan struct{} // closed when there are that many
	mu      struct {
		sync.Mutex
		events     []Event
		violations []Violation
		moved      time.Time // when something last moved
		asked      int       // requests in flight, without watches
		numbers    numbers
		mirror     mirror
		ofUser     map[string]bool // UIDs of objects that the user has written
		kept       uint64          // the lowest version that Rewind may restore
		// So many of the events have been looked at by claim and by describe.
		claimed, described int
		drifts             bool // there is a program of RunMain
	}
}

// newRecord returns the record of a run that begins at start, for h. It is full with most
// events.
func newRecord(h *History, start time.Time, most int) *record {
	r := &record{start: start, history: h, most: most, full: make(chan struct{})}
	r.mu.numbers.open, r.mu.mirror, r.mu.ofUser = map[int]int{}, newMirror(), map[string]bool{}
	return r
}

func (r *record) add(e Event) {
	now := time.Now()
	e.At = now.Sub(r.start)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.mirror.take(e, len(r.mu.events))
	r.mu.events = append(r.mu.events, e)
	if len(r.mu.events) == r.most {
		close(r.full)
	}
	if e.What == Changed && e.Name == "deleted" && r.mu.ofUser[e.UID] {
		r.mu.kept = max(r.mu.kept, e.Version)
	}
	if (e.moves() || r.failsInLocked(e)) && !r.history.renews(e) {
		r.mu.moved = now
	}
}

// moves reports whether e is movement, so that the run is not at rest.
func (e Event) moves() bool {
	switch e.What {
	case Stored:
		return e.Key != ""
	case Delivered, Enqueued, Canceled, Taken, Begun, Ended, Changed, Fault, Over, Started, Crashed, Exited, Healed:
		return true
	}
	return false
}

// share records the controllers of a process, if replicas share objects.
func (r *record) share(of manager.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.history.Sharing != nil {
		r.history.Sharing.add(of)
	}
}

func (r *record) fail(invariant, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.violations = append(r.mu.violations, Violation{invariant, text, len(r.mu.events) - 1})
}

func (r *record) isFull() bool {
	select {
	case <-r.full:
		return true
	default:
		return false
	}
}

// repeated describes what most of the events are: the requests, and the reconciles with
// their last outcomes.
func (r *record) repeated() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return repeated(r.mu.events)
}

func (r *record) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.mu.violations) > 0
}

// sinceMove returns how long nothing has moved; 0: a request is in flight.
func (r *record) sinceMove() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.asked > 0 {
		return 0
	}
	return time.Since(r.mu.moved)
}

func (r *record) lastMove() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.moved
}

// claim attributes the changes of this instant to a request of who.
func (r *record) claim(who string, request int) {
	at := time.Since(r.start)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.mu.events) - 1; i >= r.mu.claimed && r.mu.events[i].At == at; i-- {
		if e := &r.mu.events[i]; e.What == Changed && e.Who == "" {
			e.Who, e.Request = who, request
			if who == "user" {
				r.mu.ofUser[e.UID] = true
				r.mu.kept = max(r.mu.kept, e.Version)
			}
		}
	}
	r.mu.claimed = len(r.mu.events)
}

// describe adds to the updates of this instant which fields have changed.
func (r *record) describe(changed func(Event) string) {
	at := time.Since(r.start)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.mu.events) - 1; i >= r.mu.described && r.mu.events[i].At == at; i-- {
		if e := &r.mu.events[i]; e.What == Changed && e.Text == "" {
			e.Text = changed(*e)
		}
	}
	r.mu.described = len(r.mu.events)
}

// kept returns the lowest version to which the server can go back without undoing
// changes of the user, or their consequences.
func (r *record) kept() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(r.mu.kept)
}

// behind describes where a store of a process differs from the server now; empty:
// nowhere.
func (r *record) behind(who string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.mu.mirror.differences(func(other string) bool { return other == who }) {
		return d.Text
	}
	return r.mu.mirror.laggingStore(who)
}

// failsInLocked reports whether e is the failure of a request of a program of RunMain,
// which it will repeat. What finds nothing, or creates what exists, may do so forever.
func (r *record) failsInLocked(e Event) bool {
	return r.mu.drifts && e.What == Answered && e.Name != "watch" && programOf(e.Who) != "" &&
		(e.Code == 0 || e.Code >= 400 && e.Code != http.StatusNotFound && (e.Code != http.StatusConflict || e.Name != "create"))
}

// drift records that the run has a program of RunMain.
func (r *record) drift() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.drifts = true
}

func (r *record) drifts() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.drifts
}

// rested reports whether the run has come to rest, and does not end yet.
func (r *record) rested() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range slices.Backward(r.mu.events) {
		switch e.What {
		case Rest:
			return true
		case Healed, Stopping:
			return false
		}
	}
	return false
}

// ended returns the error with which the last process of a program ended; empty: none.
func (r *record) ended(program string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range slices.Backward(r.mu.events) {
		if e.What == Exited && programOf(e.Who) == program {
			return e.Text
		}
	}
	return ""
}

// holder returns the process that the Lease of the election names by its last change;
// empty: none.
func (r *record) holder() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range slices.Backward(r.mu.events) {
		if e.What == Changed && r.history.renews(e) {
			if e.Holder == "" || e.Name == "deleted" {
				return ""
			}
			return e.Who
		}
	}
	return ""
}

// close moves the events and violations into the history.
func (r *record) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Events = slices.Clip(r.mu.events)
	r.history.Violations = append(r.history.Violations, r.mu.violations...)
}

// numbers are the numbers of recorded requests, from 1 in the order of arrival. The
// server's own numbers include reads by checks, whose number is not deterministic.
type numbers struct {
	open map[int]int // by the server's number
	last int
}

func (r *record) numbered(asked simulate.Request) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := &r.mu.numbers
	if _, ok := n.open[asked.Number]; !ok {
		n.last++
		n.open[asked.Number] = n.last
	}
	return n.open[asked.Number]
}

// nextNumber returns the number of a call of a Service.
func (r *record) nextNumber() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.numbers.last++
	return r.mu.numbers.last
}

func (r *record) forget(asked simulate.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mu.numbers.open, asked.Number)
}

// under adds n to the requests in flight.
func (r *record) under(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.asked += n
}
