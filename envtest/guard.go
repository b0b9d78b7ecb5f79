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

// guardScript reads "+ pid" and "- pid" from its input. When the input ends, it kills the listed processes and removes the
// directory. A listed pid can belong to another process only if its owner died at the same moment as the tests.
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

// A guard cleans up when the test process is killed: it is a small shell whose input is a pipe that only the tests hold
// open. Linux's parent-death signal does not work for this: it belongs to the thread that started the child, and threads
// may end before their process does.
//
// Without a shell, a guard does nothing.
type guard struct {
	dir string
	cmd *exec.Cmd
	mu  struct {
		sync.Mutex
		pipe io.WriteCloser // nil if there is no shell, or after release
	}
}

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

func (g *guard) watch(pid int)   { g.send("+", pid) }
func (g *guard) unwatch(pid int) { g.send("-", pid) }

// send writes a line that fits into the pipe's buffer, so it does not block. If the guard has been killed, only the cleanup
// is lost.
func (g *guard) send(op string, pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.pipe != nil {
		fmt.Fprintln(g.mu.pipe, op, pid)
	}
}

// release removes the directory and ends the guard. Further calls do nothing.
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
