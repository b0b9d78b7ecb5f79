// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"time"

	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

const (
	lineWidth  = 1000
	lineHeight = 32
	leastBar   = 4 // its width
)

// timeline draws runs, the newest first, as bars from the begin of the oldest until now; empty: there
// are none.
func timeline(runs []inspect.Run, now time.Time) markup {
	if len(runs) == 0 {
		return ""
	}
	from := runs[len(runs)-1].Began
	whole := max(now.Sub(from), time.Millisecond)
	x := func(t time.Time) float64 { return float64(t.Sub(from)) / float64(whole) * lineWidth }
	var w writer
	w.put(`<svg class="line" viewBox="0 0 %d %d" preserveAspectRatio="none" role="group" aria-label="Reconciles in time">`, lineWidth, lineHeight)
	w.put(`<path d="M0 30.5H%d"/>`, lineWidth)
	for i := range runs {
		r := &runs[len(runs)-1-i]
		at := min(x(r.Began), lineWidth-leastBar)
		width := max(leastBar, r.TookSeconds/whole.Seconds()*lineWidth)
		w.put(`<a href="#run-%s" aria-label="%s, %s ago"><rect class="%s" x="%.1f" y="8" width="%.1f" height="22"/></a>`,
			r.ID, r.Outcome, duration(now.Sub(r.Began).Seconds()), outcomeClass(r.Outcome), at, width)
	}
	w.put(`</svg><p class="ends soft"><span>%s ago</span><span>now</span></p>`, duration(whole.Seconds()))
	return markup(w.String())
}
