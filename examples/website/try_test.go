// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/envtest"
)

// terminal is a shell beside the operator, with a real kubectl.
type terminal struct {
	home, path string
	exported   string // export commands that were typed
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	binaries, err := envtest.Binaries(t.Context(), envtest.BinariesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &terminal{home: t.TempDir(), path: binaries + string(os.PathListSeparator) + os.Getenv("PATH")}
}

func (term *terminal) command(t *testing.T, line string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", term.exported+line)
	cmd.Env = []string{"HOME=" + term.home, "PATH=" + term.path}
	cmd.WaitDelay = time.Second
	return cmd
}

// does runs a line to its end and expects output that matches want.
func (term *terminal) does(t *testing.T, line, want string) {
	t.Helper()
	if strings.HasPrefix(line, "export ") {
		term.exported += line + "\n"
		return
	}
	out, err := term.command(t, line).CombinedOutput()
	if err != nil || !regexp.MustCompile(want).Match(out) {
		t.Fatalf("$ %s\n%s%v, want %q", line, out, err, want)
	}
}

// follows starts a line that does not end, and waits until its output matches want. It ends
// with the server.
func (term *terminal) follows(t *testing.T, line, want string) {
	t.Helper()
	cmd := term.command(t, line)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // it fails when its server ends
	said := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said += lines.Text() + "\n"
		if regexp.MustCompile(want).MatchString(said) {
			return
		}
	}
	t.Fatalf("$ %s\n%shas ended, want %q", line, said, want)
}

// The commands that the program prints work as printed.
func TestTry_KubectlDoesWhatIsPrinted(t *testing.T) {
	m := newMachine(t)
	odd := filepath.Join(m.temp, "it's a $HOME")
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	p := machine{m.home, odd}.start(t)
	term := newTerminal(t)
	var typed []string
	apply := ""
	for _, line := range p.said {
		line, ok := strings.CutPrefix(line, "  ")
		if !ok {
			continue
		}
		typed = append(typed, strings.Join(strings.Fields(line)[:2], " "))
		switch {
		case strings.Contains(line, " -w"):
			term.follows(t, line, `(?m)^sample +2 +2 +http://sample\.default\.svc/ `)
		default:
			term.does(t, line, `^website\.example\.flyball\.dev/sample created\n$`)
		}
		if strings.Contains(line, " apply ") {
			apply = line
		}
	}
	if got, want := strings.Join(typed, "; "), "kubectl apply; kubectl get"; !strings.HasSuffix(got, want) || len(typed) != 3 {
		t.Errorf("it says to type %s; want an export, then %s", got, want)
	}
	term.does(t, "kubectl wait --for=condition=Ready websites/sample --timeout=1m", "condition met")
	term.does(t, "kubectl get deployments", `(?m)^sample +2/2 +2 +2 `)
	term.does(t, "kubectl rollout status deployment/sample --timeout=1m", "successfully rolled out")
	term.does(t, "kubectl describe websites/sample", "Serving")
	term.does(t, apply, `unchanged`)
	term.does(t, strings.Replace(apply, " apply ", " delete ", 1), `"sample" deleted`)
	term.does(t, "kubectl wait --for=delete deployments/sample --timeout=1m", "")
	for _, line := range toCopy(t) {
		term.does(t, line, "created|configured|applied")
	}
	p.stop(t, os.Interrupt)
	machine{m.home, odd}.clean(t)
}

// toCopy returns the kubectl commands at the beginning of README.md, for this directory.
func toCopy(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^    (kubectl .*?) +(&&|#)`).FindAllStringSubmatch(string(text), -1) {
		lines = append(lines, strings.ReplaceAll(m[1], "examples/website/", "./"))
	}
	if len(lines) != 2 {
		t.Errorf("README.md says to type %q, want one line to run outside a cluster, one to run in it", lines)
	}
	return lines
}
