// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Command cold runs README's two commands as on a machine that has never seen this
// repository. It is what `make cold` calls.
//
//	go run ./hack/cold                   in a directory that is removed afterwards
//	go run ./hack/cold -dir DIR          in DIR, which stays
//	go run ./hack/cold -go DIR           with the Go in DIR/bin
//
// The last commit is cloned into a directory whose path has a space. The commands have
// empty caches, an empty home, an environment of PATH and the variables that reach a module
// proxy, no git identity, and a PATH with nothing but Go, git, make, a C compiler and the
// tools of POSIX. It prints what each command took and downloaded, and what it leaves on
// the disk. The first command that fails ends it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/flyball-dev/flyball/hack/internal/processgroup"
	"github.com/flyball-dev/flyball/internal/commandline"
)

// commands are the two of README.
var commands = [][]string{{"go", "run", "./examples/website", "-demo"}, {"make", "test"}}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	commandline.Exit("cold", run(ctx, os.Args[1:], os.Stdout))
}

// run is main with explicit arguments and output.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("cold", flag.ContinueOnError)
	dir := flags.String("dir", "", "work in this `directory`, which must be empty and stays")
	goroot := flags.String("go", "", "use the Go in this `directory`")
	if err := commandline.Parse(flags, args); err != nil {
		return err
	}
	m := machine{dir: *dir}
	if m.dir == "" {
		made, err := os.MkdirTemp("", "flyball-cold-")
		if err != nil {
			return err
		}
		m.dir = made
		defer removeAll(m.dir)
	}
	if err := m.prepare(ctx, *goroot); err != nil {
		return fmt.Errorf("prepare %s: %w", m.dir, err)
	}

	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "command\ttime\tdownloaded\tmodules\tbuild cache\tprograms\t")
	var failed error
	for _, command := range commands {
		before, err := m.measure()
		if err != nil {
			return err
		}
		began := time.Now()
		failed = m.run(ctx, out, command)
		took := time.Since(began)
		after, err := m.measure()
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t\n", strings.Join(command, " "), took.Round(time.Second),
			megabytes(after.downloaded-before.downloaded), after.modules-before.modules, megabytes(after.built-before.built), megabytes(after.programs-before.programs))
		if failed != nil {
			failed = fmt.Errorf("%s, after %s: %w", strings.Join(command, " "), took.Round(time.Second), failed)
			break
		}
	}
	left, err := m.measure()
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "on the disk, with the modules unpacked: %s\n", megabytes(left.all))
	return failed
}

// A machine is the directory that stands for a fresh machine.
type machine struct {
	dir string
}

func (m machine) tree() string { return filepath.Join(m.dir, "a path with a space", "flyball") }
func (m machine) home() string { return filepath.Join(m.dir, "home") }
func (m machine) bin() string  { return filepath.Join(m.dir, "bin") }
func (m machine) temp() string { return filepath.Join(m.dir, "tmp") }

// prepare makes the directories, links the tools and clones the tree.
func (m machine) prepare(ctx context.Context, goroot string) error {
	if found, err := os.ReadDir(m.dir); err == nil && len(found) > 0 {
		return errors.New("it is not empty")
	}
	for _, dir := range []string{filepath.Dir(m.tree()), m.home(), m.bin(), m.temp()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := m.link(goroot); err != nil {
		return err
	}
	top, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	clone := exec.CommandContext(ctx, "git", "clone", "--quiet", "--no-local", strings.TrimSpace(string(top)), m.tree())
	clone.Stderr = os.Stderr
	return clone.Run()
}

// link makes the PATH.
func (m machine) link(goroot string) error {
	missing := []string{}
	for _, tool := range tools {
		path, err := exec.LookPath(tool)
		if goroot != "" && (tool == "go" || tool == "gofmt") {
			path, err = filepath.Join(goroot, "bin", tool), nil
		}
		if err != nil {
			missing = append(missing, tool)
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return err
		}
		if err := os.Symlink(path, filepath.Join(m.bin(), tool)); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("this machine has no %s", strings.Join(missing, ", "))
	}
	return nil
}

// tools are what README asks for, with what a C compiler and POSIX consist of.
var tools = strings.Fields(`
	go gofmt git make
	cc gcc as ld ar
	sh awk basename cat chmod cksum cp cut date diff dirname env expr find grep head id kill ln ls mkdir mktemp mv
	printf ps pwd rm rmdir sed seq sleep sort tail tar tee test touch tr true false uname uniq wc xargs`)

// environment is all that the commands are given.
func (m machine) environment() []string {
	env := []string{"PATH=" + m.bin(), "HOME=" + m.home(), "TMPDIR=" + m.temp()}
	for _, name := range []string{
		"GOPROXY", "GONOPROXY", "GOSUMDB", "GONOSUMDB", "GOTOOLCHAIN", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
		"http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
	} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func (m machine) run(ctx context.Context, out io.Writer, command []string) error {
	fmt.Fprintf(out, "$ %s\n", strings.Join(command, " "))
	cmd := exec.CommandContext(ctx, filepath.Join(m.bin(), command[0]), command[1:]...)
	cmd.Dir, cmd.Env = m.tree(), m.environment()
	cmd.Stdout, cmd.Stderr = out, out
	processgroup.Lead(cmd, 20*time.Second)
	defer processgroup.Kill(cmd)
	return cmd.Run()
}

// A size is what the caches hold.
type size struct {
	downloaded int64 // bytes of the modules' archives
	modules    int   // and how many there are
	built      int64 // of the build cache
	programs   int64 // of the control plane and others in the user's cache
	all        int64 // of all directories
}

// measure adds the files up.
func (m machine) measure() (size, error) {
	var s size
	modules := filepath.Join(m.home(), "go", "pkg", "mod", "cache", "download")
	caches := filepath.Join(m.home(), ".cache")
	err := filepath.WalkDir(m.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		s.all += info.Size()
		switch {
		case under(path, modules):
			s.downloaded += info.Size()
			if strings.HasSuffix(path, ".zip") {
				s.modules++
			}
		case under(path, filepath.Join(caches, "go-build")):
			s.built += info.Size()
		case under(path, caches):
			s.programs += info.Size()
		}
		return nil
	})
	return s, err
}

func under(path, dir string) bool { return strings.HasPrefix(path, dir+string(filepath.Separator)) }

func megabytes(n int64) string { return fmt.Sprintf("%d MB", (n+500_000)/1_000_000) }

// removeAll removes dir with the module cache, whose directories cannot be written.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(dir))
}
