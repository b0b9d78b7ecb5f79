// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/simulate"
)

// A panic of the server fails the run and names its place: to a client it would be one
// more broken connection.
func TestKit_PanicOfTheServerIsAViolation(t *testing.T) {
	w := &World{record: newRecord(&History{}, time.Now(), 10)}
	tracer{w}.Panicked(simulate.Request{Verb: "list", Path: "/api/v1/pods", Client: "p"}, "index out of range", []byte("goroutine 7:\nread.go:5"))
	found := w.record.mu.violations
	if len(found) != 1 || found[0].Invariant != "server" {
		t.Fatalf("got %v, want one violation of the server", found)
	}
	for _, part := range []string{"the list of /api/v1/pods for p", "index out of range", "read.go:5"} {
		if !strings.Contains(found[0].Text, part) {
			t.Errorf("got %q, want %q in it", found[0].Text, part)
		}
	}
}

// The election's own Lease is renewed at rest; other Leases are ordinary objects.
func TestKit_OnlyTheLeaseOfTheElectionIsNoUnrest(t *testing.T) {
	r := newRecord(&History{Lease: "ns/l"}, time.Now(), 10)
	for key, moves := range map[string]bool{"ns/l": false, "ns/other": true} {
		r.mu.moved = time.Time{}
		r.add(Event{What: Changed, Kind: leases, Name: "updated", Key: key})
		if got := !r.lastMove().IsZero(); got != moves {
			t.Errorf("a change of Lease %s moves: %v, want %v", key, got, moves)
		}
	}
}
