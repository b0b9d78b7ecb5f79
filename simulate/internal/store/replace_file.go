// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// ReplaceFile replaces the content of the file at path by what write writes. Only this user
// can read the file. A reader finds the old content or the new, also after a crash.
func ReplaceFile(path string, write func(io.Writer) error) error {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return err
	}
	err = errors.Join(write(file), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return syncDir(dir)
}

// syncDir makes renames in a directory durable. Some systems cannot sync directories and need
// not.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	_ = dir.Sync()
	return dir.Close()
}
