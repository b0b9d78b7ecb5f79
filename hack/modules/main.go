// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Command modules runs a check in every module of this repository, each without the workspace,
// as users build it.
//
//	go run ./hack/modules list
//	go run ./hack/modules tidy                      go mod tidy changes nothing, go.work.sum is complete
//	go run ./hack/modules standalone                go build and go vet
//	go run ./hack/modules cross darwin/arm64 ...    go vet for other systems, guests left out
//	go run ./hack/modules lint                      staticcheck, pinned by hack/tools
//	go run ./hack/modules licenses                  hack/tools/licenses
//	go run ./hack/modules guests [name ...]         the tests of programs of others
//	go run ./hack/modules fuzz 10s                  each fuzz target of the workspace for a time
//	go run ./hack/modules vulncheck                 govulncheck of the root
//	go run ./hack/modules next [old=new ...]        the newest beta or release of Kubernetes, in a copy
//	go run ./hack/modules minors [suites]           the bridge with each minor of controller-runtime, in copies
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/flyball-dev/flyball/hack/internal/processgroup"
	"github.com/flyball-dev/flyball/internal/commandline"
)

func main() {
	if err := commandline.Flags(flag.CommandLine, os.Args[1:]); err != nil {
		os.Exit(commandline.ExitCode(err))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "modules:", err)
		os.Exit(1)
	}
}

// A repository has modules, and a writer for what the commands print.
type repository struct {
	root    string
	modules []string // directories from the root, which is "."
	out     io.Writer
	// progress is where programs write errors, and the go command what it downloads. Nil: to out.
	progress io.Writer
	env      []string // added to that of each program
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("name a check, such as tidy; go doc ./hack/modules lists them")
	}
	r, err := open(ctx, out)
	if err != nil {
		return err
	}
	switch check, rest := args[0], args[1:]; check {
	case "list":
		_, err := fmt.Fprintln(out, strings.Join(r.modules, "\n"))
		return err
	case "tidy":
		return r.tidy(ctx)
	case "standalone":
		return r.each(ctx, r.withPackages, nil, []string{"build", "-o", os.DevNull, "./..."}, []string{"vet", "./..."})
	case "cross":
		return r.cross(ctx, rest)
	case "lint":
		return r.lint(ctx)
	case "licenses":
		var dirs []string
		for _, module := range r.modules {
			dirs = append(dirs, filepath.Join("..", "..", module))
		}
		return r.command(ctx, "hack/tools", nil, "go", append([]string{"run", "./licenses", "-all"}, dirs...)...)
	case "guests":
		return r.guests(ctx, rest)
	case "fuzz":
		return r.fuzz(ctx, rest)
	case "vulncheck":
		return r.vulncheck(ctx)
	case "next":
		return r.next(ctx, rest)
	case "minors":
		return r.minors(ctx, rest)
	default:
		return fmt.Errorf("there is no check %q; go doc ./hack/modules lists them", check)
	}
}

func open(ctx context.Context, out io.Writer) (*repository, error) {
	r := &repository{root: ".", out: out}
	top, err := r.output(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	r.root = top
	files, err := r.output(ctx, ".", "git", "ls-files", "--cached", "--others", "--exclude-standard", "go.mod", "*/go.mod")
	if err != nil {
		return nil, err
	}
	for _, file := range strings.Fields(files) {
		if _, err := os.Stat(filepath.Join(top, file)); err == nil && !strings.Contains(file, "testdata/") {
			r.modules = append(r.modules, filepath.ToSlash(filepath.Dir(file)))
		}
	}
	slices.Sort(r.modules)
	return r, nil
}

// command runs a program in a directory of the repository, outside the workspace.
func (r *repository) command(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = filepath.Join(r.root, dir), slices.Concat(os.Environ(), []string{"GOWORK=off"}, r.env, env)
	cmd.Stdout, cmd.Stderr = r.out, r.out
	if r.progress != nil {
		cmd.Stderr = r.progress
	}
	processgroup.Lead(cmd, 0)
	defer processgroup.Kill(cmd)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s in %s: %w", name, strings.Join(args, " "), dir, err)
	}
	return nil
}

// output returns what a program prints.
func (r *repository) output(ctx context.Context, dir, name string, args ...string) (string, error) {
	var out, progress bytes.Buffer
	quiet := repository{root: r.root, out: &out, progress: &progress, env: r.env}
	err := quiet.command(ctx, dir, nil, name, args...)
	if err != nil {
		err = fmt.Errorf("%w\n%s%s", err, progress.String(), out.String())
	}
	return strings.TrimSpace(out.String()), err
}

// each runs go commands in every module that wanted selects, and joins the errors.
func (r *repository) each(ctx context.Context, wanted func(context.Context, string) bool, env []string, commands ...[]string) error {
	var errs []error
	for _, module := range r.modules {
		if !wanted(ctx, module) {
			continue
		}
		for _, args := range commands {
			fmt.Fprintf(r.out, "# %s: %s\n", module, strings.TrimSpace(strings.Join(append(slices.Clone(env), "go"), " ")+" "+strings.Join(args, " ")))
			errs = append(errs, r.command(ctx, module, env, "go", args...))
		}
	}
	return errors.Join(errs...)
}

func (r *repository) withPackages(ctx context.Context, module string) bool {
	listed, err := r.output(ctx, module, "go", "list", "./...")
	return err != nil || listed != "" && !strings.Contains(listed, "matched no packages")
}

func isGuest(module string) bool { return strings.HasPrefix(module, "hack/guests") }

func (r *repository) tidy(ctx context.Context) error {
	all := func(context.Context, string) bool { return true }
	err := r.each(ctx, all, nil, []string{"mod", "tidy", "-diff"})
	before, readErr := os.ReadFile(filepath.Join(r.root, "go.work.sum"))
	err = errors.Join(err, readErr, r.command(ctx, ".", []string{"GOWORK="}, "go", "mod", "download"))
	after, readErr := os.ReadFile(filepath.Join(r.root, "go.work.sum"))
	if err == nil && !bytes.Equal(before, after) {
		err = errors.New("go mod download has completed go.work.sum: commit it")
	}
	return errors.Join(err, readErr)
}

// cross vets for other systems. Nothing is linked, so packages are not optimized.
func (r *repository) cross(ctx context.Context, platforms []string) error {
	ours := func(ctx context.Context, module string) bool { return !isGuest(module) && r.withPackages(ctx, module) }
	var errs []error
	for _, platform := range platforms {
		system, processor, _ := strings.Cut(platform, "/")
		env := []string{"GOOS=" + system, "GOARCH=" + processor, "CGO_ENABLED=0"}
		errs = append(errs, r.each(ctx, ours, env, []string{"vet", "-gcflags=all=-N -l", "./..."}))
	}
	return errors.Join(errs...)
}

func (r *repository) tool(ctx context.Context, name string) (string, error) {
	return r.output(ctx, "hack/tools", "go", "tool", "-n", name)
}

func (r *repository) lint(ctx context.Context) error {
	program, err := r.tool(ctx, "staticcheck")
	if err != nil {
		return err
	}
	var errs []error
	for _, module := range r.modules {
		if !strings.HasPrefix(module, "hack/") {
			fmt.Fprintln(r.out, "# staticcheck in", module)
			errs = append(errs, r.command(ctx, module, nil, program, "./..."))
		}
	}
	return errors.Join(errs...)
}

// guests runs without the race detector, which would compile Kubernetes a second time.
func (r *repository) guests(ctx context.Context, names []string) error {
	all, err := filepath.Glob(filepath.Join(r.root, "hack", "guests", "*", "doc.go"))
	if err != nil {
		return err
	}
	var failed []error
	for _, doc := range all {
		name := filepath.Base(filepath.Dir(doc))
		if len(names) == 0 || slices.Contains(names, name) {
			fmt.Fprintln(r.out, "# guest", name)
			failed = append(failed, r.command(ctx, "hack/guests/"+name, nil, "go", "test", "-count=1", "-timeout=90m", "./..."))
		}
	}
	return errors.Join(failed...)
}

var fuzzTarget = regexp.MustCompile(`(?m)^(.*)/[^/]*_test\.go:func (Fuzz[A-Za-z0-9_]*)`)

func (r *repository) fuzz(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("fuzz: give the time for each target, such as 10s")
	}
	listed, err := r.output(ctx, ".", "git", "grep", "--untracked", "-h", "--full-name", "-H", "^func Fuzz", "--", "*_test.go")
	if err != nil {
		return err
	}
	for _, match := range fuzzTarget.FindAllStringSubmatch(listed, -1) {
		fmt.Fprintln(r.out, "#", match[1], match[2])
		if err := r.command(ctx, match[1], []string{"GOWORK="}, "go", "test", "-run=^$", "-fuzz=^"+match[2]+"$", "-fuzztime="+args[0], "."); err != nil {
			return err
		}
	}
	return nil
}

// vulncheck is skipped, and says so, where the database cannot be had, unless
// VULNCHECK_REQUIRED is set. GOVULNDB names another database.
func (r *repository) vulncheck(ctx context.Context) error {
	program, err := r.tool(ctx, "govulncheck")
	if err != nil {
		return err
	}
	database := cmp.Or(os.Getenv("GOVULNDB"), "https://vuln.go.dev")
	said, err := r.output(ctx, ".", program, "-db", database, "./...")
	if err == nil {
		fmt.Fprintln(r.out, said)
		return nil
	}
	missing := strings.Contains(said, "fetching vulnerabilities") || strings.Contains(said, "unrecognized vulndb format")
	if missing && os.Getenv("VULNCHECK_REQUIRED") == "" {
		fmt.Fprintf(r.out, "%s\nvulncheck: SKIPPED: %s cannot be had; nothing was checked\n", said, database)
		return nil
	}
	return err
}
