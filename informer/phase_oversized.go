// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

// mostHalvings of the pages of a list.
const mostHalvings = 9

// oversized tries again slowly: the same bytes are sent again, most likely. A
// list goes on in smaller pages. A watch finds the frame in the history for as
// long as the server keeps it, so from the second time on a list passes it by.
func oversized(p progress, o outcome) decision {
	p.oversized++
	d := decision{next: p, pace: paceSlow, state: StateStale}
	switch {
	case p.phase == phaseWatch && p.oversized > 1:
		d = relist(p, o, relistOversized, false)
		d.pace, d.state = paceSlow, StateStale
	case p.phase == phaseStream:
		d = afterStream(p, o)
		d.pace, d.state = paceSlow, StateStale
	case p.phase == phaseList:
		d.next.halvings = min(p.halvings+1, mostHalvings)
	}
	return d
}
