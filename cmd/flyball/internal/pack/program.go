// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// goProgram is a main package of a module in a Git repository, at a commit. The same commit and
// the same Go give the same bytes.
type goProgram struct {
	Module  string    // its path
	Commit  string    // 40 digits
	Time    time.Time // of the commit
	dir     string    // to run in
	pattern string    // the package
	tags    string
	top     string // the repository
	env     []string
}

// openProgram finds the module and the commit of a package, such as ".", seen from dir.
func openProgram(ctx context.Context, dir, pattern, tags string) (*goProgram, error) {
	p := &goProgram{dir: dir, pattern: pattern, tags: tags}
	top, err := p.git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("find the commit of %s: %w; an image is built of a commit: run git init, git add and git commit first", or(dir, "this directory"), err)
	}
	p.top = filepath.Clean(top)
	said, err := p.git(ctx, "log", "-1", "--no-show-signature", "--format=%H %ct")
	if err != nil {
		return nil, fmt.Errorf("find the commit of %s: %w; commit first", p.top, err)
	}
	commit, seconds, _ := strings.Cut(said, " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read the time of commit %s: %w", commit, err)
	}
	p.Commit, p.Time = commit, time.Unix(at, 0).UTC()

	// What differs from machine to machine is set here, GOFLAGS included. The stamp that the
	// go command takes from Git depends on the tags that a clone has.
	p.env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-buildvcs=false", "GOEXPERIMENT=", "GO386=sse2", "GOAMD64=v1", "GOARM=7", "GOARM64=v8.0", "GOPPC64=power8", "GORISCV64=rva20u64")
	text, err := p.goCommand(ctx, nil, "mod", "edit", "-json")
	if err != nil {
		return nil, err
	}
	var mod struct {
		Module    struct{ Path string }
		Toolchain string
	}
	if err := json.Unmarshal(text, &mod); err != nil {
		return nil, fmt.Errorf("read go.mod: %w", err)
	}
	p.Module = mod.Module.Path
	if strings.HasPrefix(mod.Toolchain, "go") {
		p.env = append(p.env, "GOTOOLCHAIN="+mod.Toolchain)
	}
	return p, nil
}

// Build writes the program for a platform into a file.
func (p *goProgram) Build(ctx context.Context, platform goPlatform, file string) error {
	_, err := p.goCommand(ctx, platform.env(), "build", "-trimpath", "-tags", p.tags, "-ldflags", "-s -w -buildid=", "-o", file, p.pattern)
	if err != nil {
		return fmt.Errorf("build %s for %s: %w", p.pattern, platform, err)
	}
	return nil
}

// listedPackage is what go list says of a package.
type listedPackage struct {
	Name, Dir string
	Standard  bool
	Module    *listedModule

	GoFiles, CgoFiles, CFiles, CXXFiles, HFiles, SFiles, SysoFiles, EmbedFiles []string
}

type listedModule struct {
	Path    string
	Main    bool
	GoMod   string
	Version string
	Replace *listedModule
}

// local reports whether the package's files are not those of a version, which go.sum has a
// hash of.
func (l listedPackage) local(vendored string) bool {
	if l.Standard || l.Module == nil {
		return false
	}
	return l.Module.Main || l.Module.Replace != nil && l.Module.Replace.Version == "" || within(l.Dir, vendored)
}

// Changed returns the files of the program, and of others, that are not those of the commit,
// and why.
func (p *goProgram) Changed(ctx context.Context, platforms []goPlatform, others ...string) ([]string, error) {
	mod, err := p.goCommand(ctx, nil, "env", "GOMOD")
	if err != nil {
		return nil, err
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	files := map[string]string{filepath.Join(root, "go.mod"): p.Module} // and their modules
	for _, other := range []string{"go.sum", "vendor/modules.txt"} {
		if _, err := os.Stat(filepath.Join(root, other)); err == nil {
			files[filepath.Join(root, other)] = p.Module
		}
	}
	for _, other := range others {
		if other, err = filepath.Abs(other); err != nil {
			return nil, err
		}
		files[other] = "" // of no module
	}
	for _, platform := range platforms {
		text, err := p.goCommand(ctx, platform.env(), "list", "-deps", "-tags", p.tags,
			"-json=Name,Dir,Standard,Module,GoFiles,CgoFiles,CFiles,CXXFiles,HFiles,SFiles,SysoFiles,EmbedFiles", p.pattern)
		if err != nil {
			return nil, fmt.Errorf("list the files of %s for %s: %w", p.pattern, platform, err)
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		for decoder.More() {
			var l listedPackage
			if err := decoder.Decode(&l); err != nil {
				return nil, fmt.Errorf("read what go list says: %w", err)
			}
			if !l.local(filepath.Join(root, "vendor")) {
				continue
			}
			if m := l.Module.Replace; m != nil && m.GoMod != "" {
				files[m.GoMod] = l.Module.Path
			}
			for _, name := range slices.Concat(l.GoFiles, l.CgoFiles, l.CFiles, l.CXXFiles, l.HFiles, l.SFiles, l.SysoFiles, l.EmbedFiles) {
				files[filepath.Join(l.Dir, name)] = l.Module.Path
			}
			profile := filepath.Join(l.Dir, "default.pgo") // go build optimizes by it
			if _, err := os.Stat(profile); err == nil && l.Name == "main" {
				files[profile] = l.Module.Path
			}
		}
	}
	return p.compare(ctx, files)
}

// compare returns the files that the commit does not have, or has otherwise.
func (p *goProgram) compare(ctx context.Context, files map[string]string) ([]string, error) {
	at := func(args ...string) (map[string]bool, error) {
		said, err := p.git(ctx, append([]string{"-C", p.top}, args...)...)
		out := map[string]bool{}
		for name := range strings.SplitSeq(said, "\x00") {
			out[name] = true
		}
		return out, err
	}
	committed, err := at("ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD")
	if err != nil {
		return nil, fmt.Errorf("list the files of commit %s: %w", p.Commit, err)
	}
	differ, err := at("diff", "--name-only", "-z", "--no-renames", "HEAD")
	if err != nil {
		return nil, fmt.Errorf("compare the files with commit %s: %w", p.Commit, err)
	}
	top, err := filepath.EvalSymlinks(p.top)
	if err != nil {
		return nil, err
	}
	var changed []string
	for file, module := range files {
		actual, err := filepath.EvalSymlinks(file)
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(top, actual)
		slashed := filepath.ToSlash(name)
		outside := err != nil || !within(actual, top)
		switch {
		case outside && module == "":
			changed = append(changed, file+" is outside the repository")
		case outside:
			changed = append(changed, "the module "+module+" is outside the repository, where a replace in go.mod leads")
		case differ[slashed]:
			changed = append(changed, slashed+" was changed")
		case !committed[slashed]:
			changed = append(changed, slashed+" is not in the commit")
		}
	}
	slices.Sort(changed)
	return slices.Compact(changed), nil
}

func within(file, dir string) bool {
	return strings.HasPrefix(file, dir+string(filepath.Separator))
}

// goCommand runs the go command.
func (p *goProgram) goCommand(ctx context.Context, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = p.dir, slices.Concat(p.env, env)
	return output(cmd)
}

func (p *goProgram) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = p.dir
	text, err := output(cmd)
	return strings.TrimRight(string(text), "\n\x00"), err
}

// output returns what a command prints; the error says what it complains of.
func output(cmd *exec.Cmd) ([]byte, error) {
	var problems bytes.Buffer
	cmd.Stderr = &problems
	text, err := cmd.Output()
	if err != nil {
		return text, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, strings.TrimSpace(problems.String()))
	}
	return text, nil
}

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}
