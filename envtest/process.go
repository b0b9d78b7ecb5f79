// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// pollEvery is the interval of readiness checks of a starting process.
const pollEvery = 25 * time.Millisecond

// errPortTaken is wrapped by the error of a process that exited because its port was in use.
var errPortTaken = errors.New("its port is taken")

// A process is one running etcd or kube-apiserver. Its output is appended to a file.
type process struct {
	name   string
	log    string
	logged int64 // bytes in log from earlier processes
	guard  *guard
	cmd    *exec.Cmd
	reaper sync.WaitGroup
	ended  chan struct{} // closed by the reaper
	err    error         // how it exited; read after ended
}

// startProcess starts the binary at path with args and its output in dir.
func startProcess(guard *guard, dir, path string, args []string) (*process, error) {
	name := filepath.Base(path)
	p := &process{name: name, log: filepath.Join(dir, name+".log"), guard: guard, ended: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer out.Close()
	if info, err := out.Stat(); err == nil {
		p.logged = info.Size()
	}
	p.cmd = exec.Command(path, args...)
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = ownGroup()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	guard.watch(p.cmd.Process.Pid)
	p.reaper.Go(func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	})
	return p, nil
}

// kill kills the process with SIGKILL and returns when it is gone. It returns an error if the process had exited on its
// own. A nil process is no error.
func (p *process) kill() error {
	if p == nil {
		return nil
	}
	own := p.endedItself()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	p.guard.unwatch(p.cmd.Process.Pid)
	p.reaper.Wait()
	return own
}

// endedItself returns how the process exited on its own; nil if it runs or p is nil.
func (p *process) endedItself() error {
	if p == nil {
		return nil
	}
	select {
	case <-p.ended:
		return p.death()
	default:
		return nil
	}
}

// waitReady calls ready until it returns nil, the process or ctx ends, or timeout passes.
func (p *process) waitReady(ctx context.Context, timeout time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not ready within %s", timeout))
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return p.death()
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; it last said: %w\n%s", p.name, context.Cause(ctx), err, p.words())
		case <-tick.C:
		}
	}
}

// death returns an error with the exit status of the process and its last output.
func (p *process) death() error {
	words := p.words()
	how := errors.New(p.cmd.ProcessState.String())
	if strings.Contains(words, "address already in use") {
		how = fmt.Errorf("%w: %v", errPortTaken, p.cmd.ProcessState)
	}
	return fmt.Errorf("%s ended by itself: %w\n%s", p.name, how, words)
}

// words returns the output of this process. Long output is shortened to its beginning, which names a wrong flag, and its
// end.
func (p *process) words() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return shorten(string(content[min(p.logged, int64(len(content))):]), 5, 15)
}

// shorten keeps the first and the last lines of a text.
func shorten(text string, first, last int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > first+last {
		lines = slices.Concat(lines[:first], []string{"…"}, lines[len(lines)-last:])
	}
	return strings.Join(lines, "\n")
}
