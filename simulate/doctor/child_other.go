// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package doctor

import "os/exec"

func asGroup(*exec.Cmd) {}

func endGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// hold does nothing: there is no signal for it.
func hold(*exec.Cmd, bool) {}
