// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The names that envtest looks for.
const (
	etcdName          = "etcd"
	kubeAPIServerName = "kube-apiserver"
)

// install puts this program into a directory under the names of the binaries that envtest
// starts, and prints the directory.
func install(args []string, out io.Writer) error {
	if len(args) != 1 || args[0] == "" || args[0][0] == '-' {
		return errors.New("install: name one directory, for example: apiserver install ./bin/simulated")
	}
	dir, err := filepath.Abs(args[0])
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("install: %w; name a directory that you can write to", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("install: find this program: %w", err)
	}
	first, second := filepath.Join(dir, kubeAPIServerName+exeSuffix), filepath.Join(dir, etcdName+exeSuffix)
	if err := copyProgram(self, first); err != nil {
		return fmt.Errorf("install: %w; name a directory that you can write to", err)
	}
	if err := linkProgram(first, second); err != nil {
		return fmt.Errorf("install: %w; name a directory that you can write to", err)
	}
	_, err = fmt.Fprintln(out, dir)
	return err
}

// linkProgram makes the file at from available at to as well; where the file system has no
// links, as a copy.
func linkProgram(from, to string) error {
	link, err := os.MkdirTemp(filepath.Dir(to), ".install-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(link) }()
	file := filepath.Join(link, filepath.Base(to))
	if err := os.Link(from, file); err != nil {
		return copyProgram(from, to)
	}
	return os.Rename(file, to)
}

// copyProgram replaces the file at to at once, so that a program that runs from it goes on.
func copyProgram(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	file, err := os.CreateTemp(filepath.Dir(to), ".install-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	if _, err := io.Copy(file, in); err != nil {
		return err
	}
	if err := errors.Join(file.Chmod(0o755), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), to)
}
