// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// repo is a git repository.
type repo struct{ top string }

func open(dir string) (*repo, error) {
	top, err := (&repo{dir}).git("rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("find the repository of %s: %w", dir, err)
	}
	return &repo{top}, nil
}

// git returns what a git command prints, without the last newline.
func (r *repo) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.top
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(failed.Bytes()))
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

func (r *repo) printNotes(out io.Writer, version string) error {
	changelog, err := os.ReadFile(filepath.Join(r.top, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, err := notes(string(changelog), version)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

// release commits and tags a version, and returns the tags. After an error nothing is
// tagged.
func (r *repo) release(version, date string) (tags []string, err error) {
	if err := r.ready(version); err != nil {
		return nil, err
	}
	name := filepath.Join(r.top, "CHANGELOG.md")
	old, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	changelog, err := released(string(old), version, date)
	if err != nil {
		return nil, err
	}
	tree, remove, err := r.checkout("HEAD")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if err := os.WriteFile(filepath.Join(tree.top, "CHANGELOG.md"), []byte(changelog), 0o644); err != nil {
		return nil, err
	}
	if _, err := tree.git("commit", "--quiet", "-am", "release: changelog of "+version); err != nil {
		return nil, err
	}
	ours, err := tree.git("rev-parse", "HEAD")
	if err != nil {
		return nil, err
	}
	mods, err := tree.pin(version)
	if err != nil {
		return nil, err
	}
	text, err := notes(changelog, version)
	if err != nil {
		return nil, err
	}
	for _, m := range mods {
		if there, err := r.git("tag", "--list", m.tag(version)); err != nil || there != "" {
			return nil, errors.Join(err, fmt.Errorf("%s is tagged already; choose a later version", m.tag(version)))
		}
	}
	if _, err := r.git("merge", "--quiet", "--ff-only", ours); err != nil {
		return nil, err
	}
	for _, m := range mods {
		tag := m.tag(version)
		if _, err := tree.git("tag", "--annotate", "--cleanup=verbatim", "-m", m.path+" "+version+"\n\n"+text, tag); err != nil {
			return nil, err
		}
		tags = append(tags, tag)
	}
	return tags, nil
}

// checkout returns a tree of a revision, without a branch. remove ends it.
func (r *repo) checkout(revision string) (tree *repo, remove func() error, err error) {
	aside, err := os.MkdirTemp("", "release")
	if err != nil {
		return nil, nil, err
	}
	tree = &repo{filepath.Join(aside, "tree")}
	if _, err := r.git("worktree", "add", "--quiet", "--detach", tree.top, revision); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(aside))
	}
	return tree, func() error {
		_, err := r.git("worktree", "remove", "--force", tree.top)
		return errors.Join(err, os.RemoveAll(aside))
	}, nil
}

// modules returns the published ones.
func (r *repo) modules() ([]published, error) {
	files, err := r.git("ls-files", "go.mod", "*/go.mod")
	if err != nil {
		return nil, err
	}
	return modules(r.top, strings.Fields(files))
}

// ready returns why version cannot be released now.
func (r *repo) ready(version string) error {
	if semver.Canonical(version) != version || semver.Build(version) != "" || version == "" {
		return errors.New("the version is not a semantic one such as v0.2.0 or v1.0.0-rc.1")
	}
	if major := semver.Major(version); major != "v0" && major != "v1" {
		return fmt.Errorf("the module paths have no suffix /%s; change them first", major)
	}
	if status, err := r.git("status", "--porcelain"); err != nil || status != "" {
		return errors.Join(err, fmt.Errorf("the tree has changes, which would not be released; commit or stash them:\n%s", status))
	}
	if branch, err := r.git("branch", "--show-current"); err != nil || branch != "main" {
		return errors.Join(err, fmt.Errorf("the branch is %q; releases are made on main", branch))
	}
	tags, err := r.git("tag", "--list", "v*")
	if err != nil {
		return err
	}
	for _, tag := range strings.Fields(tags) {
		if semver.IsValid(tag) && semver.Compare(tag, version) >= 0 {
			return fmt.Errorf("%s is tagged already; choose a later version", tag)
		}
	}
	return nil
}

// pin commits, without a branch, what the tags point to.
func (r *repo) pin(version string) ([]published, error) {
	mods, err := r.modules()
	if err != nil {
		return nil, err
	}
	hashes := make(map[string]sums)
	for _, m := range mods {
		if err := r.pinModule(m, version, hashes); err != nil {
			return nil, fmt.Errorf("module %s: %w", m.path, err)
		}
	}
	_, err = r.git("commit", "--quiet", "--allow-empty", "-am", "release: modules of "+version)
	return mods, err
}

func (r *repo) pinModule(m published, version string, hashes map[string]sums) error {
	dir := filepath.Join(r.top, filepath.FromSlash(m.dir))
	if _, err := os.Stat(filepath.Join(dir, "LICENSE")); err != nil {
		return fmt.Errorf("it has no LICENSE, without which pkg.go.dev shows no documentation: %w", err)
	}
	goMod, err := m.freed(version, hashes)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), goMod, 0o644); err != nil {
		return err
	}
	required := make(map[string]sums)
	for _, req := range m.file.Require {
		if s, ok := hashes[req.Mod.Path]; ok {
			required[req.Mod.Path] = s
		}
	}
	if len(required) > 0 {
		name := filepath.Join(dir, "go.sum")
		old, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(summed(string(old), version, required)), 0o644); err != nil {
			return err
		}
	}
	hashes[m.path], err = hash(m, version, dir)
	return err
}

// hash returns the hashes of what users will download.
func hash(m published, version, dir string) (s sums, err error) {
	f, err := os.CreateTemp("", "module")
	if err != nil {
		return s, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := pack(f, m, version, dir); err != nil {
		return s, err
	}
	if s.zip, err = dirhash.HashZip(f.Name(), dirhash.Hash1); err != nil {
		return s, err
	}
	s.file, err = dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return os.Open(filepath.Join(dir, "go.mod")) })
	return s, err
}

// writeProxy writes the tagged modules of a version as a module proxy serves them.
func (r *repo) writeProxy(to, version string) (err error) {
	tree, remove, err := r.checkout(version)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	mods, err := tree.modules()
	if err != nil {
		return err
	}
	for _, m := range mods {
		if err := serve(m, version, filepath.Join(tree.top, filepath.FromSlash(m.dir)), to); err != nil {
			return fmt.Errorf("module %s: %w", m.path, err)
		}
	}
	return nil
}

func serve(m published, version, dir, to string) error {
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	at := filepath.Join(to, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	goMod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, time.Now().UTC()})
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": goMod} {
		if err := os.WriteFile(filepath.Join(at, name), data, 0o644); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(pack(f, m, version, dir), f.Close())
}

// pack writes the zip of a module as the go command makes it of a tag: of the files that
// git has.
func pack(to io.Writer, m published, version, dir string) error {
	names, err := (&repo{dir}).git("ls-files", "-z")
	if err != nil {
		return err
	}
	var files []zip.File
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		files = append(files, tracked{dir, name})
	}
	return zip.Create(to, module.Version{Path: m.path, Version: version}, files)
}

// tracked is a file that git has.
type tracked struct{ dir, name string }

func (f tracked) file() string                 { return filepath.Join(f.dir, filepath.FromSlash(f.name)) }
func (f tracked) Path() string                 { return f.name }
func (f tracked) Lstat() (os.FileInfo, error)  { return os.Lstat(f.file()) }
func (f tracked) Open() (io.ReadCloser, error) { return os.Open(f.file()) }
