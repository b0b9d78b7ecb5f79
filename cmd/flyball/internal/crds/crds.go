// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/flyball-dev/flyball/internal/commandline"
)

// Exit codes.
const (
	success = 0
	failure = 1 // bad input, or a file that differs
	usage   = 2
)

// command is what the flags say.
type command struct {
	dir    string // to run in; empty: the current one
	out    string // file to write; empty: stdout
	merge  string // file with parts of definitions; empty: none
	check  bool
	floats bool
	most   int // length of a description; negative: any
}

// Run runs the command with the given arguments, and returns its exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c command
	fs := flag.NewFlagSet("flyball crds", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprintln(stderr, "usage: flyball crds [flags] [packages], such as flyball crds -o config/crd.yaml ./api/...")
		fs.PrintDefaults()
	}
	fs.StringVar(&c.dir, "C", "", "`directory` to run in (default: the current one)")
	fs.StringVar(&c.out, "o", "", "`file` to write (default: stdout)")
	fs.StringVar(&c.merge, "merge", "", "YAML `file` with definitions, by name, whose fields are merged in, such as spec.conversion (default: none)")
	fs.BoolVar(&c.check, "check", false, "write nothing; print a diff and exit with 1 if the file differs")
	fs.BoolVar(&c.floats, "floats", false, "allow float32 and float64, which JSON does not carry exactly")
	fs.IntVar(&c.most, "max-description", -1, "`length` of a description in characters; 0: none, negative: any")
	if err := commandline.Flags(fs, args); err != nil {
		return commandline.ExitCode(err)
	}
	if c.check && c.out == "" {
		fmt.Fprintln(stderr, "flyball crds: -check compares a file; name it with -o")
		return usage
	}
	patterns := fs.Args()
	for _, p := range patterns {
		if name := strings.TrimLeft(p, "-"); fs.Lookup(name) != nil || name != p {
			fmt.Fprintf(stderr, "flyball crds: %q is not a package; flags come before packages, such as -%s\n", p, name)
			return usage
		}
	}
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	if err := c.run(ctx, patterns, stdout); err != nil {
		fmt.Fprintln(stderr, "flyball crds:", err)
		return failure
	}
	return success
}

// errDiffers is returned after the diff was printed.
var errDiffers = errors.New("differs from what the types say; run flyball crds without -check")

func (c command) run(ctx context.Context, patterns []string, stdout io.Writer) error {
	text, err := c.generate(ctx, patterns)
	if err != nil {
		return err
	}
	if c.out == "" {
		_, err := stdout.Write(text)
		return err
	}
	file := c.path(c.out)
	have, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	switch {
	case err == nil && bytes.Equal(have, text):
		return nil
	case c.check:
		fmt.Fprint(stdout, diff(c.out, have, text))
		return fmt.Errorf("%s %w", c.out, errDiffers)
	}
	return replace(file, text)
}

// path returns where a file of the command line is.
func (c command) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(c.dir, name)
}

// replace writes a file as a whole or not at all.
func replace(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(file), ".crdgen-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(part.Name()) }() // gone if it was renamed
	_, err = part.Write(text)
	if err := errors.Join(err, part.Chmod(0o644), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), file)
}
