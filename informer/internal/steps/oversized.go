// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"github.com/flyball-dev/flyball/informer/state"
)

// mostHalvings bounds how often the pages of a list are halved.
const mostHalvings = 9

// noRoom repeats a list once the memory budget admits it, in pages: their first
// shows how many objects there are. The wait sets the state.
func noRoom(p Progress) Decision {
	p.Phase, p.Whole = PhaseList, false
	return Decision{Next: p}
}

// oversized retries slowly, since the same bytes will probably come again. A
// list continues in smaller pages. A watch would meet the frame as long as the
// server keeps it, so from the second time on a list skips it.
func oversized(p Progress, o Outcome) Decision {
	p.oversized++
	d := Decision{Next: p, pace: paceSlow, State: state.Stale}
	switch {
	case p.Phase == PhaseWatch && p.oversized > 1:
		d = relist(p, o, RelistOversized, false)
		d.pace, d.State = paceSlow, state.Stale
	case p.Phase == PhaseStream:
		d = afterStream(p, o)
		d.pace, d.State = paceSlow, state.Stale
	case p.Phase == PhaseList:
		d.Next.Halvings = min(p.Halvings+1, mostHalvings)
	}
	return d
}
