// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import "time"

const (
	// reopenBurst is the most points a scope has for reopening cleanly ended
	// watches at once. Every reopenEvery brings one.
	reopenBurst = 10
	reopenEvery = time.Second
	// Cost of reopening a watch that brought something new, and of another:
	// watches of one second and of four can be reopened at once forever.
	movedCost, unmovedCost = 1, 4
)

// reopens is a token bucket that bounds how often a watch is reopened without
// backoff. Its zero value is full.
type reopens struct {
	spent int
	at    time.Time // since when points return
}

// take pays for reopening a watch at now. wait is the time until the points are
// available.
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

// lasted reports whether the ended watch lived long enough to expect the next
// one to do so too. Servers and proxies that limit watches end them cleanly.
func (o Outcome) lasted() bool {
	return o.Lived >= Brief || o.Result == ResultEnded && o.Lived >= lively
}

// cleanEnd handles a clean end of a watch. A watch that was useful or lived for
// a while is reopened at once, unless too often.
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
	// A schema change ends every watch of its kind once.
	if p.briefs++; p.briefs == 1 {
		return Decision{Next: p}
	}
	return retry(p, o)
}
