// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/gotree"
)

// module is the directory of a module. No file outside of it is read or written.
type module struct {
	root  *os.Root
	mod   []byte // go.mod
	files []File
	left  []Finding // files that cannot be read
}

// open reads the Go files of the module in a directory, but not those of modules in it.
func open(dir string) (*module, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("read the module: %w; give its directory with -C", err)
	}
	m := &module{root: root}
	if m.mod, err = root.ReadFile("go.mod"); err != nil {
		err = fmt.Errorf("%w; give the directory that has the operator's go.mod with -C", err)
	} else {
		err = fs.WalkDir(root.FS(), ".", m.add)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the module in %s: %w", dir, err), root.Close())
	}
	return m, nil
}

// add reads a file, if the go command would. What cannot be read is noted.
func (m *module) add(name string, entry fs.DirEntry, err error) error {
	base := path.Base(name)
	ignored := name != "." && (base[0] == '.' || base[0] == '_')
	switch {
	case err != nil:
		text := "cannot be read, and is left as it is: " + err.Error()
		m.left = append(m.left, Finding{File: name, Text: text})
		return nil
	case entry.IsDir():
		_, err := m.root.Lstat(path.Join(name, "go.mod"))
		if ignored || base == "vendor" || base == "testdata" || name != "." && err == nil {
			return fs.SkipDir
		}
	case ignored || !strings.HasSuffix(base, ".go"):
	case !entry.Type().IsRegular():
		text := "is not a regular file, and is left as it is"
		m.left = append(m.left, Finding{File: name, Note: true, Text: text})
	default:
		text, err := m.root.ReadFile(name)
		if err != nil {
			return m.add(name, entry, err)
		}
		m.files = append(m.files, File{name, text})
	}
	return nil
}

// declared returns the names that the package in a directory declares.
func (m *module) declared(dir string) map[string]bool {
	names := map[string]bool{}
	for _, file := range m.files {
		if path.Dir(file.Name) != dir {
			continue
		}
		if f, err := gotree.Parse(file.Name, file.Text); err == nil {
			for _, name := range f.Declared() {
				names[name] = true
			}
		}
	}
	return names
}

// saved returns the files of go.mod as they are, to restore them. A nil text: there is none.
func (m *module) saved() ([]File, error) {
	files := []File{{"go.mod", m.mod}}
	sum, err := m.root.ReadFile("go.sum")
	if errors.Is(err, fs.ErrNotExist) {
		sum, err = nil, nil
	}
	return append(files, File{"go.sum", sum}), err
}

// write replaces files, or none: if one cannot be written, those before are restored.
func (m *module) write(files, before []File) error {
	for i, file := range files {
		if err := m.replace(file); err != nil {
			return errors.Join(err, m.restore(before[:i]))
		}
	}
	return nil
}

// restore makes files again what they were.
func (m *module) restore(files []File) error {
	var all error
	for _, file := range files {
		now, err := m.root.ReadFile(file.Name)
		switch {
		case file.Text == nil && err == nil:
			err = m.root.Remove(file.Name)
		case file.Text == nil:
			err = nil
		case !bytes.Equal(now, file.Text):
			err = m.replace(file)
		}
		all = errors.Join(all, err)
	}
	return all
}

// replace writes a file as a whole or not at all. Its mode stays.
func (m *module) replace(file File) error {
	info, err := m.root.Stat(file.Name)
	mode := fs.FileMode(0o644)
	if err == nil {
		mode = info.Mode().Perm()
	}
	dir, base := path.Split(file.Name)
	temporary := fmt.Sprintf("%s.%s.%d", dir, base, os.Getpid())
	part, err := m.root.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", file.Name, err)
	}
	defer func() { _ = m.root.Remove(temporary) }() // gone if it was renamed
	_, err = part.Write(file.Text)
	if err := errors.Join(err, part.Chmod(mode), part.Sync(), part.Close()); err != nil {
		return fmt.Errorf("write %s: %w", file.Name, err)
	}
	return m.root.Rename(temporary, file.Name)
}
