// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package commandline parses the flags of programs that must not run with others than meant:
// without the dash of a flag, a program would ignore it, and act on a real cluster.
package commandline

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/flyball-dev/flyball/internal/editdistance"
)

// Misuse is an error of the command line. Programs exit with 2 for it.
type Misuse struct{ text string }

func (m Misuse) Error() string { return m.text }

// Misusef returns a Misuse.
func Misusef(format string, args ...any) error { return Misuse{fmt.Sprintf(format, args...)} }

// ExitCode returns 0 without an error and after -help, 2 for a Misuse, and 1 for other errors.
func ExitCode(err error) int {
	var wrong Misuse
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &wrong):
		return 2
	}
	return 1
}

// Exit ends a program of this name, which err has ended. It prints err, unless Parse or Flags has.
func Exit(name string, err error) {
	code := ExitCode(err)
	if code == 1 {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	}
	os.Exit(code)
}

// Parse parses args, which are flags alone, as fs.Parse does. Arguments are refused, with the
// flag that is likely meant. fs.Output is told the error; the flag set's error handling
// decides whether it is returned, ends the process, or panics.
func Parse(fs *flag.FlagSet, args []string) error {
	handling := fs.ErrorHandling()
	fs.Init(fs.Name(), flag.ContinueOnError)
	err := Flags(fs, args)
	if err == nil && fs.NArg() > 0 {
		err = Refuse(fs, args)
		fmt.Fprintln(fs.Output(), err)
	}
	fs.Init(fs.Name(), handling)
	if err != nil && handling == flag.ExitOnError {
		os.Exit(ExitCode(err))
	}
	if err != nil && handling == flag.PanicOnError {
		panic(err)
	}
	return err
}

// Flags parses the flags at the start of args. For an unknown one, fs.Output is told the
// nearest, before the usage.
func Flags(fs *flag.FlagSet, args []string) error {
	out, usage := fs.Output(), fs.Usage
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	err := fs.Parse(args)
	fs.SetOutput(out)
	fs.Usage = usage
	if err == nil {
		return nil
	}
	if !errors.Is(err, flag.ErrHelp) {
		err = explain(fs, err)
		fmt.Fprintln(out, err)
	}
	if usage == nil {
		fmt.Fprintf(out, "Usage of %s:\n", fs.Name())
		usage = fs.PrintDefaults
	}
	usage()
	return err
}

// Arguments parses flags before and after at most so many other arguments, and returns those.
// give says what to write in place of more.
func Arguments(fs *flag.FlagSet, args []string, most int, give string) (others []string, err error) {
	for {
		if err := Flags(fs, args); err != nil {
			return nil, err
		}
		switch {
		case fs.NArg() == 0:
			return others, nil
		case len(others) == most:
			return nil, Misusef("%v; give %s", Refuse(fs, args), give)
		}
		others, args = append(others, fs.Arg(0)), fs.Args()[1:]
	}
}

// explain names the flag that is nearest to an unknown one.
func explain(fs *flag.FlagSet, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return Misuse{err.Error()}
	}
	if near := nearest(fs, name); near != "" {
		return Misusef("there is no flag -%s; do you mean -%s?", name, near)
	}
	return Misusef("there is no flag -%s", name)
}

// Refuse returns the error for the first argument that fs has left of args.
func Refuse(fs *flag.FlagSet, args []string) error {
	arg := fs.Arg(0)
	if before := len(args) - fs.NArg() - 1; before >= 0 {
		name := strings.TrimLeft(args[before], "-")
		if _, err := strconv.ParseBool(arg); err == nil && fs.Lookup(name) != nil {
			return Misusef("%q is not a flag; do you mean -%s=%s?", arg, name, arg)
		}
	}
	if near := nearest(fs, arg); near != "" {
		return Misusef("%q is not a flag; do you mean -%s?", arg, near)
	}
	return Misusef("%q is one argument too many; flags begin with -, and -help lists them", arg)
}

// nearest returns the flag that word, or its part before an equals sign, is likely meant to
// be. Empty: none is near.
func nearest(fs *flag.FlagSet, word string) string {
	word, _, _ = strings.Cut(strings.ToLower(word), "=")
	name, least := "", 1+len(word)/3
	fs.VisitAll(func(f *flag.Flag) {
		switch d := editdistance.Of(word, f.Name); {
		case len(word) < 2 && d > 0, d > least, d == least && name != "":
		default:
			name, least = f.Name, d
		}
	})
	return name
}
