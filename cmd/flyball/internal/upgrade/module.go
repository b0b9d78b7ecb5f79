// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const rootModule = "github.com/flyball-dev/flyball"

// A module is the module of a user, with changes that are not written yet: a copy of go.mod
// and go.sum, and an overlay of files.
type module struct {
	dir     string // has go.mod
	aside   string // a temporary directory
	require []string
	version string            // of Flyball, that the copy requires
	changed map[string][]byte // files by path
}

// open describes the module of a directory. close removes the copy.
func open(dir string) (m *module, err error) {
	m = &module{changed: map[string][]byte{}}
	if m.dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	out, err := m.goCommand(nil, "env", "GOMOD")
	if err != nil {
		return nil, err
	}
	if out = strings.TrimSpace(out); out == "" || out == os.DevNull {
		return nil, fmt.Errorf("%s is in no module: run the command in the module of an operator, or name it with --dir", dir)
	}
	m.dir = filepath.Dir(out)
	if m.aside, err = os.MkdirTemp("", "flyball-upgrade"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = m.close()
		}
	}()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(m.dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(m.aside, name), text, 0o644); err != nil {
			return nil, err
		}
	}
	return m, m.readRequirements()
}

func (m *module) close() error { return os.RemoveAll(m.aside) }

// readRequirements reads which modules of Flyball are required, and at which version.
func (m *module) readRequirements() error {
	out, err := m.goCommand(nil, "mod", "edit", "-json", filepath.Join(m.aside, "go.mod"))
	if err != nil {
		return err
	}
	var mod struct {
		Require []struct{ Path, Version string }
		Replace []struct {
			Old, New struct{ Path, Version string }
		}
	}
	if err := json.Unmarshal([]byte(out), &mod); err != nil {
		return fmt.Errorf("read what go mod edit prints: %w", err)
	}
	for _, r := range mod.Replace {
		if isFlyball(r.Old.Path) {
			return fmt.Errorf("go.mod replaces %s by %s, whose version is not this command's to choose: remove the replacement first", r.Old.Path, r.New.Path)
		}
	}
	m.require, m.version = nil, ""
	for _, r := range mod.Require {
		if isFlyball(r.Path) {
			m.require = append(m.require, r.Path)
			if r.Path == rootModule || m.version == "" {
				m.version = r.Version
			}
		}
	}
	if m.version == "" {
		return fmt.Errorf("%s requires no version of %s: run the command in the module of an operator, or name it with --dir", filepath.Join(m.dir, "go.mod"), rootModule)
	}
	return nil
}

func isFlyball(path string) bool {
	return path == rootModule || strings.HasPrefix(path, rootModule+"/")
}

// resolve returns the version for a query such as latest.
func (m *module) resolve(query string) (string, error) {
	out, err := m.goCommand(nil, append([]string{"list", "-m", "-f", "{{.Version}}"}, append(m.flags(), rootModule+"@"+query)...)...)
	return strings.TrimSpace(out), err
}

// move has the copy require another version of each module of Flyball. Packages may have
// moved to a module that is not required yet: tidy adds it.
func (m *module) move(version string) error {
	if version == m.version {
		return nil
	}
	for range 2 {
		args := []string{"mod", "edit"}
		for _, path := range m.require {
			args = append(args, "-require="+path+"@"+version)
		}
		if _, err := m.goCommand(nil, append(args, filepath.Join(m.aside, "go.mod"))...); err != nil {
			return err
		}
		if err := m.tidy(); err != nil {
			return err
		}
		before := len(m.require)
		if err := m.readRequirements(); err != nil {
			return err
		}
		if len(m.require) == before {
			break
		}
	}
	m.version = version
	return nil
}

// tidy completes the copies of go.mod and go.sum.
func (m *module) tidy() error {
	_, err := m.goCommand(nil, append([]string{"mod", "tidy", "-e"}, m.flags()...)...)
	return err
}

// flags have the go command use the copy and the overlay.
func (m *module) flags() []string {
	return []string{"-modfile=" + filepath.Join(m.aside, "go.mod"), "-overlay=" + filepath.Join(m.aside, "overlay.json")}
}

// goCommand runs the go command in the module, outside any workspace, and returns what it
// prints.
func (m *module) goCommand(env []string, args ...string) (string, error) {
	if m.aside != "" {
		if err := m.writeOverlay(); err != nil {
			return "", err
		}
	}
	cmd := exec.Command(cmp.Or(os.Getenv("GO"), "go"), args...)
	cmd.Dir = m.dir
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "GOFLAGS="+goFlags(os.Getenv("GOFLAGS"))), env...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args[:min(2, len(args))], " "), err, bytes.TrimSpace(problems.Bytes()))
	}
	return out.String(), nil
}

// goFlags are the user's without those that this package sets.
func goFlags(flags string) string {
	kept := slices.DeleteFunc(strings.Fields(flags), func(flag string) bool {
		flag = strings.TrimPrefix(strings.TrimPrefix(flag, "-"), "-")
		name, _, _ := strings.Cut(flag, "=")
		return name == "mod" || name == "modfile" || name == "overlay"
	})
	return strings.Join(append(kept, "-mod=mod"), " ")
}

func (m *module) writeOverlay() error {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	i := 0
	for name, text := range m.changed {
		i++
		to := filepath.Join(m.aside, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return err
		}
		overlay.Replace[name] = to
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(m.aside, "overlay.json"), text, 0o644)
}

// read returns a file of the module as changed.
func (m *module) read(path string) ([]byte, error) {
	if text, ok := m.changed[path]; ok {
		return text, nil
	}
	return os.ReadFile(path)
}

// openFile is read for go/build.
func (m *module) openFile(path string) (io.ReadCloser, error) {
	text, err := m.read(path)
	return io.NopCloser(bytes.NewReader(text)), err
}

// results returns the files that would change, go.mod and go.sum among them.
func (m *module) results() (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, text := range m.changed {
		out[name] = text
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(m.aside, name))
		if err != nil {
			return nil, err
		}
		out[filepath.Join(m.dir, name)] = text
	}
	for name, text := range out {
		if before, err := os.ReadFile(name); err == nil && bytes.Equal(before, text) || err != nil && len(text) == 0 {
			delete(out, name)
		}
	}
	return out, nil
}

// uncommitted returns which of the files have changes that git would lose. Without git or
// a repository: none.
func (m *module) uncommitted(names []string) []string {
	cmd := exec.Command("git", append([]string{"status", "--porcelain", "--"}, names...)...)
	cmd.Dir = m.dir
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if len(line) > 3 {
			found = append(found, strings.TrimSpace(line[3:]))
		}
	}
	return found
}

// write writes files. If one cannot be written, those before it are as they were.
func write(files map[string][]byte) error {
	written := map[string][]byte{}
	for name, text := range files {
		before, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return undo(written, err)
		}
		written[name] = before
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return undo(written, err)
		}
	}
	return nil
}

func undo(written map[string][]byte, err error) error {
	for name, text := range written {
		err = errors.Join(err, os.WriteFile(name, text, 0o644))
	}
	return err
}

// hasVendor reports whether the module keeps a copy of what it requires.
func (m *module) hasVendor() bool {
	_, err := os.Stat(filepath.Join(m.dir, "vendor", "modules.txt"))
	return err == nil
}

// readIfThere reads a file. One that is not there is empty.
func readIfThere(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return text, err
}
