// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"testing"
	"time"
)

// For an hour watches end cleanly soon after they open: how many are opened,
// and how long there is none.
func TestPhase_ShortWatchesAreOpenedAgainAtOnce_A24(t *testing.T) {
	for name, c := range map[string]struct {
		o     Outcome
		pause time.Duration // the longest
		most  int           // watches in the hour
	}{
		"five seconds, with events":            {Outcome{Lived: 5 * time.Second, Spoke: true, Moved: true}, 0, 720},
		"five seconds, with an old bookmark":   {Outcome{Lived: 5 * time.Second, Spoke: true}, 0, 720},
		"five seconds, with nothing":           {Outcome{Lived: 5 * time.Second}, 0, 720},
		"one second, with events":              {Outcome{Lived: time.Second, Spoke: true, Moved: true}, 0, 3600},
		"two seconds, with an old bookmark":    {Outcome{Lived: 2 * time.Second, Spoke: true}, 4 * time.Second, 910},
		"no time at all, with events":          {Outcome{Spoke: true, Moved: true}, time.Second, 3620},
		"no time at all, with an old bookmark": {Outcome{Spoke: true}, retryBackoff.most, 600},
		"no time at all, with nothing":         {Outcome{}, retryBackoff.most, 600},
	} {
		now := time.Unix(1e9, 0)
		end, p, n := now.Add(time.Hour), Progress{Phase: PhaseWatch, Last: "1"}, 0
		var longest time.Duration
		for now.Before(end) {
			o := c.o
			o.Result, o.Early, o.Now = ResultEnded, true, now.Add(o.Lived)
			if p.Phase != PhaseWatch {
				o = Outcome{Result: ResultCompleted, Version: "1", Now: now}
			} else {
				n++
			}
			d := Next(p, o)
			wait := d.Pause(0)
			longest = max(longest, wait)
			now, p = o.Now.Add(wait), d.Next
		}
		if longest > c.pause || n > c.most {
			t.Errorf("watches of %s: %d in an hour, the longest pause %s; want %d and %s at most", name, n, longest, c.most, c.pause)
		}
	}
}
