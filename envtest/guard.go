// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// guardScript reads "+ pid" and "- pid" from its input. When the input ends it kills who is left and removes the
// directory. A pid on the list cannot have passed to a stranger unless its owner died in the same moment as the tests.
const guardScript = `
pids=
while read -r op pid; do
	case $op in
	+) pids="$pids $pid" ;;
	-) left=
		for p in $pids; do
			[ "$p" = "$pid" ] || left="$left $p"
		done
		pids=$left ;;
	esac
done
for p in $pids; do kill -9 "$p"; done
for try in 1 2 3 4 5; do
	rm -rf "$1" && exit
	sleep 1
done
`

// A guard sees to it that nothing is left when the process of the tests dies without a word: it is a small shell whose
// input is a pipe that only the tests hold open. The parent-death signal of Linux would not do: it is tied to the
// thread that started the child, and threads may end before their process does.
//
// Where there is no shell, a guard guards nothing.
type guard struct {
	dir string
	cmd *exec.Cmd
	mu  struct {
		sync.Mutex
		pipe io.WriteCloser // nil when there is no shell or it has been released
	}
}

// startGuard starts the guard of the directory dir.
func startGuard(dir string) (*guard, error) {
	g := &guard{dir: dir}
	shell, err := exec.LookPath("sh")
	if err != nil {
		return g, nil
	}
	g.cmd = exec.Command(shell, "-c", guardScript, "envtest-guard", dir)
	g.cmd.SysProcAttr = ownGroup()
	pipe, err := g.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the guard of %q: %w", dir, err)
	}
	if err := g.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the guard of %q: %w", dir, err)
	}
	g.mu.pipe = pipe
	return g, nil
}

func (g *guard) watch(pid int)   { g.tell("+", pid) }
func (g *guard) unwatch(pid int) { g.tell("-", pid) }

// tell writes a line that fits into the pipe's buffer, so it does not block. A guard that someone has killed costs its
// help, not the test.
func (g *guard) tell(op string, pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.pipe != nil {
		fmt.Fprintln(g.mu.pipe, op, pid)
	}
}

// release removes the directory and ends the guard. A second call does nothing.
func (g *guard) release() error {
	err := os.RemoveAll(g.dir)
	g.mu.Lock()
	pipe := g.mu.pipe
	g.mu.pipe = nil
	g.mu.Unlock()
	if pipe == nil {
		return err
	}
	return errors.Join(err, pipe.Close(), g.cmd.Wait())
}
