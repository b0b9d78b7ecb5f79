// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// table is what hack/tools/bench/ratios prints: per workload our figure, and for each peer its figure and how much better ours is.
type table struct {
	peers []string
	rows  []row
}

type row struct {
	workload, unit, ours string
	ratios               []ratio // one per peer
}

// ratio compares ours with one peer. The text is as in the table, empty if the peer was not
// measured. The value is 0 if the text is not a number, as in "none against some".
type ratio struct {
	theirs, text string
	value        float64
}

// parse returns the first table of a page whose header is that of hack/tools/bench/ratios.
func parse(page string) (*table, error) {
	var t *table
	for line := range strings.Lines(page) {
		cells := cellsOf(line)
		switch {
		case t == nil:
			t = header(cells)
		case len(cells) == 0 && len(t.rows) > 0:
			return t, nil
		case len(cells) == 0:
			return nil, errors.New("read the table: it has no rows")
		case strings.Trim(cells[0], "-:") == "":
		case len(cells) != 3+2*len(t.peers):
			return nil, fmt.Errorf("read the row %q: %d cells, want %d", cells[0], len(cells), 3+2*len(t.peers))
		default:
			r, err := newRow(cells)
			if err != nil {
				return nil, err
			}
			t.rows = append(t.rows, r)
		}
	}
	if t == nil || len(t.rows) == 0 {
		return nil, errors.New(`read the table: there is none that begins with "| workload | unit | ours |"; pipe the output of hack/tools/bench/ratios`)
	}
	return t, nil
}

// header returns the table that begins with cells, or nil.
func header(cells []string) *table {
	if len(cells) < 5 || len(cells)%2 == 0 || !slices.Equal(cells[:3], []string{"workload", "unit", "ours"}) {
		return nil
	}
	t := &table{}
	for peer := range slices.Chunk(cells[3:], 2) {
		if peer[1] != "ours is" {
			return nil
		}
		t.peers = append(t.peers, peer[0])
	}
	return t
}

// tolerance allows for figures that were rounded after their ratio was computed.
const tolerance = 0.03

func newRow(cells []string) (row, error) {
	r := row{workload: cells[0], unit: cells[1], ours: cells[2]}
	for peer := range slices.Chunk(cells[3:], 2) {
		x := ratio{theirs: peer[0], text: peer[1]}
		if stated, err := strconv.ParseFloat(strings.TrimSuffix(x.text, "x"), 64); err == nil && stated > 0 {
			x.value = stated
			mine, err1 := strconv.ParseFloat(r.ours, 64)
			theirs, err2 := strconv.ParseFloat(x.theirs, 64)
			if err := errors.Join(err1, err2); err != nil {
				return row{}, fmt.Errorf("read the row %q: %w", r.workload, err)
			}
			figures := theirs / mine
			if strings.HasSuffix(r.unit, "/s") {
				figures = mine / theirs
			}
			if math.Abs(figures/stated-1) > tolerance {
				return row{}, fmt.Errorf("read the row %q: %s and %s make %.3gx, the table has %s", r.workload, r.ours, x.theirs, figures, x.text)
			}
		}
		r.ratios = append(r.ratios, x)
	}
	return r, nil
}

// cellsOf returns the cells of a line of a Markdown table, without bold marks; none for
// another line.
func cellsOf(line string) []string {
	line = strings.TrimSpace(line)
	if len(line) < 2 || line[0] != '|' || line[len(line)-1] != '|' {
		return nil
	}
	cells := strings.Split(line[1:len(line)-1], "|")
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(strings.TrimSpace(c), "**", "")
	}
	return cells
}
