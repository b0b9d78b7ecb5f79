// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"fmt"
	"strings"
)

// context is how many unchanged lines a hunk has on each side.
const context = 3

// A line of a diff, with its sign.
type diffLine struct {
	sign byte // ' ', '-', '+'
	text string
}

// unified returns the hunks of a diff.
func unified(a, b []string) string {
	all := diff(a, b)
	var out strings.Builder
	at, bt := 1, 1 // the next line's numbers
	for i := 0; i < len(all); {
		end := hunkEnd(all, i)
		if end == i {
			at, bt, i = at+1, bt+1, i+1
			continue
		}
		var text strings.Builder
		an, bn := 0, 0
		for _, l := range all[i:end] {
			fmt.Fprintf(&text, "%c%s\n", l.sign, l.text)
			if l.sign != '+' {
				an++
			}
			if l.sign != '-' {
				bn++
			}
		}
		fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n%s", at, an, bt, bn, &text)
		at, bt, i = at+an, bt+bn, end
	}
	return out.String()
}

// hunkEnd returns where the hunk that begins at i ends. It is i if none begins there.
func hunkEnd(all []diffLine, i int) int {
	near, end := false, i
	for j := i; j < len(all) && (j <= i+context || near && j <= end+2*context); j++ {
		if all[j].sign != ' ' {
			near, end = true, j
		}
	}
	if !near {
		return i
	}
	return min(end+context+1, len(all))
}

// diff compares lines by their longest common subsequence, after what both begin and end
// with.
func diff(a, b []string) []diffLine {
	var head, tail []diffLine
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head = append(head, diffLine{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail = append([]diffLine{{' ', a[len(a)-1]}}, tail...)
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	length := make([][]int32, len(a)+1) // of the common subsequence of a[i:] and b[j:]
	for i := range length {
		length[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	out := head
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, diffLine{' ', a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && length[i+1][j] >= length[i][j+1]:
			out = append(out, diffLine{'-', a[i]})
			i++
		default:
			out = append(out, diffLine{'+', b[j]})
			j++
		}
	}
	return append(out, tail...)
}
