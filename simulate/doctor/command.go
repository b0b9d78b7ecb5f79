// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Command is a program in any language to examine, as a process of this machine. The zero values of the fields
// after Samples are fit for use.
type Command struct {
	// Args is the program and its arguments. Each {port} is replaced by a free port. The program finds the
	// server by KUBECONFIG.
	Args []string
	// Env are further variables, as NAME=value.
	Env []string
	// CRDs and Samples are as those of an Operator.
	CRDs, Samples []string
	// Known is as that of an Operator.
	Known string
	// Out is a directory for the report and the output of the program; empty: they are not kept.
	Out string
	// Budget bounds the time for plans. 0: ten minutes.
	Budget time.Duration
	// RestWithin is how long the program may take until it rests after a step of the user. 0: a minute.
	RestWithin time.Duration
	// Parallel is how many processes run at once. 0: two. More than one needs a program whose ports are free,
	// as with {port}.
	Parallel int
	// Plan is the ID of the only plan to run; empty: all.
	Plan string
	// Progress is called after each plan; nil: it is not.
	Progress func(done, of, findings int)
}

// Examine examines the program in real time. It returns an error if the program cannot be examined. The end of
// ctx ends the search; what has been found by then is in the report.
func (c Command) Examine(ctx context.Context) (*Report, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("there is no program; give it and its arguments after --")
	}
	s, err := read(c.CRDs, c.Samples, c.Known)
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "flyball-doctor-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the runs: %w; TMPDIR names another place", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	processes := &children{
		command: c.Args, env: c.Env, crds: s.crds, namespaces: s.namespaces, restWithin: cmp.Or(c.RestWithin, time.Minute), scratch: scratch,
	}
	var failed error
	e := &examination{
		subject: s, pace: byClock, workers: cmp.Or(c.Parallel, 2), only: c.Plan, progress: c.Progress,
		thrifty: true, budget: cmp.Or(c.Budget, 10*time.Minute), ends: time.Now().Add(cmp.Or(c.Budget, 10*time.Minute)), report: &Report{Test: strings.Join(c.Args, " "), Patterns: map[Pattern]int{}},
		replay: func(id string) string { return "flyball doctor -plan " + id + " … -- " + strings.Join(c.Args, " ") },
	}
	e.play = func(w walk, p plan, seed uint64, like *trial) *trial {
		if ctx.Err() != nil {
			return &trial{plan: p, refused: "the search has ended"}
		}
		t, err := processes.play(ctx, w, p, seed, like)
		if err != nil {
			e.mu.Lock()
			failed = cmp.Or(failed, err)
			e.mu.Unlock()
			t.refused = err.Error()
		}
		return t
	}
	e.run()
	if failed != nil && e.report.Ran == 0 {
		return nil, failed
	}
	if c.Out != "" {
		if err := e.write(c.Out); err != nil {
			return e.report, fmt.Errorf("write the report: %w", err)
		}
	}
	return e.report, nil
}

// Text describes the report for a terminal.
func (r *Report) Text() string {
	var b strings.Builder
	for _, f := range r.Findings {
		if f.Known {
			fmt.Fprintf(&b, "known: %s [%s] %s\n", f.Class, f.ID, f.Text)
			continue
		}
		b.WriteString(f.text())
		b.WriteByte('\n')
	}
	b.WriteString(r.summary())
	b.WriteByte('\n')
	return b.String()
}
