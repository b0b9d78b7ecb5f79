// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/simulate"
)

type record struct {
	full chan struct{} // closed when there are as many events as a run may have
	mu   struct {
		sync.Mutex
		events     []Event
		violations []Violation
		moved      time.Time // when something last moved
		asked      int       // requests in flight, without watches
		numbers    numbers
		healed     bool
		met        map[string]int // counts of triggers, by operation
		mirror     mirror
		ofUser     map[string]bool // UIDs of objects that the user has written
		kept       uint64          // the lowest version that Rewind may restore
		misled     bool            // something was hidden that no process detects by itself
		foreign    map[storedKey]foreign
		drifts     bool // there is a program of RunMain
	}
}

func (r *record) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full, r.mu.met = make(chan struct{}), map[string]int{}
	r.mu.numbers.open = map[int]int{}
	r.mu.mirror, r.mu.ofUser, r.mu.foreign = newMirror(), map[string]bool{}, map[storedKey]foreign{}
}

func (w *World) note(e Event) {
	now := time.Now()
	e.At = now.Sub(w.start)
	r := &w.record
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.mirror.take(e, len(r.mu.events))
	r.mu.events = append(r.mu.events, e)
	if len(r.mu.events) == w.cfg.MaxEvents {
		close(r.full)
	}
	if e.What == Changed && e.Name == "deleted" && r.mu.ofUser[e.UID] {
		r.mu.kept = max(r.mu.kept, e.Version)
	}
	if (e.moves() || r.failsInLocked(e)) && !w.history.renews(e) {
		r.mu.moved = now
	}
}

// moves reports whether e is movement, so that the run is not at rest.
func (e Event) moves() bool {
	switch e.What {
	case Stored:
		return e.Key != ""
	case Told, Enqueued, Canceled, Taken, Begun, Ended, Changed, Fault, Over, Started, Crashed, Exited, Healed:
		return true
	}
	return false
}

func (r *record) fail(invariant, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.violations = append(r.mu.violations, Violation{invariant, text, len(r.mu.events) - 1})
}

func (w *World) neverFailed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.neverWas
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

// heal reports whether this is the first call.
func (r *record) heal() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := !r.mu.healed
	r.mu.healed = true
	return first
}

func (r *record) healed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.healed
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

// claim attributes the changes of this instant to who.
func (w *World) claim(who string) {
	at := time.Since(w.start)
	r := &w.record
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.mu.events) - 1; i >= 0 && r.mu.events[i].At == at; i-- {
		if e := &r.mu.events[i]; e.What == Changed && e.Who == "" {
			e.Who = who
			if who == "user" {
				r.mu.ofUser[e.UID] = true
				r.mu.kept = max(r.mu.kept, e.Version)
			}
		}
	}
}

// undoable returns how many of the last n revisions can be undone without undoing
// changes of the user, or their consequences.
func (w *World) undoable(n int64) int {
	now := w.server.Revision()
	r := &w.record
	r.mu.Lock()
	defer r.mu.Unlock()
	return int(min(n, now-int64(r.mu.kept)))
}

// mislead records that from now on a process may hold stale state that it cannot
// detect.
func (r *record) mislead() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.misled = true
}

func (r *record) misled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.misled
}

func (r *record) expectForeign(at storedKey, wrote foreign) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.foreign[at] = wrote
}

func (r *record) foreignAt(at storedKey) (wrote foreign, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wrote, known = r.mu.foreign[at]
	return wrote, known
}

// forgetForeign forgets the foreign annotations of the objects, or of all if there are
// none.
func (r *record) forgetForeign(of ...storedKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(of) == 0 {
		clear(r.mu.foreign)
	}
	for _, at := range of {
		delete(r.mu.foreign, at)
	}
}

// failsInLocked reports whether e is the failure of a request of a program of RunMain,
// which it will repeat. What finds nothing, or creates what exists, may do so for ever.
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

// holder returns the process that the Lease of h names by its last change; empty: none.
func (r *record) holder(h *History) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range slices.Backward(r.mu.events) {
		if e.What == Changed && h.renews(e) {
			if e.Holder == "" || e.Name == "deleted" {
				return ""
			}
			return e.Who
		}
	}
	return ""
}

func (w *World) close() {
	r := &w.record
	r.mu.Lock()
	defer r.mu.Unlock()
	w.history.Events = slices.Clip(r.mu.events)
	w.history.Violations = append(w.history.Violations, r.mu.violations...)
}

type tracer struct{ w *World }

// Asked records a request, and fires faults before a write.
func (t tracer) Asked(r simulate.Request) {
	if looksOn(r) {
		return
	}
	t.w.note(Event{
		What: Asked, Who: r.Client, Name: r.Verb, Kind: kindText(r), Key: keyText(r.Key.Namespace, r.Key.Name),
		Request: t.w.record.numbered(r), Text: pathText(r),
	})
	if r.Verb != "watch" {
		t.w.record.under(1)
	}
	if r.Writes() {
		t.w.met(r, arriving)
	}
}

// Stored records a revision.
func (t tracer) Stored(c simulate.Change) {
	e := Event{What: Changed, Kind: c.Kind.String(), Key: keyText(c.Key.Namespace, c.Key.Name), UID: string(c.UID), Version: uint64(c.Version), Count: int(c.Generation), Name: "updated", Holder: c.Holder, Quiet: c.Undone}
	switch {
	case c.Deleted:
		e.Name, e.Version = "deleted", uint64(c.Revision)
	case c.Created:
		e.Name = "created"
	}
	t.w.note(e)
	t.w.slowly(c)
	select {
	case t.w.changed <- struct{}{}:
	default: // a token is there already
	}
}

// Answering attributes what was stored, and fires faults before the answer.
func (t tracer) Answering(r simulate.Request) {
	t.w.claim(r.Client)
	t.erased(r)
	t.w.met(r, answering)
}

// Answered records the end of a request.
func (t tracer) Answered(r simulate.Request, code int) {
	if looksOn(r) {
		return
	}
	if r.Writes() {
		t.w.claim(r.Client)
	}
	if r.Verb == "watch" {
		t.w.alone(r)
	}
	t.w.note(Event{What: Answered, Who: r.Client, Name: r.Verb, Kind: kindText(r), Key: keyText(r.Key.Namespace, r.Key.Name), Request: t.w.record.numbered(r), Code: code})
	t.w.record.forget(r)
	if r.Verb != "watch" {
		t.w.record.under(-1)
	}
}

// Panicked fails the run: to a client it would only be a broken connection.
func (t tracer) Panicked(r simulate.Request, value any, stack []byte) {
	t.w.record.fail("server", fmt.Sprintf("the simulated server panicked at the %s of %s for %s, which is a fault of package simulate: %v\n%s", r.Verb, r.Path, r.Client, value, stack))
}

// Sending fires faults before an event, and records it.
func (t tracer) Sending(r simulate.Request, e simulate.Event) {
	t.w.alone(r)
	if e.Type != "BOOKMARK" {
		t.w.met(r, sending)
	}
	version, _ := strconv.ParseUint(e.ResourceVersion, 10, 64) // an error has none
	t.w.note(Event{What: Sent, Who: r.Client, Name: e.Type, Kind: kindText(r), Key: keyText(e.Key.Namespace, e.Key.Name), Version: version, Request: t.w.record.numbered(r)})
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

// alone waits for an instant at which nothing else happens. Watches need it: one change
// is sent to several, and one fault ends several.
func (w *World) alone(r simulate.Request) {
	name := fmt.Sprintf("watch %d", w.record.numbered(r))
	w.instants.Rest(w.serving, name, w.draws.UpTo(name, stepping))
}
