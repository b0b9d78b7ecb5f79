// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/simulate"
)

var record = flag.Bool("record", false, "run the stories on a real server and write down what it says")

// within bounds the run time of one command.
const within = 2 * time.Minute

// step is one command of a story and its output. differs means that the output on the
// simulated server is different, for a reason in FIDELITY.md.
type step struct {
	command, said string
	differs       bool
}

func TestKubectl_TellsTheStoriesOfARealServer(t *testing.T) {
	binaries, err := envtest.Binaries(t.Context(), envtest.BinariesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stories, err := filepath.Glob("testdata/kubectl/*.txt")
	if err != nil || len(stories) == 0 {
		t.Fatalf("%d stories: %v", len(stories), err)
	}
	var env *envtest.Environment
	if *record {
		if env, err = envtest.Start(t.Context(), envtest.Options{}); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = env.Stop() }()
	}
	for _, path := range stories {
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		t.Run(name, func(t *testing.T) {
			s := &shell{t: t, dir: t.TempDir(), path: binaries}
			if *record {
				text, err := os.ReadFile(env.Kubeconfig())
				if err != nil {
					t.Fatal(err)
				}
				s.log(text, name)
				s.record(path)
				return
			}
			s.log(serve(t, name == "auth").Kubeconfig(), name)
			s.hold(path)
		})
	}
}

// serve starts a simulated server that runs until the test ends. With rights, it enforces
// RBAC.
func serve(t *testing.T, rights bool) *simulate.Loopback {
	t.Helper()
	l, err := simulate.Listen(simulate.ListenOptions{Options: simulate.Options{Authorization: rights}, Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return l
}

// shell runs the commands of a story.
type shell struct {
	t         *testing.T
	dir, path string
}

// log configures the commands to use a server, in a namespace that is created for the
// story.
func (s *shell) log(kubeconfig []byte, namespace string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "kubeconfig"), kubeconfig, 0o600); err != nil {
		s.t.Fatal(err)
	}
	if said := s.run("kubectl create namespace " + namespace + " && kubectl config set-context --current --namespace=" + namespace); strings.Contains(said, "exit status") {
		s.t.Fatal(said)
	}
}

// record runs a story and writes its file.
func (s *shell) record(path string) {
	var out strings.Builder
	comment, steps := story(s.t, path)
	out.WriteString(comment)
	for _, step := range steps {
		mark := "$"
		if step.differs {
			mark = "~"
		}
		fmt.Fprintf(&out, "%s %s\n%s", mark, step.command, s.run(step.command))
	}
	if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// hold runs a story and compares the output. It reports all differences, not only the
// first.
func (s *shell) hold(path string) {
	_, steps := story(s.t, path)
	for _, step := range steps {
		if said := s.run(step.command); said != step.said && !step.differs {
			s.t.Errorf("$ %s\nsays:\n%s\nof a real server:\n%s", step.command, said, step.said)
		}
	}
}

// story parses a file: comment lines, then each command after "$ ", or after "~ " if it is
// known to differ, and its output.
func story(t *testing.T, path string) (comment string, steps []step) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		mark, command, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch n := len(steps); {
		case mark == "$", mark == "~":
			steps = append(steps, step{command: command, differs: mark == "~"})
		case n == 0:
			comment += line
		default:
			steps[n-1].said += line
		}
	}
	return comment, steps
}

// run returns the output of a command, without what varies.
func (s *shell) run(command string) string {
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = "testdata/kubectl/files"
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(s.dir, "kubeconfig"), "KUBECACHEDIR="+filepath.Join(s.dir, "cache"),
		"TMP="+s.dir, "PATH="+s.path+":"+os.Getenv("PATH"), "TZ=UTC", "LC_ALL=C")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = within // a kubectl in the background has the output open
	err := cmd.Run()
	said := plain(strings.ReplaceAll(out.String(), s.dir, "TMP"))
	var exit *exec.ExitError
	switch {
	case cmp.Or(ctx.Err(), s.t.Context().Err()) != nil:
		s.t.Errorf("$ %s: not done after %s", command, within)
	case errors.As(err, &exit):
		said += fmt.Sprintf("exit status %d\n", exit.ExitCode())
	case err != nil:
		s.t.Fatal(err)
	}
	return said
}

// changing matches what varies between runs, with its replacement.
var changing = []struct {
	what  *regexp.Regexp
	token string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z][a-z] \d{4} \d\d:\d\d:\d\d \+0000`), "TIME"},
	{regexp.MustCompile(`(resourceVersion"?: )"\d+"`), `${1}"RV"`},
	{regexp.MustCompile(`(Resource Version: +)\d+`), "${1}RV"},
	{regexp.MustCompile(`\b3[0-2]\d{3}/`), "PORT/"},
	{regexp.MustCompile(`debugger-[a-z0-9]{5}`), "debugger-NAME"},
	{regexp.MustCompile(`\bshop-[a-z0-9]{8,10}-[a-z0-9]{5}\b`), "shop-HASH-NAME"},
	{regexp.MustCompile(`\b(shop-|hash=)[a-z0-9]{8,10}\b`), "${1}HASH"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "SERVER"},
	{regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`), "IP"},
	{regexp.MustCompile(`\b\d+(m\d+)?s\b`), "AGE"},
	{regexp.MustCompile(`(\S) {2,}`), "${1}  "},
	{regexp.MustCompile(` +\n`), "\n"},
	{regexp.MustCompile(`/tmp/[\w.-]+`), "TMP"},
	{regexp.MustCompile(`v1\.37\.\d+(\+\w+)?`), "VERSION"},
}

func plain(said string) string {
	for _, c := range changing {
		said = c.what.ReplaceAllString(said, c.token)
	}
	if said != "" && !strings.HasSuffix(said, "\n") {
		said += "\n"
	}
	return said
}
