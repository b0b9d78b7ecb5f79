// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"slices"
	"testing"
	"time"
)

func TestLogThrottle_LogsAtAFallingRate(t *testing.T) {
	var n logThrottle
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
	if later := start.Add(24*time.Hour + 100*time.Hour); !n.due(later) || n.due(later.Add(firstPause-1)) || !n.due(later.Add(firstPause)) {
		t.Error("trouble that comes again after days is not logged as a new one")
	}
}
