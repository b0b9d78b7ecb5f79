// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// listFile is the file in a directory with the names and hashes of the others.
const listFile = ".flyball-pack"

const listHeader = "# Written by flyball's pack, with the SHA-256 of its files. It replaces the directory only while they are the same.\n"

// replaceDir replaces a directory of generated files, and none that a person has written or
// changed. It makes dir have these files and no others. It refuses, and changes nothing, if
// there are files that it has not written, or that were changed since.
func replaceDir(dir string, files map[string][]byte) error {
	if err := checkDir(dir); err != nil {
		return err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	beside, err := os.MkdirTemp(filepath.Dir(dir), ".flyball-pack-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(beside) }()
	written, before := filepath.Join(beside, "new"), filepath.Join(beside, "old")
	if err := writeDir(written, files); err != nil {
		return err
	}
	if err := os.Rename(dir, before); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(written, dir); err != nil {
		return errors.Join(err, restoreDir(before, dir))
	}
	return nil
}

// restoreDir moves the directory back that was to be replaced, if there was one.
func restoreDir(before, dir string) error {
	if err := os.Rename(before, dir); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func writeDir(dir string, files map[string][]byte) error {
	var text strings.Builder
	text.WriteString(listHeader)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, files[name], 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sumOf(files[name]), name)
	}
	return os.WriteFile(filepath.Join(dir, listFile), []byte(text.String()), 0o644)
}

// listed returns the list of a directory: the checksum of each file that was written; empty if
// there is none.
func listed(dir string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, listFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if hash, name, found := strings.Cut(strings.TrimSuffix(line, "\n"), "  "); found && filepath.IsLocal(filepath.FromSlash(name)) {
			sums[name] = hash
		}
	}
	return sums, nil
}

// checkDir returns the error that replaceDir would return before it writes.
func checkDir(dir string) error {
	old, err := listed(dir)
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if path == dir && errors.Is(err, os.ErrNotExist) {
			return filepath.SkipAll
		}
		if path == dir && err == nil && !d.IsDir() {
			return fmt.Errorf("write into %s: it is a file; name another directory with -o", dir)
		}
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if name = filepath.ToSlash(name); err != nil || name == listFile {
			return err
		}
		hash, ours := old[name]
		if !ours {
			return fmt.Errorf("write into %s: this command has not written %s there; name an empty directory with -o, or remove this one", dir, name)
		}
		have, err := os.ReadFile(path)
		if err == nil && sumOf(have) != hash {
			return fmt.Errorf("write into %s: %s was changed since this command wrote it; make the change where it is generated from, then remove the file", dir, name)
		}
		return err
	})
}

func sumOf(text []byte) string {
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:])
}
