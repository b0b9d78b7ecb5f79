// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package filelock

import (
	"errors"
	"io/fs"
	"os"
)

// Try takes the lock, which is the existence of the file at path, or returns
// nil if it is taken. The file of a killed process must be removed by hand.
func Try(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return func() { file.Close(); os.Remove(path) }, nil
}
