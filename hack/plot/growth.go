// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// growth is a table of values of several series, by number of objects or replicas, or over time.
type growth struct {
	axes
	series  []string
	objects []float64   // or what axes.by says
	taken   [][]float64 // by row, then by series; NaN: the series has ended
}

// axes are what a plot of growth shows.
type axes struct {
	by               string // the first column
	linear           bool   // over time: both axes begin at zero
	few              bool   // each row has a tick
	title, explained string
}

var allAxes = []axes{
	{"objects", false, false, "Heap by number of objects",
		"Heap in MB by number of objects, both logarithmic; lower is better"},
	{"seconds", true, false, "Resident memory over time",
		"Resident memory in MB by seconds since the start; lower is better"},
	{"replicas", false, true, "Keys reconciled per second by number of replicas",
		"Keys reconciled per second by number of replicas, both logarithmic; higher is better"},
	{"replicas at rest", false, true, "Writes of Leases per second by number of replicas",
		"Writes of Leases per second by number of replicas at rest, both logarithmic; lower is better"},
}

// parseGrowth returns the first table of a page whose header begins with the first column of axes,
// or with that of by unless by is empty.
func parseGrowth(page, by string) (*growth, error) {
	var g *growth
	for line := range strings.Lines(page) {
		cells := cellsOf(line)
		switch {
		case g == nil:
			g = newGrowth(cells, by)
		case len(cells) == 0:
			return g.checked()
		case strings.Trim(cells[0], "-:") == "":
		default:
			if err := g.add(cells); err != nil {
				return nil, fmt.Errorf("read the row %q: %w", cells[0], err)
			}
		}
	}
	return g.checked()
}

// newGrowth returns the table that begins with cells, or nil.
func newGrowth(cells []string, by string) *growth {
	for _, a := range allAxes {
		if len(cells) > 1 && cells[0] == a.by && (by == "" || by == a.by) {
			return &growth{axes: a, series: cells[1:]}
		}
	}
	return nil
}

func (g *growth) add(cells []string) error {
	if len(cells) != 1+len(g.series) {
		return fmt.Errorf("%d cells, want %d", len(cells), 1+len(g.series))
	}
	var row []float64
	for _, cell := range cells {
		if g.linear && cell == "" {
			row = append(row, math.NaN())
			continue
		}
		x, err := strconv.ParseFloat(strings.ReplaceAll(cell, ",", ""), 64)
		if err != nil {
			return err
		}
		if x <= 0 && !g.linear {
			return fmt.Errorf("%s is not positive, and the axes are logarithmic", cell)
		}
		row = append(row, x)
	}
	g.objects, g.taken = append(g.objects, row[0]), append(g.taken, row[1:])
	return nil
}

func (g *growth) checked() (*growth, error) {
	if g == nil || len(g.objects) < 2 {
		return nil, errors.New(`read the table: there is none that begins with "| objects |", "| seconds |", "| replicas |" or "| replicas at rest |" and has two rows or more`)
	}
	taken := g.values()
	if len(taken) == 0 || slices.Max(taken) <= 0 || slices.Max(g.objects) <= 0 {
		return nil, errors.New("read the table: no value in it is positive")
	}
	return g, nil
}

// values returns all that is taken.
func (g *growth) values() []float64 {
	return slices.DeleteFunc(slices.Concat(g.taken...), math.IsNaN)
}

// Sizes in pixels of a plot of growth.
const (
	growthHeight = 460
	growthLeft   = 60
	growthRight  = 620 // where the lines end; their names follow
	growthTop    = 50
	growthBottom = 420
	nameHeight   = 16
)

// growthColours are legible on both backgrounds, one for each series.
var growthColours = []string{"#4f7fd1", "#d9822b", "#4a9d5b", "#a667b8", "#c0504d", "#3a9ea5", "#8a6d3b"}

func (g *growth) draw() string {
	var b strings.Builder
	begin(&b, growthHeight, g.title)
	text(&b, 16, 26, "text", "start", g.explained)
	taken := g.values()
	x := scale{slices.Min(g.objects), slices.Max(g.objects), growthLeft, growthRight, g.linear}
	y := scale{slices.Min(taken), slices.Max(taken), growthBottom, growthTop, g.linear}
	across := x.ticks()
	if g.few {
		across = g.objects
	}
	for _, tick := range across {
		line(&b, x.at(tick), growthTop, x.at(tick), growthBottom)
		text(&b, x.at(tick), growthBottom+16, "quiet small", "middle", strconv.FormatFloat(tick, 'f', -1, 64))
	}
	for _, tick := range y.ticks() {
		line(&b, growthLeft, y.at(tick), growthRight, y.at(tick))
		text(&b, growthLeft-6, y.at(tick)+4, "quiet small", "end", strconv.FormatFloat(tick, 'f', -1, 64))
	}
	names := g.names(y)
	for s, name := range g.series {
		colour := growthColours[s%len(growthColours)]
		var points []string
		for i, n := range g.objects {
			if mb := g.taken[i][s]; !math.IsNaN(mb) {
				points = append(points, fmt.Sprintf("%.1f,%.1f", x.at(n), y.at(mb)))
			}
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(points, " "), colour)
		fmt.Fprintf(&b, `<rect x="%d" y="%.1f" width="10" height="10" rx="2" fill="%s"/>`+"\n", growthRight+14, names[s]-9, colour)
		text(&b, growthRight+30, names[s], "text", "start", name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// names returns where the name of each series stands: at the end of its line, and below the
// name above.
func (g *growth) names(y scale) []float64 {
	last := make([]float64, len(g.series))
	for _, row := range g.taken {
		for s, mb := range row {
			if !math.IsNaN(mb) {
				last[s] = mb
			}
		}
	}
	order := make([]int, len(g.series))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(last[j], last[i]) })
	at := make([]float64, len(g.series))
	free := 0.0
	for _, s := range order {
		at[s] = max(y.at(last[s])+4, free)
		free = at[s] + nameHeight
	}
	return at
}

func line(b *strings.Builder, x1, y1, x2, y2 float64) {
	fmt.Fprintf(b, `<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#d8dee4"/>`+"\n", x1, y1, x2, y2)
}

// scale maps the logarithm of a value between two values to a place between two, or a value
// between zero and a value.
type scale struct {
	from, to, low, high float64
	linear              bool
}

func (s scale) at(x float64) float64 {
	switch {
	case s.linear:
		return s.low + (s.high-s.low)*x/s.to
	case s.from == s.to:
		return s.low
	}
	return s.low + (s.high-s.low)*math.Log(x/s.from)/math.Log(s.to/s.from)
}

// ticks are 1 and 3 of each power of ten within the scale; of a linear one, up to ten multiples of
// 1, 2 or 5 of a power of ten.
func (s scale) ticks() []float64 {
	var out []float64
	if s.linear {
		step := math.Pow(10, math.Floor(math.Log10(s.to/4)))
		for _, times := range []float64{2, 2.5, 2} {
			if s.to/step > 10 {
				step *= times
			}
		}
		for x := 0.0; x <= s.to; x += step {
			out = append(out, x)
		}
		return out
	}
	for power := math.Pow(10, math.Floor(math.Log10(s.from))); power <= s.to; power *= 10 {
		for _, x := range []float64{power, 3 * power} {
			if s.from <= x && x <= s.to {
				out = append(out, x)
			}
		}
	}
	return out
}
