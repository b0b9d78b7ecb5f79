// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

const (
	lineWidth  = 1000
	lineHeight = 46
	leastBar   = 4 // its width
)

// timeline draws runs, the newest first, as bars from the begin of the oldest until now; empty: there
// are none.
func timeline(runs []inspect.Run, now time.Time) template.HTML {
	if len(runs) == 0 {
		return ""
	}
	from := runs[len(runs)-1].Began
	whole := max(now.Sub(from), time.Millisecond)
	x := func(t time.Time) float64 { return float64(t.Sub(from)) / float64(whole) * lineWidth }
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="line" viewBox="0 0 %d %d" role="group" aria-label="Reconciles in time">`, lineWidth, lineHeight)
	fmt.Fprintf(&out, `<path d="M0 30.5H%d"/>`, lineWidth)
	for i := range runs {
		r := &runs[len(runs)-1-i]
		at := min(x(r.Began), lineWidth-leastBar)
		width := max(leastBar, r.TookSeconds/whole.Seconds()*lineWidth)
		fmt.Fprintf(&out, `<a href="#run-%s" aria-label="%s, %s ago"><rect class="%s" x="%.1f" y="8" width="%.1f" height="22"/></a>`,
			template.HTMLEscapeString(r.ID), template.HTMLEscapeString(r.Outcome), duration(now.Sub(r.Began).Seconds()), outcomeClass(r.Outcome), at, width)
	}
	fmt.Fprintf(&out, `<text x="0" y="43">%s ago</text><text x="%d" y="43" text-anchor="end">now</text></svg>`, duration(whole.Seconds()), lineWidth)
	return template.HTML(out.String()) //nolint:gosec // numbers, and texts that are escaped
}
