// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor is the command flyball doctor: it examines a program in any language as a process.
//
//	flags ──▶ simulate/doctor.Command ──▶ report as text; doctor.html, doctor.json, doctor.sarif
//
// # Testing
//
// The tests build a program and examine it.
package doctor

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/internal/commandline"
	"github.com/flyball-dev/flyball/simulate/doctor"
)

// Exit codes of Run.
const (
	ExitSound    = 0 // nothing new was found
	ExitFindings = 1
	ExitUsage    = 2
	ExitFailed   = 3 // the program could not be examined
)

const usage = `usage: flyball doctor -crds config/crd -samples config/samples [flags] -- ./my-operator --flags
       flyball doctor -suite [flags] -- go test ./internal/controller/...

It runs the program against a simulated API server on this machine, creates, changes and deletes the
samples, and looks for what the program does wrong after a crash, with a stale cache, or with a lost answer. The
program finds the server by KUBECONFIG; {port} in its arguments stands for a free port. It exits with 1 if
something was found, and with 3 if the program could not be examined. With -suite it runs a suite of Go that
starts an API server by envtest, again and again, and looks for specs that one fault makes fail.

`

// list is a flag that can be given several times.
type list []string

func (l *list) String() string { return fmt.Sprint(*l) }

func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

// Run carries out the command, and returns its exit code.
func Run(ctx context.Context, args []string, out, problems io.Writer) int {
	var c doctor.Command
	flags := flag.NewFlagSet("flyball doctor", flag.ContinueOnError)
	flags.SetOutput(problems)
	flags.Usage = func() {
		fmt.Fprint(problems, usage)
		flags.PrintDefaults()
	}
	flags.Var((*list)(&c.CRDs), "crds", "`directory` or file of CustomResourceDefinitions; may be given again")
	flags.Var((*list)(&c.Samples), "samples", "`directory` or file of objects that a user creates; may be given again")
	flags.Var((*list)(&c.With), "with", "`program` with its arguments that runs beside it, such as the operator's other binary; may be given again")
	flags.Var((*list)(&c.Webhooks), "webhooks", "`directory` or file of the configurations of webhooks that the program serves; may be given again")
	flags.IntVar(&c.WebhookPort, "webhook-port", 0, "`port` of the program's webhooks, if it takes none as an argument; 0: a free one, as {webhook-port}")
	flags.Func("stub", "`kind=file` of a kind whose controller is missing, such as Certificate.cert-manager.io=status.yaml: its objects get that status; may be given again", func(text string) error {
		kind, file, found := strings.Cut(text, "=")
		if !found {
			return errors.New("write KIND=FILE, such as Certificate.cert-manager.io=status.yaml")
		}
		if c.Stubs == nil {
			c.Stubs = map[string]string{}
		}
		c.Stubs[kind] = file
		return nil
	})
	flags.BoolVar(&c.Suite, "suite", false, "the command runs tests that start an API server by envtest; their specs are used in place of -crds and -samples")
	flags.StringVar(&c.Assets, "assets", "", "`directory` that \"apiserver install\" has written, for -suite (default: go tool apiserver install writes one)")
	flags.Var((*list)(&c.Env), "env", "further variable of the program, as `NAME=value`, or NAME with the value that it has here, such as a secret; may be given again")
	flags.StringVar(&c.Known, "known", "", "`file` of the IDs of known findings, one in a line")
	flags.StringVar(&c.Out, "out", "", "`directory` for doctor.html, doctor.json, doctor.sarif and the output of the program")
	flags.DurationVar(&c.Budget, "budget", 10*time.Minute, "how long to try plans")
	flags.DurationVar(&c.RestWithin, "rest", time.Minute, "how long the program may take until it rests after a change")
	flags.IntVar(&c.Parallel, "parallel", 0, "`number` of processes at once; 0: as many as processors, and at least two")
	flags.IntVar(&c.MostPlans, "most", 0, "`number` of plans to try at most, the most promising ones first; 0: as many as the budget allows")
	flags.BoolVar(&c.First, "first", false, "end at the first finding")
	flags.IntVar(&c.Repeat, "repeat", 2, "how `often` the plan of a finding is repeated")
	flags.StringVar(&c.Plan, "plan", "", "run the plan with this `ID` alone")
	quiet := flags.Bool("quiet", false, "show no progress")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return ExitSound
		}
		return ExitUsage
	}
	c.Args = flags.Args()
	if !*quiet {
		c.Progress = progress(problems, time.Now())
	}
	report, err := c.Examine(ctx)
	if report != nil {
		fmt.Fprint(out, report.Text())
	}
	if err != nil {
		fmt.Fprintln(problems, "flyball doctor:", err)
		if commandline.ExitCode(err) == ExitUsage || len(c.Args) == 0 || len(c.Samples) == 0 && !c.Suite {
			return ExitUsage
		}
		return ExitFailed
	}
	for _, f := range report.Findings {
		if !f.Known {
			return ExitFindings
		}
	}
	if report.Ran == 0 {
		fmt.Fprintln(problems, "flyball doctor: no plan was run; see what could not be judged")
		return ExitFailed
	}
	return ExitSound
}

// progress writes a line for some of the plans, with an estimate of what is left.
func progress(to io.Writer, begun time.Time) func(done, of, findings int) {
	var last time.Time
	return func(done, of, findings int) {
		const every = 5 * time.Second
		if time.Since(last) < every && done < of {
			return
		}
		last = time.Now()
		left := time.Since(begun) / time.Duration(done) * time.Duration(of-done)
		fmt.Fprintf(to, "%d of %d plans, %d findings, some %s left\n", done, of, findings, left.Round(time.Second))
	}
}
