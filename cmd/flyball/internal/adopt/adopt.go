// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package adopt is flyball adopt, which edits an operator that is written with controller-runtime
// to use Flyball's bridge.
//
//	go.mod, *.go ──▶ module ──▶ Edit, Undo, Check ──▶ module ──▶ go get, go mod tidy
//	                 os.Root    bytes to bytes        rename     an error restores all files
//
// The edit inserts bytes around the options of a manager and a line of imports. What it finds, it
// finds in the syntax alone: it needs no build, and works offline.
package adopt

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/internal/commandline"
)

// A Command is flyball adopt.
type Command struct {
	// Version of the bridge to require by default. Empty: latest.
	Version string
	// RunGo runs the go command in a directory. Its error has what the command prints.
	RunGo func(ctx context.Context, dir string, args ...string) error

	dir               string
	check, only, undo bool
	out, problems     io.Writer
}

const usage = `usage: flyball adopt [flags]

Edits the operator in this directory, which is written with controller-runtime, to run on Flyball's
informers: in packages and in suite_test.go, bridge.Options goes around the options of
ctrl.NewManager and manager.New. Then go get and go mod tidy complete go.mod.

`

const effects = `
At run time:
  reads have every earlier write of the same client: code that waits for the cache can go
  an object that cannot be decoded is an error of its own Get; its kind goes on
  a hung server or a silent watch is detected, logged and repaired
  a start with 20,000 Pods takes half of the memory and of the CPU; what does not fit is packed
  cached objects share equal parts: modify copies only, as before
  all else is as before, except for what DIFFERENCES.md of the bridge lists
`

const noCall = "no call of ctrl.NewManager or manager.New can be edited"

// errChecked is returned after the report was printed.
var errChecked = errors.New("what is listed above stands in the way")

// Run runs the command with the given arguments, and returns its exit code.
func (c Command) Run(ctx context.Context, args []string, out, problems io.Writer) int {
	c.out, c.problems = out, problems
	version := ""
	flags := flag.NewFlagSet("flyball adopt", flag.ContinueOnError)
	flags.SetOutput(problems)
	flags.Usage = func() {
		fmt.Fprint(problems, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&c.dir, "C", ".", "`directory` of the operator's module")
	flags.BoolVar(&c.check, "check", false,
		"change nothing; print what stands in the way, and exit with 1 if anything does")
	flags.BoolVar(&c.only, "n", false,
		"edit the Go files only, and print the commands for go.mod instead of running them")
	flags.BoolVar(&c.undo, "undo", false, "remove what flyball adopt has added")
	flags.StringVar(&version, "version", "",
		"`version` of the bridge to require (default: that of flyball, or if it has none, latest)")
	if err := commandline.Parse(flags, args); err != nil {
		return commandline.ExitCode(err)
	}
	if c.check && c.undo {
		fmt.Fprintln(problems, "flyball adopt: -check is about an edit to make; give it without -undo")
		return 2
	}
	if err := c.run(ctx, version); err != nil {
		fmt.Fprintln(problems, "flyball adopt:", err)
		return 1
	}
	return 0
}

func (c Command) run(ctx context.Context, version string) error {
	m, err := open(c.dir)
	if err != nil {
		return err
	}
	defer func() { _ = m.root.Close() }() // nothing is written through it
	if _, line := required(m.mod, controllerRuntime); line == 0 {
		return fmt.Errorf("go.mod in %s does not require %s; "+
			"give the directory of an operator that does with -C", c.dir, controllerRuntime)
	}
	p := c.plan(m)
	switch {
	case c.check:
		return c.report(m, p)
	case c.undo && len(p.files) == 0:
		fmt.Fprintln(c.out, "no call has bridge.Options around its options; nothing is changed")
		return nil
	case !c.undo:
		if f := checkVersion(m.mod); f != nil {
			return fmt.Errorf("nothing is changed: %s", f)
		}
		if len(p.files) == 0 && p.wrapped == 0 {
			c.print(p.left)
			return fmt.Errorf("nothing is changed: %s; write bridge.Options(…) around the options", noCall)
		}
	}
	if err := m.write(p.files, p.before); err != nil {
		return fmt.Errorf("the edits are undone: %w", err)
	}
	c.print(p.changed)
	c.print(p.left)
	if err := c.complete(ctx, m, p, version); err != nil {
		return err
	}
	c.explain(m, p)
	return nil
}

// plan is what is to be written.
type plan struct {
	files, before []File
	changed, left []Finding
	wrapped       int
}

func (c Command) plan(m *module) plan {
	p := plan{left: m.left}
	for _, file := range m.files {
		if !strings.Contains(string(file.Text), controllerRuntime) {
			continue
		}
		var r Result
		var err error
		if c.undo {
			r, err = Undo(file)
		} else {
			r, err = Edit(file, m.declared(path.Dir(file.Name)))
		}
		if err != nil {
			p.left = append(p.left, unreadable(file, err))
			continue
		}
		if len(r.Changed) > 0 {
			p.files, p.before = append(p.files, File{file.Name, r.Text}), append(p.before, file)
		}
		p.changed, p.left = append(p.changed, r.Changed...), append(p.left, r.Left...)
		p.wrapped += r.Wrapped
	}
	return p
}

func (c Command) print(findings []Finding) {
	for _, f := range findings {
		fmt.Fprintln(c.out, f)
	}
}

// report prints what is found without an edit.
func (c Command) report(m *module, p plan) error {
	found, blocked := Check(m.mod, m.files), false
	for _, f := range p.left {
		if f.Note || f.Line == 0 { // Check has those that do not parse
			found = append(found, f)
		}
	}
	if len(p.changed) == 0 && p.wrapped == 0 {
		found = append(found, Finding{File: "go.mod", Text: noCall})
	}
	for _, f := range found {
		fmt.Fprintln(c.out, f)
		blocked = blocked || !f.Note
	}
	if blocked {
		return errChecked
	}
	fmt.Fprintf(c.out, "nothing stands in the way; calls to edit: %d, with the bridge already: %d\n",
		len(p.changed), p.wrapped)
	return nil
}

// complete lets the go command complete go.mod. If it fails, all files are restored.
func (c Command) complete(ctx context.Context, m *module, p plan, version string) error {
	var commands [][]string
	_, line := required(m.mod, bridgePath)
	switch {
	case c.undo:
	case line == 0 || version != "":
		wanted := cmp.Or(version, c.Version, "latest")
		commands = append(commands, []string{"get", bridgePath + "@" + wanted})
	case len(p.files) == 0:
		return nil
	}
	saved, err := m.saved()
	if err != nil {
		return errors.Join(fmt.Errorf("the edits are undone: %w", err), m.restore(p.before))
	}
	for _, args := range append(commands, []string{"mod", "tidy"}) {
		command := "go " + strings.Join(args, " ")
		if c.only {
			fmt.Fprintln(c.out, "to run:", command)
			continue
		}
		fmt.Fprintln(c.out, command)
		if err := c.RunGo(ctx, c.dir, args...); err != nil {
			undone := m.restore(append(p.before, saved...))
			if undone != nil {
				return fmt.Errorf("%s failed: %w\nthe edits cannot be undone: %w; "+
					"take the files from version control", command, err, undone)
			}
			return fmt.Errorf("the edits are undone, as %s failed: %w\n%s", command, err, advice)
		}
	}
	return nil
}

const advice = "give a released version with -version, or edit without the go command with -n\n" +
	"and complete go.mod by hand: for a clone of Flyball by go mod edit -replace and go mod tidy"

// explain prints what the edits mean.
func (c Command) explain(m *module, p plan) {
	if _, err := m.root.Lstat("vendor/modules.txt"); err == nil {
		fmt.Fprintln(c.out, "to run: go mod vendor")
	}
	switch {
	case c.undo:
		fmt.Fprintln(c.out, "go.mod may keep versions that go get has raised; git checkout restores it")
	case len(p.files) == 0:
		fmt.Fprintf(c.out, "%d calls have bridge.Options already; no Go file is changed\n", p.wrapped)
	default:
		for _, f := range Check(m.mod, m.files) {
			if !f.Note && !slices.Contains(p.left, f) {
				fmt.Fprintln(c.problems, "flyball adopt: warning:", f)
			}
		}
		fmt.Fprint(c.out, effects)
		fmt.Fprint(c.out, "To undo: flyball adopt -undo, or git checkout --")
		for _, file := range append(p.files, File{Name: "go.mod"}, File{Name: "go.sum"}) {
			fmt.Fprint(c.out, " ", file.Name)
		}
		fmt.Fprintln(c.out)
	}
}
