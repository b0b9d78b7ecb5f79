// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package doctor

import (
	"os/exec"
	"syscall"
)

// asGroup gives a process and its children a group of their own.
func asGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup kills a process and its children.
func endGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// hold stops a process, or lets it go on.
func hold(cmd *exec.Cmd, still bool) {
	signal := syscall.SIGCONT
	if still {
		signal = syscall.SIGSTOP
	}
	_ = syscall.Kill(-cmd.Process.Pid, signal)
}
