// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// replicaName is the environment variable with the name of a process of the operator.
const replicaName = "FLYBALL_REPLICA"

// process is a process of the operator. It ends when its standard input does: also when this
// program is killed.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	waits sync.WaitGroup
	ended chan struct{} // closed when it has ended
	err   error         // of that
}

// start starts this program anew as a process of the operator.
func start(name, kubeconfig string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), replicaName+"="+name, "KUBECONFIG="+kubeconfig)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, stdin: stdin, ended: make(chan struct{})}
	p.waits.Go(func() {
		defer close(p.ended)
		p.err = cmd.Wait()
	})
	return p, nil
}

// kill ends the process with SIGKILL, so that it can give nothing away.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	p.waits.Wait()
	return nil
}

// askToStop lets the process give its shards away and end.
func (p *process) askToStop() { _ = p.stdin.Close() } // it fails if the process has ended

// wait returns when the process has ended.
func (p *process) wait() error {
	p.waits.Wait()
	if p.err != nil {
		return fmt.Errorf("%s ended: %w", p.name, p.err)
	}
	return nil
}

// lost returns an error if the process has ended.
func (p *process) lost() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s has ended before the story did; its messages are above", p.name)
	default:
		return nil
	}
}
