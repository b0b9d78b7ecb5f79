// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package writegate

import (
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
)

// Moment is one reading of two clocks. The monotonic clock never jumps, but stops while
// the machine sleeps; the wall clock does not stop, but can be set.
type Moment struct {
	running time.Time // its monotonic reading
	wall    time.Time
}

// since returns the time since earlier, by the clock that shows more.
func (m Moment) since(earlier Moment) time.Duration {
	return max(m.running.Sub(earlier.running), m.wall.Round(0).Sub(earlier.wall.Round(0)))
}

// term is what this process knows about the lease that it holds. The zero term means
// that it does not hold it.
type term struct {
	held bool
	sent Moment        // when the last successful renewal was sent
	span time.Duration // how long it is trusted from then on
	why  string        // why it is not held
}

// renewed returns the term after a successful renewal that was sent at sent.
func renewed(sent Moment, span time.Duration) term {
	return term{held: true, sent: sent, span: span}
}

// lost returns the term once the lease is known not to be held.
func lost(why string) term { return term{why: why} }

// mayWrite returns how long a write that begins at now may take, or an error if none
// may begin.
func (t term) mayWrite(now Moment) (time.Duration, error) {
	if !t.held {
		return 0, fmt.Errorf("%w: %s", reconcile.ErrNotLeading, t.why)
	}
	age := now.since(t.sent)
	if age >= t.span {
		return 0, fmt.Errorf("%w: its lease was last renewed %v ago and is valid for %v",
			reconcile.ErrNotLeading, age.Round(time.Millisecond), t.span)
	}
	return t.span - age, nil
}
