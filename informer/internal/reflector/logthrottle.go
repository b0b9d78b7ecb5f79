// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import "time"

const (
	firstPause   = 5 * time.Minute
	longestPause = 24 * time.Hour
)

// logThrottle limits how often a complaint is logged: the first time, then at growing
// intervals while the trouble lasts or recurs. It has no lock and no clock.
type logThrottle struct {
	next time.Time // earliest time of the next log line
	gap  time.Duration
}

// due reports whether a complaint at now is logged. After twice the interval
// without a complaint, the trouble counts as new.
func (t *logThrottle) due(now time.Time) bool {
	if !t.next.IsZero() && now.Before(t.next) {
		return false
	}
	if t.gap == 0 || now.Sub(t.next) > 2*t.gap {
		t.gap = firstPause
	} else {
		t.gap = min(3*t.gap, longestPause)
	}
	t.next = now.Add(t.gap)
	return true
}
