// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"strings"
	"testing"
	"time"
)

func TestInvariants_FindAnObjectMadeAgainAndAgain_V28(t *testing.T) {
	changed := func(who, name, key string, at time.Duration) Event {
		return Event{What: Changed, Who: who, Kind: "Secret", Name: name, Key: key, At: at}
	}
	for _, row := range []struct {
		what    string
		between func(n int, at time.Duration) []Event // after each creation, before the next
		found   bool
	}{
		{"deleted by the program", func(_ int, at time.Duration) []Event {
			return []Event{changed("p", "deleted", "k", at+time.Second)}
		}, true},
		{"deleted by another replica, and its status changes", func(_ int, at time.Duration) []Event {
			return []Event{changed("cluster", "updated", "k", at), changed("q", "deleted", "k", at+time.Second)}
		}, true},
		{"deleted by the garbage collector", func(_ int, at time.Duration) []Event {
			return []Event{changed("cluster", "deleted", "k", at+time.Second)}
		}, false},
		{"deleted by the program for the user", func(_ int, at time.Duration) []Event {
			return []Event{changed("user", "updated", "site", at), changed("p", "deleted", "k", at+time.Second), changed("user", "updated", "site", at+2*time.Second)}
		}, false},
		{"replaced each hour", func(_ int, at time.Duration) []Event {
			return []Event{changed("p", "deleted", "k", at+time.Hour)}
		}, false},
		{"twice", func(n int, at time.Duration) []Event {
			if n > 2 {
				return nil
			}
			return []Event{changed("p", "deleted", "k", at+time.Second)}
		}, false},
	} {
		events := []Event{{What: Started, Who: "p"}, {What: Started, Who: "q"}}
		for n := range 7 {
			at := time.Duration(n) * 2 * time.Hour
			events = append(append(events, changed("p", "created", "k", at)), row.between(n+1, at)...)
		}
		h := &History{Events: events}
		h.checkInvariants()
		var found []Violation
		for _, v := range h.Violations {
			if v.Invariant == "V28" {
				found = append(found, v)
			}
		}
		if row.found != (len(found) == 1 && strings.Contains(found[0].Text, "makes Secret k for the 4th time")) || !row.found && len(found) > 0 {
			t.Errorf("%s: found %v, want a violation: %t", row.what, found, row.found)
		}
	}
}
