// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import "time"

const (
	// reopenBurst is how many points a scope has at most for watches that are
	// opened again at once after a clean end. Each reopenEvery brings one.
	reopenBurst = 10
	reopenEvery = time.Second
	// A watch that has brought something new costs one point, another costs four:
	// watches of one second and of four are opened again at once for ever.
	movedCost, unmovedCost = 1, 4
)

// reopens is a token bucket: it bounds how often a watch is opened again
// without backoff. Its zero value is full.
type reopens struct {
	spent int
	at    time.Time // since when points come back
}

// take pays for a watch that is opened again at now. wait is how long it takes
// until the points are there.
func (r reopens) take(cost int, now time.Time) (after reopens, wait time.Duration) {
	if back := int(min(now.Sub(r.at)/reopenEvery, reopenBurst)); back >= r.spent {
		r.spent, r.at = 0, now
	} else if back > 0 {
		r.spent -= back
		r.at = r.at.Add(time.Duration(back) * reopenEvery)
	}
	r.spent += cost
	if missing := r.spent - reopenBurst; missing > 0 {
		wait = r.at.Add(time.Duration(missing) * reopenEvery).Sub(now)
	}
	return r, wait
}

// lasted says whether the watch that o ended lived so long that the next one may
// be expected to. Servers and proxies that bound the life of watches end them
// cleanly.
func (o Outcome) lasted() bool {
	return o.Lived >= Brief || o.Result == ResultEnded && o.Lived >= lively
}

// cleanEnd goes on after a clean end of a watch. What was of use, or has lived for
// a while, is opened again at once, as long as that is not too often.
func cleanEnd(p Progress, o Outcome) Decision {
	p.doubt = p.doubt || o.Early
	if o.Lived >= Brief {
		p.briefs = 0
		return Decision{Next: p}
	}
	if o.Moved || o.lasted() {
		cost := unmovedCost
		if o.Moved {
			cost = movedCost
		}
		d := Decision{pace: paceReopen}
		p.briefs = 0
		p.reopens, d.within = p.reopens.take(cost, o.Now)
		d.Next = p
		return d
	}
	// A changed schema ends every watch of its kind once.
	if p.briefs++; p.briefs == 1 {
		return Decision{Next: p}
	}
	return retry(p, o)
}
