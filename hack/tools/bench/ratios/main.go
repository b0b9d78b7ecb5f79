// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Ratios reads the output of go test -bench from standard input and prints a Markdown
// table: for each workload and unit the median of each contestant, and how much better ours
// is than each peer. The last part of a benchmark's name is the contestant; the names of
// ours begin with flyball.
//
//	go test -run '^$' -bench . -count 5 . | go run ./ratios
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/flyball-dev/flyball/internal/commandline"
)

func main() {
	_ = commandline.Parse(flag.CommandLine, os.Args[1:]) // there is no flag; it exits
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
}

const ours = "flyball"

// subject is what one row compares: a workload in one unit.
type subject struct{ workload, unit string }

// results are the samples of one run, and the order in which subjects and contestants appeared.
type results struct {
	samples     map[subject]map[string][]float64
	subjects    []subject
	contestants []string
}

func run(in io.Reader, out io.Writer) error {
	r, err := read(in)
	if err != nil {
		return err
	}
	if len(r.subjects) == 0 {
		return fmt.Errorf("read benchmarks from standard input: there are none")
	}
	return r.print(out)
}

var procs = regexp.MustCompile(`-\d+$`)

func read(in io.Reader) (*results, error) {
	r := &results{samples: map[subject]map[string][]float64{}}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "FAIL") || strings.HasPrefix(lines.Text(), "--- FAIL") {
			return nil, errors.New("read benchmarks: one failed; its output says why")
		}
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := procs.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
		workload, contestant := name[:max(0, strings.LastIndexByte(name, '/'))], name[strings.LastIndexByte(name, '/')+1:]
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("read %q: %w", lines.Text(), err)
			}
			r.add(subject{workload, fields[i+1]}, contestant, value)
		}
	}
	return r, lines.Err()
}

func (r *results) add(s subject, contestant string, value float64) {
	if r.samples[s] == nil {
		r.samples[s] = map[string][]float64{}
		r.subjects = append(r.subjects, s)
	}
	if !slices.Contains(r.contestants, contestant) {
		r.contestants = append(r.contestants, contestant)
	}
	r.samples[s][contestant] = append(r.samples[s][contestant], value)
}

func (r *results) print(out io.Writer) error {
	peers := slices.DeleteFunc(slices.Clone(r.contestants), func(c string) bool { return strings.HasPrefix(c, ours) })
	var b strings.Builder
	b.WriteString("| workload | unit | ours |")
	for _, p := range peers {
		b.WriteString(" " + p + " | ours is |")
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|---|", len(peers)) + "\n")
	for _, s := range r.subjects {
		for _, c := range r.contestants {
			if mine := r.samples[s][c]; strings.HasPrefix(c, ours) && len(mine) > 0 {
				b.WriteString(r.row(s, c, peers))
			}
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (r *results) row(s subject, contestant string, peers []string) string {
	mine := median(r.samples[s][contestant])
	var b strings.Builder
	fmt.Fprintf(&b, "| %s%s | %s | %s |", s.workload, strings.TrimPrefix(contestant, ours), s.unit, number(mine))
	for _, p := range peers {
		theirs := r.samples[s][p]
		if len(theirs) == 0 {
			b.WriteString(" | |")
			continue
		}
		fmt.Fprintf(&b, " %s | %s |", number(median(theirs)), ratio(s.unit, mine, median(theirs)))
	}
	return b.String() + "\n"
}

// ratio returns how many times better ours is. For rates per second more is better, for all
// other units less.
func ratio(unit string, mine, theirs float64) string {
	better, worse := theirs, mine
	if strings.HasSuffix(unit, "/s") {
		better, worse = mine, theirs
	}
	if worse == 0 {
		if better == 0 {
			return "equal"
		}
		return "none against some"
	}
	return number(better/worse) + "x"
}

func median(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// number formats three significant digits.
func number(v float64) string {
	if v >= 100 || v <= -100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
