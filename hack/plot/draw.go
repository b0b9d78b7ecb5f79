// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"strings"
)

// Sizes in pixels.
const (
	width   = 960
	left    = 430 // where the axis begins
	right   = 870 // where it ends; the figures of the longest bar follow it
	top     = 66  // above the first row
	bar     = 13
	between = 14 // between two workloads
)

// Colours that are legible on both backgrounds, one for each peer.
var colours = []string{"#4f7fd1", "#d9822b", "#4a9d5b", "#a667b8"}

// Attributes give the light colours; the style sheet overrides them where the reader prefers dark ones.
const style = `<style>
text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif }
.small { font-size: 11px }
@media (prefers-color-scheme: dark) {
  .ground { fill: #0d1117 }
  .text { fill: #e6edf3 }
  .quiet { fill: #9da7b3 }
  .grid { stroke: #30363d }
  .one { stroke: #e6edf3 }
}
</style>
`

func (t *table) draw() string {
	perRow := len(t.peers)*(bar+2) + between
	height := top + len(t.rows)*perRow + 28
	a := t.axis()
	var b strings.Builder
	begin(&b, height, "How many times more the peers take than Flyball")
	t.legend(&b)
	bottom := height - 28 - between/2
	for _, tick := range a.ticks() {
		class, colour := "grid", "#d8dee4"
		if tick == 1 {
			class, colour = "one", "#1f2328"
		}
		x := a.at(tick)
		fmt.Fprintf(&b, `<line class="%s" x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s"/>`+"\n", class, x, top-8, x, bottom, colour)
		text(&b, x, float64(bottom+16), "quiet small", "middle", fmt.Sprintf("%gx", tick))
	}
	for i, r := range t.rows {
		r.draw(&b, a, float64(top+i*perRow))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// begin begins a plot on its ground.
func begin(b *strings.Builder, height int, title string) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(b, "<title>%s</title>\n%s", title, style)
	fmt.Fprintf(b, `<rect class="ground" width="%d" height="%d" rx="6" fill="#ffffff"/>`+"\n", width, height)
}

// legend draws the legend above the plot.
func (t *table) legend(b *strings.Builder) {
	text(b, 16, 26, "text", "start", "How many times more they take than Flyball (1x), logarithmic; longer is worse")
	for i, peer := range t.peers {
		x := float64(left + i*170)
		fmt.Fprintf(b, `<rect x="%.1f" y="38" width="12" height="12" rx="2" fill="%s"/>`+"\n", x, colours[i%len(colours)])
		text(b, x+18, 49, "text", "start", peer)
	}
}

func (r row) draw(b *strings.Builder, a axis, y float64) {
	text(b, left-12, y+11, "text", "end", r.workload)
	text(b, left-12, y+25, "quiet small", "end", "Flyball: "+r.ours+" "+r.unit)
	for i, x := range r.ratios {
		from, to, said := a.at(1), a.at(1), x.text
		if x.value > 0 {
			from, to = min(from, a.at(x.value)), max(from, a.at(x.value))
			said = fmt.Sprintf("%s (%s)", x.text, x.theirs)
		}
		if to > from {
			fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="2" fill="%s"/>`+"\n", from, y, to-from, bar, colours[i%len(colours)])
		}
		if said == "" {
			said = "not measured"
		}
		text(b, to+6, y+bar-3, "text small", "start", said)
		y += bar + 2
	}
}

func text(b *strings.Builder, x, y float64, class, anchor, s string) {
	colour := "#1f2328"
	if strings.HasPrefix(class, "quiet") {
		colour = "#59636e"
	}
	fmt.Fprintf(b, `<text class="%s" x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`+"\n", class, x, y, anchor, colour, html.EscapeString(s))
}

// axis is logarithmic between two ratios, 1 among them or at an end.
type axis struct{ from, to float64 }

func (t *table) axis() axis {
	a := axis{1, 2}
	for _, r := range t.rows {
		for _, x := range r.ratios {
			if x.value > 0 {
				a.from, a.to = min(a.from, x.value), max(a.to, x.value)
			}
		}
	}
	return a
}

func (a axis) at(x float64) float64 {
	return scale{a.from, a.to, left, right, false}.at(x)
}

// ticks are the round numbers within the axis: 1, 2 and 5 of each power of ten up to 10, tenfold beyond.
func (a axis) ticks() []float64 {
	var out []float64
	for _, x := range []float64{0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 100, 1000, 10000, 100000} {
		if a.from <= x && x <= a.to {
			out = append(out, x)
		}
	}
	return out
}
