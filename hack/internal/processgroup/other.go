// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package processgroup

import (
	"os/exec"
	"time"
)

// Lead lets cmd be killed alone when its context ends.
func Lead(cmd *exec.Cmd, grace time.Duration) { cmd.WaitDelay = grace }

// Kill does nothing.
func Kill(*exec.Cmd) {}
