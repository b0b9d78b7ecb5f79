// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"strconv"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/aim"
)

// tracer records what the server does, and fires the faults that are triggered by it.
type tracer struct{ w *World }

// Asked records a request, and fires faults before a write.
func (t tracer) Asked(r simulate.Request) {
	if looksOn(r) {
		return
	}
	run, shard := t.w.programs.run(r)
	t.w.record.add(Event{
		What: Asked, Who: r.Client, Name: r.Verb, Kind: kindText(r), Key: aim.KeyText(r.Key),
		Request: t.w.record.numbered(r), Text: pathText(r), Run: run, Shard: shard,
	})
	if r.Verb != "watch" {
		t.w.record.under(1)
	}
	if r.Writes() {
		t.w.faults.met(r, arriving)
	}
}

// numbered returns the number of a recorded request; 0: it is not recorded.
func (t tracer) numbered(r simulate.Request) int {
	if looksOn(r) {
		return 0
	}
	return t.w.record.numbered(r)
}

// Stored records a revision.
func (t tracer) Stored(c simulate.Change) {
	e := Event{What: Changed, Kind: c.Kind.String(), Key: aim.KeyText(c.Key), UID: string(c.UID), Version: uint64(c.Version), Count: int(c.Generation), Name: "updated", Holder: c.Holder, Quiet: c.Undone}
	switch {
	case c.Deleted:
		e.Name, e.Version = "deleted", uint64(c.Revision)
	case c.Created:
		e.Name = "created"
	}
	t.w.fields.took(c)
	t.w.record.add(e)
	t.w.faults.slow.take(c)
	t.w.checks.wake()
}

// Answering attributes what was stored, and fires faults before the answer.
func (t tracer) Answering(r simulate.Request) {
	t.w.record.claim(r.Client, t.numbered(r))
	t.w.record.describe(t.w.fields.changed)
	t.w.faults.foreign.erased(r)
	t.w.faults.met(r, answering)
}

// Answered records the end of a request.
func (t tracer) Answered(r simulate.Request, code int) {
	if looksOn(r) {
		return
	}
	if r.Writes() {
		t.w.record.claim(r.Client, t.numbered(r))
	}
	if r.Verb == "watch" {
		t.alone(r)
	}
	t.w.record.add(Event{What: Answered, Who: r.Client, Name: r.Verb, Kind: kindText(r), Key: aim.KeyText(r.Key), Request: t.w.record.numbered(r), Code: code})
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
	t.alone(r)
	if e.Type != "BOOKMARK" {
		t.w.faults.met(r, sending)
	}
	version, _ := strconv.ParseUint(e.ResourceVersion, 10, 64) // an error has none
	t.w.record.add(Event{What: Sent, Who: r.Client, Name: e.Type, Kind: kindText(r), Key: aim.KeyText(e.Key), Version: version, Request: t.w.record.numbered(r)})
}

// alone waits for an instant at which nothing else happens. Watches need it: one change
// is sent to several, and one fault ends several.
func (t tracer) alone(r simulate.Request) {
	name, c := fmt.Sprintf("watch %d", t.w.record.numbered(r)), t.w.clock
	c.instants.Rest(c.serving, name, c.draws.UpTo(name, stepping))
}
