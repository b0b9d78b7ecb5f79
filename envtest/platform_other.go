// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package envtest

import (
	"runtime"
	"syscall"
)

var exeSuffix = map[string]string{"windows": ".exe"}[runtime.GOOS]

func ownGroup() *syscall.SysProcAttr { return nil }
