// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"slices"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/base"
)

func TestNag_LogsAtAFallingRate(t *testing.T) {
	var n nag
	start := time.Unix(0, 0)
	var logged []time.Duration
	for at := time.Duration(0); at < 24*time.Hour; at += time.Minute {
		if n.due(start.Add(at)) {
			logged = append(logged, at)
		}
	}
	want := []time.Duration{0, 5 * time.Minute, 20 * time.Minute, 65 * time.Minute, 200 * time.Minute, 605 * time.Minute}
	if !slices.Equal(logged, want) {
		t.Errorf("a trouble of a day is logged after %v, want %v", logged, want)
	}
	if later := start.Add(24*time.Hour + 100*time.Hour); !n.due(later) || n.due(later.Add(firstNag-1)) || !n.due(later.Add(firstNag)) {
		t.Error("trouble that comes again after days is not logged as a new one")
	}
}

// A role that is missing in thousands of namespaces is no reason for thousands of
// reminders.
func TestNags_RemindersArePerKind(t *testing.T) {
	const all = 5000
	var n Nags
	scopes := make([]nagged, all)
	begun := time.Unix(0, 0)
	var lines []time.Duration
	most := 0
	for at := time.Duration(0); at < 24*time.Hour; at += 5 * time.Minute {
		for i := range scopes {
			if logged, of := n.trouble(&scopes[i], base.StateForbidden, begun.Add(at)); logged {
				lines, most = append(lines, at), max(most, of)
			}
		}
	}
	want := []time.Duration{0, 0, 0, 0, 0, 5 * time.Minute, 20 * time.Minute, 65 * time.Minute, 200 * time.Minute, 605 * time.Minute}
	if !slices.Equal(lines, want) || most != all {
		t.Errorf("%d scopes complain at %v, of %d at most; want at %v and of all", all, lines, most, want)
	}
	// A scope whose trouble begins later is named.
	var late nagged
	if logged, of := n.trouble(&late, base.StateForbidden, begun.Add(24*time.Hour)); !logged || of != all+1 {
		t.Errorf("another scope: logged %t, of %d; want it named beside the others", logged, of)
	}
	again := 0
	for i := range scopes {
		if logged, left := n.over(&scopes[i]); logged {
			again++
		} else if left != all-i {
			t.Fatalf("%d scopes are left, want %d", left, all-i)
		}
	}
	if logged, left := n.over(&late); !logged || left != 0 || again < namedScopes || again > namedScopes+5 {
		t.Errorf("%d scopes are up to date again with a line, the last: %t, %d left; want those that complained, and the last", again, logged, left)
	}
	if logged, _ := n.over(&late); logged {
		t.Error("a scope that was not in trouble is up to date again")
	}
}
