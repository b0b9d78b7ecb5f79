// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package envtest

import "syscall"

const exeSuffix = ""

// ownGroup puts a child into its own process group, so that a signal to the tests, such as an interrupt from the terminal,
// does not reach it.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
