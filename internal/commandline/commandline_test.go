// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package commandline_test

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/internal/commandline"
)

// flags returns flags of an operator, and what they print.
func flags(handling flag.ErrorHandling) (*flag.FlagSet, *bytes.Buffer) {
	fs, out := flag.NewFlagSet("operator", handling), &bytes.Buffer{}
	fs.SetOutput(out)
	fs.Bool("simulate", false, "run on a simulated cluster")
	fs.Bool("leader-elect", false, "elect a leader")
	fs.String("kubeconfig", "", "`file` with the cluster")
	fs.Int("v", 0, "verbosity")
	return fs, out
}

func TestParse_SaysWhichFlagIsMeant(t *testing.T) {
	for _, c := range []struct {
		args, want string // want: the first line; empty: no error
		usage      bool
	}{
		{"", "", false},
		{"-simulate -kubeconfig=a -v 2", "", false},
		{"--simulate", "", false},
		{"simulate", `"simulate" is not a flag; do you mean -simulate?`, false},
		{"-v 2 simulat", `"simulat" is not a flag; do you mean -simulate?`, false},
		{"KUBECONFIG=a", `"KUBECONFIG=a" is not a flag; do you mean -kubeconfig?`, false},
		{"-leader-elect false", `"false" is not a flag; do you mean -leader-elect=false?`, false},
		{
			"-kubeconfig a true",
			`"true" is one argument too many; flags begin with -, and -help lists them`,
			false,
		},
		{"x", `"x" is one argument too many; flags begin with -, and -help lists them`, false},
		{"-- -simulate", `"-simulate" is not a flag; do you mean -simulate?`, false},
		{"-simualte", "there is no flag -simualte; do you mean -simulate?", true},
		{"--leader_elect", "there is no flag -leader_elect; do you mean -leader-elect?", true},
		{"-namespace=x", "there is no flag -namespace", true},
		{"-q", "there is no flag -q", true},
		{"-v", "flag needs an argument: -v", true},
		{"-help", "Usage of operator:", true},
	} {
		fs, out := flags(flag.ContinueOnError)
		err := commandline.Parse(fs, strings.Fields(c.args))
		first, rest, _ := strings.Cut(out.String(), "\n")
		if first != c.want || strings.Contains(out.String(), "Usage of operator:") != c.usage {
			t.Errorf(
				"%s: prints %q and then %q, want %q, and the usage: %v", c.args, first, rest, c.want, c.usage,
			)
		}
		code := 2
		if c.want == "" || c.args == "-help" {
			code = 0
		}
		if got := commandline.ExitCode(err); got != code {
			t.Errorf("%s: %v, for which a program exits with %d, want %d", c.args, err, got, code)
		}
	}
}

// The handling that the flag set was made with, and its own usage, are used.
func TestParse_KeepsTheFlagSet(t *testing.T) {
	fs, out := flags(flag.PanicOnError)
	fs.Usage = func() { out.WriteString("mine\n") }
	var panicked any
	func() {
		defer func() { panicked = recover() }()
		_ = commandline.Parse(fs, []string{"-nothing"})
	}()
	if panicked == nil || !strings.HasSuffix(out.String(), "mine\n") ||
		fs.ErrorHandling() != flag.PanicOnError {
		t.Errorf(
			"panic: %v, output: %q, handling: %v; want a panic after the flag set's own usage",
			panicked,
			out,
			fs.ErrorHandling(),
		)
	}
}

func TestExitCode_OfOtherErrors(t *testing.T) {
	if got := commandline.ExitCode(errors.New("no cluster")); got != 1 {
		t.Errorf("a program that fails exits with %d, want 1", got)
	}
}
