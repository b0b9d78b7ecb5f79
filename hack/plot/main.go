// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Plot reads a table of ratios from standard input and writes it as an SVG to standard output: one group of bars per workload,
// one bar per peer, on a logarithmic axis on which 1x is what Flyball takes. The table is the one that hack/tools/bench/ratios prints,
// or the first one with that header in a Markdown page:
//
//	go run ./hack/plot <docs/performance.md >docs/performance.svg
//	cd hack/tools/bench && GOWORK=off go test -run '^$' -bench Queue . | GOWORK=off go run ./ratios | go run ../../plot >queue.svg
//
// With -growth it draws lines, one for each column, from the first table whose header begins with "| objects |" or "| seconds |", memory
// in MB, or with "| replicas |" or "| replicas at rest |", rates. With -by it takes the first table of that header.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/flyball-dev/flyball/internal/commandline"
)

func main() {
	lines := flag.Bool("growth", false, "draw lines from a table of memory by number of objects or over time, or of rates by number of replicas")
	by := flag.String("by", "", "with -growth: the first column of the table; empty: any that is known")
	_ = commandline.Parse(flag.CommandLine, os.Args[1:]) // it exits
	if err := run(os.Stdin, os.Stdout, *lines, *by); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, lines bool, by string) error {
	page, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read the table: %w", err)
	}
	drawn := ""
	if lines {
		g, err := parseGrowth(string(page), by)
		if err != nil {
			return err
		}
		drawn = g.draw()
	} else {
		t, err := parse(string(page))
		if err != nil {
			return err
		}
		drawn = t.draw()
	}
	_, err = io.WriteString(out, drawn)
	return err
}
