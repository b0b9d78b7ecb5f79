// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/internal/commandline"
)

// Exit codes.
const (
	success = 0
	failure = 1
	usage   = 2
)

// command is one of the program's.
type command struct {
	synopsis, purpose string
	flags             func(fs *flag.FlagSet) func(ctx context.Context, args []string, t terminal) error
}

// terminal is where a command writes.
type terminal struct {
	out, messages io.Writer
}

// warn prints what a person should know, but what does not keep the command from its work.
func (t terminal) warn(format string, args ...any) {
	fmt.Fprintf(t.messages, "flyball pack: warning: "+format+"\n", args...)
}

var commands = map[string]command{
	"image":  {"flyball pack image [flags] [package], such as flyball pack image -push registry.example.com/operator:v1", "build an OCI image without a container runtime", imageFlags},
	"chart":  {"flyball pack chart [flags] [base], such as flyball pack chart -o dist/chart config", "write a Helm chart from a kustomize base", chartFlags},
	"bundle": {"flyball pack bundle [flags] [base], such as flyball pack bundle -o dist/bundle config", "write a bundle for the Operator Lifecycle Manager from a kustomize base", bundleFlags},
	"sbom":   {"flyball pack sbom [flags] program", "write the SBOM of a built Go program as SPDX 2.3", sbomFlags},
}

// misuse is an error of the command line.
type misuse struct{ error }

// Run runs the command with the given arguments, and returns its exit code.
func Run(ctx context.Context, args []string, out, messages io.Writer) int {
	var c command
	known := len(args) > 0
	if known {
		c, known = commands[args[0]]
	}
	if !known {
		fmt.Fprintln(messages, "usage: flyball pack command [flags] [argument]; flyball pack command -help lists the flags")
		for _, name := range []string{"image", "chart", "bundle", "sbom"} {
			fmt.Fprintf(messages, "  flyball pack %-7s %s\n", name, commands[name].purpose)
		}
		if len(args) > 0 && slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
			return success
		}
		return usage
	}
	fs := flag.NewFlagSet("flyball pack "+args[0], flag.ContinueOnError)
	fs.SetOutput(messages)
	fs.Usage = func() {
		fmt.Fprintln(messages, "usage:", c.synopsis)
		fs.PrintDefaults()
	}
	do := c.flags(fs)
	if err := commandline.Flags(fs, args[1:]); err != nil {
		return commandline.ExitCode(err)
	}
	if name := fs.Arg(0); fs.Lookup(name) != nil {
		fmt.Fprintf(messages, "flyball pack %s: %q is a flag; write -%[2]s, or ./%[2]s for the directory\n", args[0], name)
		return usage
	}
	err := do(ctx, fs.Args(), terminal{out, messages})
	var wrong misuse
	switch {
	case err == nil:
		return success
	case errors.As(err, &wrong):
		fmt.Fprintf(messages, "flyball pack %s: %v\n", args[0], err)
		return usage
	}
	fmt.Fprintf(messages, "flyball pack %s: %v\n", args[0], err)
	return failure
}

// argument returns the only argument, or what is meant without one.
func argument(args []string, instead string) (string, error) {
	switch {
	case len(args) == 0:
		return instead, nil
	case len(args) == 1 && args[0] != "":
		return args[0], nil
	}
	return "", misuse{fmt.Errorf("the arguments are %q, and one is expected; flags come before it", strings.Join(args, " "))}
}

// in returns where a file of the command line is.
func in(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}
