// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/internal/manifest"
)

// Command is a program in any language to examine, as a process of this machine. The zero values of the fields
// after Samples are fit for use.
type Command struct {
	// Args is the program and its arguments. Each {port} is replaced by a free port. The program finds the
	// server by KUBECONFIG.
	Args []string
	// With are programs that run beside it, with their arguments, such as the other binary of an operator. They start
	// and end with it, and what they do counts as what it does.
	With []string
	// Env are further variables, as NAME=value, or as NAME with the value that it has here. The replay has the names
	// alone: values may be secrets.
	Env []string
	// CRDs and Samples are as those of an Operator.
	CRDs, Samples []string
	// Webhooks are files or directories of the configurations of webhooks that the program serves itself, admission or
	// conversion. In its arguments {webhook-port} stands for its port, and {webhook-certs} for the directory of its
	// certificate, as tls.crt and tls.key.
	Webhooks []string
	// WebhookPort is the port of a program that takes none as an argument. 0: a free one in each run.
	WebhookPort int
	// Suite: Args run tests of Go that start an API server by envtest, such as go test ./internal/controller/... or
	// make test. Their specs are the user of the operator, so there are no CRDs and no Samples.
	Suite bool
	// Assets is a directory that "apiserver install" has written, for a Suite. Empty: "go tool apiserver install" makes
	// one.
	Assets string
	// Stubs and Known are as those of an Operator.
	Stubs map[string]string
	Known string
	// Out is a directory for the report and the output of the program; empty: they are not kept.
	Out string
	// Budget bounds the time for plans. 0: ten minutes.
	Budget time.Duration
	// MostPlans and First are as those of an Operator.
	MostPlans int
	First     bool
	// RestWithin is how long the program may take until it rests after a step of the user. 0: a minute. A finding about
	// the end state is confirmed by a run that waits for three quarters of that.
	RestWithin time.Duration
	// Parallel is how many processes run at once. 0: as many as there are processors, and at least two; of a Suite one.
	// Programs that say that their port is in use run one at a time; {port} avoids that.
	Parallel int
	// Plan is the ID of the only plan to run; empty: all.
	Plan string
	// Repeat is how often the plan of a finding is repeated, at least twice.
	Repeat int
	// Progress is called after each plan; nil: it is not.
	Progress func(done, of, findings int)
}

// Examine examines the program in real time. It returns an error if the program cannot be examined. The end of
// ctx ends the search; what has been found by then is in the report.
func (c Command) Examine(ctx context.Context) (*Report, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("there is no program; give it and its arguments after --")
	}
	s, err := subject{}, error(nil)
	if c.Env, err = valued(c.Env); err != nil {
		return nil, err
	}
	if c.Suite {
		s.known, err = readKnown(c.Known)
	} else {
		s, err = read(c.CRDs, c.Samples, c.Known)
	}
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "flyball-doctor-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the runs: %w; TMPDIR names another place", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	play, workers := c.suites, 1
	if !c.Suite {
		play, workers = c.processes, max(runtime.NumCPU(), 2)
	}
	run, err := play(ctx, &s, scratch)
	if err != nil {
		return nil, err
	}
	var failed error
	budget, name := cmp.Or(c.Budget, 10*time.Minute), strings.Join(c.Args, " ")
	e := &examination{
		subject: s, pace: byClock, workers: cmp.Or(c.Parallel, workers), only: c.Plan, progress: c.Progress,
		first: c.First, most: c.MostPlans, repetitions: c.Repeat,
		thrifty: true, budget: budget, ends: time.Now().Add(budget), report: &Report{Test: name, Patterns: map[Pattern]int{}},
		replay: c.replay, tried: map[string]bool{},
	}
	e.play = func(w walk, p plan, seed uint64, like *trial) *trial {
		t, err := run.until(ctx, w, p, seed, like)
		if err != nil {
			e.mu.Lock()
			failed = cmp.Or(failed, err)
			e.mu.Unlock()
		}
		return t
	}
	e.run()
	nothing := e.report.Ran+len(e.report.Findings) == 0
	switch {
	case failed != nil && nothing:
		return nil, failed
	case c.Plan != "" && nothing && ctx.Err() == nil:
		return e.report, fmt.Errorf("run the plan %s: it is not among the %d of this program and its samples", c.Plan, e.report.Plans)
	}
	if c.Out != "" {
		if err := e.write(c.Out); err != nil {
			return e.report, fmt.Errorf("write the report: %w", err)
		}
	}
	return e.report, nil
}

// valued returns variables with their values.
func valued(env []string) (all []string, err error) {
	for _, one := range env {
		if !strings.Contains(one, "=") {
			value, is := os.LookupEnv(one)
			if !is {
				return nil, fmt.Errorf("the variable %s is not set; set it, or write %s=VALUE", one, one)
			}
			one += "=" + value
		}
		all = append(all, one)
	}
	return all, nil
}

// replay is the command for a shell that runs one plan alone.
func (c Command) replay(id string) string {
	words, rest, port := []string{"flyball", "doctor", "-plan", id}, "", ""
	if c.Suite {
		words = append(words, "-suite")
	}
	if c.RestWithin > 0 {
		rest = c.RestWithin.String()
	}
	if c.WebhookPort > 0 {
		port = strconv.Itoa(c.WebhookPort)
	}
	var stubs, names []string
	for _, one := range c.Env {
		name, _, _ := strings.Cut(one, "=")
		names = append(names, name)
	}
	for _, kind := range slices.Sorted(maps.Keys(c.Stubs)) {
		stubs = append(stubs, kind+"="+c.Stubs[kind])
	}
	for _, f := range []struct {
		name   string
		values []string
	}{
		{"-crds", c.CRDs}, {"-samples", c.Samples}, {"-with", c.With}, {"-webhooks", c.Webhooks}, {"-webhook-port", []string{port}},
		{"-stub", stubs}, {"-assets", []string{c.Assets}}, {"-env", names}, {"-rest", []string{rest}},
	} {
		for _, value := range f.values {
			if value != "" {
				words = append(words, f.name, quoted(value))
			}
		}
	}
	words = append(words, "--")
	for _, arg := range c.Args {
		words = append(words, quoted(arg))
	}
	return strings.Join(words, " ")
}

// isPlain matches words that mean themselves in a shell.
var isPlain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// quoted returns a word as a shell reads it.
func quoted(word string) string {
	if isPlain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// realPlayer is a player whose runs end with ctx. The error is that it cannot run the program.
type realPlayer func(ctx context.Context, w walk, p plan, seed uint64, like *trial) (*trial, error)

// until is a run that is refused if it would begin, or has ended, after the end of ctx.
func (run realPlayer) until(ctx context.Context, w walk, p plan, seed uint64, like *trial) (*trial, error) {
	t, err := &trial{plan: p}, error(nil)
	if ctx.Err() == nil {
		t, err = run(ctx, w, p, seed, like)
	}
	switch {
	case ctx.Err() != nil:
		t.refused, err = searchEnded, nil
	case err != nil:
		t.refused = err.Error()
	}
	return t, err
}

// processes returns a player that runs the program.
func (c Command) processes(_ context.Context, s *subject, scratch string) (realPlayer, error) {
	processes := &children{
		programs: [][]string{c.Args}, env: c.Env, crds: s.crds, namespaces: s.namespaces, restWithin: cmp.Or(c.RestWithin, time.Minute), scratch: scratch,
	}
	var err error
	if processes.statuses, err = readStubs(c.Stubs); err != nil {
		return nil, err
	}
	if len(c.Webhooks) > 0 {
		if processes.hooks.configurations, err = manifest.Read(c.Webhooks, "webhook configurations", manifest.IsWebhookConfiguration); err != nil {
			return nil, fmt.Errorf("webhooks: %w", err)
		}
	}
	for _, text := range c.With {
		args := strings.Fields(text)
		if len(args) == 0 {
			return nil, errors.New("a program to run beside it has no name; write it with its arguments")
		}
		processes.programs = append(processes.programs, args)
	}
	processes.hooks.port = c.WebhookPort
	processes.hooks.wanted = c.WebhookPort > 0 || strings.Contains(fmt.Sprint(processes.programs), "{webhook-")
	return processes.play, nil
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
