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
func (n *logThrottle) due(now time.Time) bool {
	if !n.next.IsZero() && now.Before(n.next) {
		return false
	}
	if n.gap == 0 || now.Sub(n.next) > 2*n.gap {
		n.gap = firstPause
	} else {
		n.gap = min(3*n.gap, longestPause)
	}
	n.next = now.Add(n.gap)
	return true
}
