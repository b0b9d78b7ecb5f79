// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
)

// moment is one reading of two clocks. One only runs, but stands still while the
// machine sleeps; the other follows the world, but somebody may set it.
type moment struct {
	running time.Time // its monotonic reading
	wall    time.Time
}

// since is how long ago earlier was, by the clock that says more.
func (m moment) since(earlier moment) time.Duration {
	return max(m.running.Sub(earlier.running), m.wall.Round(0).Sub(earlier.wall.Round(0)))
}

// term is what this process knows of the lease that it holds. The zero term is
// of one that it does not hold.
type term struct {
	held bool
	sent moment        // when the last renewal that succeeded was sent
	span time.Duration // for which it may be trusted from then on
	why  string        // it is not held
}

// renewed is the term after a renewal that was sent at sent has succeeded.
func renewed(sent moment, span time.Duration) term {
	return term{held: true, sent: sent, span: span}
}

// lost is the term after it was learnt that the lease is not held.
func lost(why string) term { return term{why: why} }

// mayWrite says how long a write that begins at now may take, or, by an error,
// why none may begin.
func (t term) mayWrite(now moment) (time.Duration, error) {
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
