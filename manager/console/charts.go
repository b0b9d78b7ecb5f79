// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

const (
	barsShown   = 60 // intervals
	barLength   = 10 * time.Second
	barWidth    = 5 // with the gap after it
	chartHeight = 40
	leastHeight = 2 // of a bar that is not zero
)

// charts are the last minutes of a controller.
type charts struct {
	bars [barsShown]inspect.Interval // the newest last
	sum  inspect.Interval
	most inspect.Interval // of each number; Done is that of all reconciles
}

// chartsOf returns the intervals up to now; nil: there are none.
func chartsOf(recent []inspect.Interval, now time.Time) *charts {
	if len(recent) == 0 {
		return nil
	}
	c := new(charts)
	last := now.UnixNano() / int64(barLength)
	for _, i := range recent {
		at := barsShown - 1 - (last - i.Began.UnixNano()/int64(barLength))
		if at < 0 || at >= barsShown {
			continue
		}
		c.bars[at] = i
		c.sum.Done, c.sum.Requeued, c.sum.Failed = c.sum.Done+i.Done, c.sum.Requeued+i.Requeued, c.sum.Failed+i.Failed
		c.most.Done, c.most.Failed = max(c.most.Done, i.Done+i.Requeued), max(c.most.Failed, i.Failed)
		c.most.Ready, c.most.OldestSeconds = max(c.most.Ready, i.Ready), max(c.most.OldestSeconds, i.OldestSeconds)
	}
	return c
}

// write draws three charts. Failures hang below the axis, and what is requeued is hollow, so that no
// colour has to be seen.
func (c *charts) write(w *writer) {
	unit := chartHeight / float64(max(c.most.Done+c.most.Failed, 1))
	base := chartHeight - float64(c.most.Failed)*unit
	var done, requeued, failed, ready, oldest bars
	for n, i := range c.bars {
		top := base - done.draw(n, base, float64(i.Done)*unit)
		requeued.draw(n, top, float64(i.Requeued)*unit)
		failed.draw(n, base, -float64(i.Failed)*unit)
		ready.draw(n, chartHeight, chartHeight*float64(i.Ready)/float64(max(c.most.Ready, 1)))
		oldest.draw(n, chartHeight, chartHeight*i.OldestSeconds/max(c.most.OldestSeconds, 1e-9))
	}
	w.put("<div class=\"charts\">\n")
	chart(w, base, fmt.Sprintf("%d done, %d requeued, %d failed", c.sum.Done, c.sum.Requeued, c.sum.Failed),
		escaped(`10 min: <span class="good">■ %d done</span> <span class="warn">□ %d requeued</span> <span class="bad">▼ %d failed</span>`, c.sum.Done, c.sum.Requeued, c.sum.Failed),
		drawn{"good", &done}, drawn{"warn", &requeued}, drawn{"bad", &failed})
	text := "no key was ready for long"
	if c.most.Ready > 0 {
		text = fmt.Sprintf("at most %d ready %s", c.most.Ready, plural(c.most.Ready, "key"))
	}
	chart(w, chartHeight, text, markup(text), drawn{"", &ready})
	text = "no long wait"
	if c.most.OldestSeconds > 0 {
		text = "waits of at most " + duration(c.most.OldestSeconds)
	}
	chart(w, chartHeight, text, markup(text), drawn{"", &oldest})
	w.put("</div>\n")
}

// bars is a path.
type bars struct{ strings.Builder }

// draw adds bar number n, from base up, and returns its height.
func (b *bars) draw(n int, base, height float64) float64 {
	switch {
	case height == 0:
		return 0
	case height > 0:
		height = max(height, leastHeight)
	default:
		height = min(height, -leastHeight)
	}
	fmt.Fprintf(b, "M%d %.1fh%dv%.1fh-%[3]dz", n*barWidth, base, barWidth-1, -height)
	return height
}

// drawn is a path with its class.
type drawn struct {
	class string
	path  *bars
}

// chart writes one chart. text says what it shows.
func chart(w *writer, base float64, text string, caption markup, paths ...drawn) {
	w.put("<figure><figcaption>%s</figcaption><svg class=\"chart\" viewBox=\"0 -2 %d %d\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"In the last 10 minutes: %s\"><path class=\"axis\" d=\"M0 %.1fh%[2]d\"/>",
		caption, barsShown*barWidth, chartHeight+4, text, base)
	for _, p := range paths {
		if p.path.Len() > 0 {
			w.put(`<path class="%s" d="%s"/>`, p.class, p.path.String())
		}
	}
	w.put("</svg></figure>\n")
}
