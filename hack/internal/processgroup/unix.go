// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package processgroup ends the processes that a command starts together with it. The go
// command and make do not end theirs: a test's API server would stay.
package processgroup

import (
	"os/exec"
	"syscall"
	"time"
)

// Lead makes cmd the leader of a group. When its context ends, the group is interrupted; what
// has not ended after the grace period, or is left when cmd ends, is killed by Kill.
func Lead(cmd *exec.Cmd, grace time.Duration) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = grace
}

// Kill ends what is left of the group of cmd, which has been waited for.
func Kill(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
