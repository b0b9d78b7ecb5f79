// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

const version = "v0.1000.0"

// command runs a program in a directory, and returns what it prints.
func command(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// committed makes dir a repository of its files, on main.
func committed(t *testing.T, dir string) {
	t.Helper()
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"config", "user.name", "Release Test"},
		{"config", "user.email", "release@example.com"},
		{"config", "commit.gpgsign", "false"},
		{"config", "tag.gpgsign", "false"},
		{"add", "--all"},
		{"commit", "--quiet", "--message", "all"},
	} {
		command(t, dir, nil, "git", args...)
	}
}

// small returns a repository of three modules: nested requires the root, and outer both.
func small(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "LICENSE"), "yours\n")
	write(t, filepath.Join(dir, "CHANGELOG.md"), "# Changelog\n\n## Unreleased\n\n### Added\n\n- `root`: all of it.\n")
	write(t, filepath.Join(dir, "go.mod"), "module "+rootModule+"\n\ngo 1.26.0\n")
	write(t, filepath.Join(dir, "root.go"), "package flyball\n\nconst One = 1\n")
	for nested, requires := range map[string][]string{"a/outer": {"", "/nested"}, "nested": {""}, "hack/tool": {""}} {
		at := filepath.Join(dir, filepath.FromSlash(nested))
		text, up := "module "+rootModule+"/"+nested+"\n\ngo 1.26.0\n", strings.Repeat("../", strings.Count(nested, "/")+1)
		for _, r := range requires {
			text += "\nrequire " + rootModule + r + " v0.0.0\n\nreplace " + rootModule + r + " => " + up + strings.TrimPrefix(r, "/") + "\n"
		}
		write(t, filepath.Join(at, "go.mod"), text)
		write(t, filepath.Join(at, "go.sum"), "")
		write(t, filepath.Join(at, "LICENSE"), "yours\n")
		write(t, filepath.Join(at, "main.go"), "package main\n\nimport flyball \""+rootModule+"\"\n\nfunc main() { println(flyball.One) }\n")
	}
	committed(t, dir)
	return dir
}

func TestRelease_TagsWhatUsersCanRequire(t *testing.T) {
	dir, proxy := small(t), t.TempDir()
	before := command(t, dir, nil, "git", "rev-parse", "HEAD")
	var out strings.Builder
	if err := run([]string{"-version", version, "-dir", dir, "-date", "2030-01-02", "-proxy", proxy}, &out); err != nil {
		t.Fatal(err)
	}
	if want := "git push --atomic origin main " + version + " nested/" + version + " a/outer/" + version; !strings.Contains(out.String(), want) {
		t.Errorf("got %q, want %q in it", out.String(), want)
	}
	for name, want := range map[string]string{"HEAD~1": before, version + "~1": command(t, dir, nil, "git", "rev-parse", "HEAD")} {
		if got := command(t, dir, nil, "git", "rev-parse", name+"^{commit}"); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := read(t, filepath.Join(dir, "nested", "go.mod")); !strings.Contains(got, "replace") {
		t.Errorf("the module on main has become\n%s", got)
	}
	if got := read(t, filepath.Join(dir, "CHANGELOG.md")); !strings.Contains(got, "## Unreleased\n\n## [0.1000.0] - 2030-01-02\n\n### Added\n") {
		t.Errorf("the changelog is\n%s", got)
	}
	if got := command(t, dir, nil, "git", "show", "--no-patch", "--format=%(contents)", version); !strings.Contains(got, "- `root`: all of it.") {
		t.Errorf("the tag says\n%s", got)
	}
	if got := command(t, dir, nil, "git", "worktree", "list"); strings.Contains(got, "\n") {
		t.Errorf("worktrees are left:\n%s", got)
	}
	outer, err := modfile.Parse("go.mod", []byte(command(t, dir, nil, "git", "show", version+":a/outer/go.mod")), nil)
	if err != nil || len(outer.Replace) > 0 || outer.Require[0].Mod.Version != version {
		t.Errorf("got %+v, error %v; want a module that requires the release", outer, err)
	}
	bin := filepath.Join(t.TempDir(), "bin")
	command(t, t.TempDir(), fromProxy(t, proxy, "off", "GOBIN="+bin), "go", "install", rootModule+"/a/outer@"+version)
	if got := command(t, dir, nil, filepath.Join(bin, "outer")); got != "1" {
		t.Errorf("the program prints %q, want 1", got)
	}
}

// fromProxy is the environment of a user whose modules come from a directory, and others
// from next. The cache of modules is removed at the end.
func fromProxy(t *testing.T, dir, next string, more ...string) []string {
	cache := t.TempDir()
	t.Cleanup(func() {
		cmd := exec.Command("go", "clean", "-modcache")
		cmd.Env = append(os.Environ(), "GOMODCACHE="+cache, "GOFLAGS=")
		_ = cmd.Run()
	})
	return append([]string{
		"GOPROXY=file://" + filepath.ToSlash(dir) + "," + next, "GONOSUMDB=" + rootModule + "," + rootModule + "/*", "GONOSUMCHECK=1",
		"GOFLAGS=-mod=mod", "GOWORK=off", "GOTOOLCHAIN=local", "GOMODCACHE=" + cache,
	}, more...)
}

func TestRelease_ChecksBeforeItsTestsRun(t *testing.T) {
	dir := small(t)
	for v, want := range map[string]string{version: "", "1.2": "not a semantic one"} {
		err := run([]string{"-version", v, "-dir", dir, "-check"}, io.Discard)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("-check of %s: %v, want %q", v, err, want)
		}
	}
	if tags := command(t, dir, nil, "git", "tag"); tags != "" {
		t.Errorf("-check made the tags %q", tags)
	}
}

func TestRelease_RefusesAndChangesNothing(t *testing.T) {
	for _, c := range []struct {
		name, version, want string
		before              func(t *testing.T, dir string)
	}{
		{"no version", "", "no version is given", nil},
		{"not a version", "1.2", "not a semantic one", nil},
		{"short version", "v1.2", "not a semantic one", nil},
		{"a build", "v1.2.3+4", "not a semantic one", nil},
		{"a major version", "v2.0.0", "no suffix /v2", nil},
		{"an earlier version", "v0.9.0", "v0.10.0 is tagged already", func(t *testing.T, dir string) { command(t, dir, nil, "git", "tag", "v0.10.0") }},
		{"a nested tag", version, "nested/" + version + " is tagged already", func(t *testing.T, dir string) { command(t, dir, nil, "git", "tag", "nested/"+version) }},
		{"a changed tree", version, "the tree has changes", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "root.go"), "package other\n") }},
		{"another branch", version, `the branch is "other"`, func(t *testing.T, dir string) { command(t, dir, nil, "git", "checkout", "-q", "-b", "other") }},
		{"nothing to release", version, "nothing to release", changed("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n## [0.1.0] - 2030-01-01\n\n- old\n")},
		{"no changelog", version, "no section", changed("CHANGELOG.md", "# Changelog\n")},
		{"no license", version, "no LICENSE", func(t *testing.T, dir string) {
			command(t, dir, nil, "git", "rm", "-q", "nested/LICENSE")
			command(t, dir, nil, "git", "commit", "-qm", "no license")
		}},
		{"a foreign replacement", version, "which users of the module would not", changed("nested/go.mod", "module "+rootModule+"/nested\n\nrequire example.com/x v1.0.0\n\nreplace example.com/x => ../x\n")},
		{"another module path", version, "under which its tag would be found", changed("nested/go.mod", "module example.com/nested\n")},
		{"a circle", version, "requires itself", changed("go.mod", "module "+rootModule+"\n\nrequire "+rootModule+"/nested v0.0.0\n")},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := small(t)
			if c.before != nil {
				c.before(t, dir)
			}
			state := func() string {
				return command(t, dir, nil, "git", "rev-parse", "HEAD") + command(t, dir, nil, "git", "tag") + command(t, dir, nil, "git", "status", "--porcelain") + command(t, dir, nil, "git", "worktree", "list")
			}
			before := state()
			err := run([]string{"-version", c.version, "-dir", dir}, io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("run = %v, want an error that has %q", err, c.want)
			}
			if after := state(); after != before {
				t.Errorf("the repository has changed from\n%s\nto\n%s", before, after)
			}
		})
	}
}

// changed commits another text of a file.
func changed(name, text string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
		command(t, dir, nil, "git", "commit", "-qam", "change "+name)
	}
}

func TestRun_PrintsTheNotesOfAVersion(t *testing.T) {
	dir := small(t)
	write(t, filepath.Join(dir, "CHANGELOG.md"), "# Changelog\n\n## Unreleased\n\n- later\n\n## [0.2.0] - 2030-01-02\n\n- `root`: this\n\n## [0.1.0] - 2030-01-01\n\n- before\n")
	var out strings.Builder
	if err := run([]string{"-version", "v0.2.0", "-dir", dir, "-notes"}, &out); err != nil || out.String() != "- `root`: this\n" {
		t.Errorf("got %q, error %v; want the lines of that version", out.String(), err)
	}
}

// The repository itself can be released: what the tags give is installed as users do.
func TestRelease_ThisRepositoryInstallsFromAProxy(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs of another version of every package")
	}
	dir, env := publish(t)
	bin := t.TempDir()
	env = append(env, "GOBIN="+bin, "GOFLAGS=-trimpath", "CGO_ENABLED=0") // compiled alike in each run, wherever the module cache is
	for _, program := range []string{"cmd/flyball", "simulate/cmd/apiserver"} {
		command(t, t.TempDir(), env, "go", "install", rootModule+"/"+program+"@"+version)
		built := command(t, dir, nil, "go", "version", "-m", filepath.Join(bin, filepath.Base(program)))
		if !strings.Contains(built, "\t"+version) || strings.Contains(built, "=>") {
			t.Errorf("%s is built of\n%s\nwant modules at %s", program, built, version)
		}
	}
	for _, module := range []string{"bridge/controllerruntime"} {
		downloaded := command(t, t.TempDir(), env, "go", "mod", "download", "-json", rootModule+"/"+module+"@"+version)
		if !strings.Contains(downloaded, `"Zip"`) {
			t.Errorf("%s is not downloaded: %s", module, downloaded)
		}
	}
}

// publish releases a copy of this repository, and returns it and the environment of a user
// whose module proxy has that version, with an empty module cache.
func publish(t *testing.T) (dir string, env []string) {
	t.Helper()
	top := command(t, ".", nil, "git", "rev-parse", "--show-toplevel")
	dir, proxy := t.TempDir(), t.TempDir()
	for _, name := range strings.Split(command(t, top, nil, "git", "ls-files", "--cached", "--others", "--exclude-standard"), "\n") {
		data, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, filepath.FromSlash(name)), string(data))
	}
	committed(t, dir)
	if err := run([]string{"-version", version, "-dir", dir, "-proxy", proxy}, io.Discard); err != nil {
		t.Fatal(err)
	}
	others := command(t, top, nil, "go", "env", "GOPROXY")
	cache := "file://" + filepath.ToSlash(filepath.Join(command(t, top, nil, "go", "env", "GOMODCACHE"), "cache", "download"))
	return dir, fromProxy(t, proxy, cache+","+others, "GONOSUMDB=*")
}
