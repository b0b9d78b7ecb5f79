// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
)

// free returns how many bytes can still be written where dir is, or will be.
func free(dir string) (int64, error) {
	var disk syscall.Statfs_t
	err := syscall.Statfs(dir, &disk)
	if parent := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && parent != dir {
		return free(parent)
	}
	return int64(disk.Bavail) * int64(disk.Bsize), err
}
