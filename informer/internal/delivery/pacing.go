// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"time"

	"github.com/flyball-dev/flyball/kube"
)

const (
	// longCall is how long a call may take before it is logged, and again at
	// each doubling.
	longCall = time.Minute
	// longestReported is the longest call logged; a handler that has not
	// returned by then never will.
	longestReported = 1000 * time.Hour
	// longBacklog is the backlog of an EveryEvent handler that is logged, and
	// again at each doubling. Other backlogs are bounded by the objects.
	longBacklog = 4096
	// oldBacklog is how long its first event must have waited: working off a
	// list is not a lag.
	oldBacklog = time.Second
	// overAgain is the least time between two logs of a backlog at its bound.
	overAgain = time.Minute
)

// pacing measures how a handler keeps up. It is pure; times are since the
// listener was made.
type pacing struct {
	calling        bool
	key            kube.Key
	began, longest time.Duration
	reported       time.Duration // of the present call; 0: none
	backlog        int           // last logged; 0: none
	merged         uint64        // merged updates when last logged
	mergedAt       time.Duration // time of that log
}

func (p *pacing) begin(key kube.Key, now time.Duration) {
	p.calling, p.key, p.began, p.reported = true, key, now, 0
}

func (p *pacing) end(now time.Duration) {
	p.longest = max(p.longest, p.running(now))
	p.calling = false
}

// running returns the duration of the present call; 0: none.
func (p *pacing) running(now time.Duration) time.Duration {
	if !p.calling {
		return 0
	}
	return now - p.began
}

// overrun reports whether to log the present call now, and when to check again;
// 0: not during this call.
func (p *pacing) overrun(now time.Duration) (report bool, again time.Duration) {
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

// behind reports whether to log a backlog of n whose first event has that age.
func (p *pacing) behind(n int, age time.Duration) bool {
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

// over reports whether to log that updates merge: the first time, and then at
// most once a minute while more do.
func (p *pacing) over(merged uint64, now time.Duration) bool {
	if merged == p.merged || p.merged > 0 && now-p.mergedAt < overAgain {
		return false
	}
	p.merged, p.mergedAt = merged, now
	return true
}

func millis(t time.Duration) uint32 { return uint32(t.Milliseconds()) }

// ageOf returns the time from at to now, in the wrapping time of backlogs.
func ageOf(at uint32, now time.Duration) time.Duration {
	return time.Duration(millis(now)-at) * time.Millisecond
}
