// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"github.com/flyball-dev/flyball/informer/internal/base"
)

// mostHalvings of the pages of a list.
const mostHalvings = 9

// oversized tries again slowly: the same bytes are sent again, most likely. A
// list goes on in smaller pages. A watch finds the frame in the history for as
// long as the server keeps it, so from the second time on a list passes it by.
func oversized(p Progress, o Outcome) Decision {
	p.oversized++
	d := Decision{Next: p, pace: paceSlow, State: base.StateStale}
	switch {
	case p.Phase == PhaseWatch && p.oversized > 1:
		d = relist(p, o, RelistOversized, false)
		d.pace, d.State = paceSlow, base.StateStale
	case p.Phase == PhaseStream:
		d = afterStream(p, o)
		d.pace, d.State = paceSlow, base.StateStale
	case p.Phase == PhaseList:
		d.Next.Halvings = min(p.Halvings+1, mostHalvings)
	}
	return d
}
