// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"testing"
	"time"
)

// Watches that end cleanly soon after they were opened, one after the other for
// an hour: how often they are opened, and how long there is none.
func TestPhase_ShortWatchesAreOpenedAgainAtOnce_A24(t *testing.T) {
	for name, c := range map[string]struct {
		o     outcome
		pause time.Duration // the longest
		most  int           // watches in the hour
	}{
		"five seconds, with events":            {outcome{lived: 5 * time.Second, spoke: true, moved: true}, 0, 720},
		"five seconds, with an old bookmark":   {outcome{lived: 5 * time.Second, spoke: true}, 0, 720},
		"five seconds, with nothing":           {outcome{lived: 5 * time.Second}, 0, 720},
		"one second, with events":              {outcome{lived: time.Second, spoke: true, moved: true}, 0, 3600},
		"two seconds, with an old bookmark":    {outcome{lived: 2 * time.Second, spoke: true}, 4 * time.Second, 910},
		"no time at all, with events":          {outcome{spoke: true, moved: true}, time.Second, 3620},
		"no time at all, with an old bookmark": {outcome{spoke: true}, retryBackoff.most, 600},
		"no time at all, with nothing":         {outcome{}, retryBackoff.most, 600},
	} {
		now := time.Unix(1e9, 0)
		end, p, n := now.Add(time.Hour), progress{phase: phaseWatch, last: "1"}, 0
		var longest time.Duration
		for now.Before(end) {
			o := c.o
			o.result, o.early, o.now = resultEnded, true, now.Add(o.lived)
			if p.phase != phaseWatch {
				o = outcome{result: resultCompleted, version: "1", now: now}
			} else {
				n++
			}
			d := next(p, o)
			wait := d.pause(0)
			longest = max(longest, wait)
			now, p = o.now.Add(wait), d.next
		}
		if longest > c.pause || n > c.most {
			t.Errorf("watches of %s: %d in an hour, the longest pause %s; want %d and %s at most", name, n, longest, c.most, c.pause)
		}
	}
}
