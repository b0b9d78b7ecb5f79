// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import "time"

const (
	// longCall is what a call of a handler may take before the log names it, and
	// again at each doubling.
	longCall = time.Minute
	// longestReported call; a handler that has not returned by then never does.
	longestReported = 1000 * time.Hour
	// longBacklog of an every-event handler is logged, and each doubling of it. A
	// level-triggered one is bounded by the objects.
	longBacklog = 4096
	// oldBacklog is how long its first event must have waited: a list that is
	// being worked off is no lag.
	oldBacklog = time.Second
	// overAgain is the least time between two logs of a backlog at its bound.
	overAgain = time.Minute
)

// tempo is how a handler keeps up: pure, times are since the listener was made.
type tempo struct {
	calling        bool
	key            Key // of the present call
	began, longest time.Duration
	reported       time.Duration // of the present call; 0: not yet
	backlog        int           // that was logged last; 0: none
	merged         uint64        // updates, when that was logged last
	mergedAt       time.Duration // and when that was
}

func (p *tempo) begin(key Key, now time.Duration) {
	p.calling, p.key, p.began, p.reported = true, key, now, 0
}

func (p *tempo) end(now time.Duration) {
	p.longest = max(p.longest, p.running(now))
	p.calling = false
}

// running is how long the present call has been running; 0: there is none.
func (p *tempo) running(now time.Duration) time.Duration {
	if !p.calling {
		return 0
	}
	return now - p.began
}

// overrun reports whether the present call is to be logged now, and when to look
// again; 0: not before another call has begun.
func (p *tempo) overrun(now time.Duration) (report bool, again time.Duration) {
	if !p.calling {
		return false, 0
	}
	running, limit := p.running(now), max(2*p.reported, longCall)
	if report = running >= limit; report {
		p.reported, limit = limit, 2*limit
	}
	if limit > longestReported {
		return report, 0
	}
	return report, limit - running
}

// behind reports whether a backlog of n whose first event is of age is to be
// logged now.
func (p *tempo) behind(n int, age time.Duration) bool {
	switch {
	case n < longBacklog/2:
		p.backlog = 0
		return false
	case n < max(longBacklog, 2*p.backlog) || age < oldBacklog:
		return false
	}
	p.backlog = n
	return true
}

// over reports whether it is to be logged now that updates merge, so many by
// now: at first, and again once a minute while more do.
func (p *tempo) over(merged uint64, now time.Duration) bool {
	if merged == p.merged || p.merged > 0 && now-p.mergedAt < overAgain {
		return false
	}
	p.merged, p.mergedAt = merged, now
	return true
}

// millis is a time as backlogs keep it.
func millis(t time.Duration) uint32 { return uint32(t.Milliseconds()) }

// ageOf is how long before now at was, in the wrapping time of backlogs.
func ageOf(at uint32, now time.Duration) time.Duration {
	return time.Duration(millis(now)-at) * time.Millisecond
}
