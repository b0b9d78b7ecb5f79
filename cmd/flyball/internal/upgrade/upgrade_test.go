// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"archive/zip"
	"bytes"
	"cmp"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what upgrades give into testdata")

// A story is an archive of files after a first text.
type story struct {
	head  string
	files map[string]string
}

func readStory(t *testing.T, name string) story {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	s := story{files: map[string]string{}}
	file := ""
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(rest, " --\n") {
			file = strings.TrimSuffix(rest, " --\n")
			s.files[file] = ""
		} else if file == "" {
			s.head += line
		} else {
			s.files[file] += line
		}
	}
	return s
}

func (s story) below(dir string) map[string]string {
	found := map[string]string{}
	for name, text := range s.files {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok {
			found[rest] = text
		}
	}
	return found
}

func (s story) write(t *testing.T, name string) {
	t.Helper()
	out := s.head
	for _, file := range slices.Sorted(maps.Keys(s.files)) {
		out += "-- " + file + " --\n" + s.files[file]
	}
	if err := os.WriteFile(name, []byte(out), 0o644); err != nil {
		t.Fatal(err)
	}
}

// flyballs has the go command find the versions of testdata/flyball.txtar, and nothing else,
// and returns what changed between them.
func flyballs(t *testing.T) []Section {
	t.Helper()
	archive := readStory(t, "testdata/flyball.txtar")
	proxy, cache := t.TempDir(), t.TempDir()
	all := map[string]string{"go.mod": "module " + rootModule + "\n\ngo 1.26.0\n"}
	for _, version := range []string{"v0.1.0", "v0.2.0", "v0.3.0"} {
		maps.Copy(all, archive.below(version))
		root, nested := map[string]string{}, map[string]string{}
		for name, text := range all {
			if rest, ok := strings.CutPrefix(name, "simulate/"); ok && all["simulate/go.mod"] != "" {
				nested[rest] = text
			} else {
				root[name] = text
			}
		}
		serve(t, proxy, rootModule, version, root)
		if len(nested) > 0 {
			serve(t, proxy, rootModule+"/simulate", version, nested)
		}
	}
	for key, value := range map[string]string{
		"GOPROXY": "file://" + filepath.ToSlash(proxy), "GONOSUMDB": "*", "GOFLAGS": "-modcacherw", "GOMODCACHE": cache, "GOWORK": "off", "GOTOOLCHAIN": "local",
	} {
		t.Setenv(key, value)
	}
	table, err := ParseTable(archive.files["changes.txt"])
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// serve adds a version of a module to a proxy.
func serve(t *testing.T, proxy, path, version string, files map[string]string) {
	t.Helper()
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for name, text := range files {
		w, err := z.Create(path + "@" + version + "/" + name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	list, err := readIfThere(filepath.Join(at, "list"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		version + ".zip": packed.String(), version + ".mod": files["go.mod"], version + ".info": `{"Version":"` + version + `"}`,
		"list": string(list) + version + "\n",
	} {
		put(t, filepath.Join(at, name), text)
	}
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// operator writes the module of a user, which requires a version.
func operator(t *testing.T, version string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "go.mod"), "module example.com/operator\n\ngo 1.26.0\n\nrequire "+rootModule+" "+version+"\n")
	for name, text := range files {
		put(t, filepath.Join(dir, name), text)
	}
	goIn(t, dir, "mod", "tidy", "-e")
	return dir
}

func goIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// contents returns the files of a module.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestUpgrade_Stories_Q8(t *testing.T) {
	table := flyballs(t)
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		s := readStory(t, name)
		if s.files["report"] == "" && s.below("before") == nil || name == filepath.Join("testdata", "flyball.txtar") {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			dir := operator(t, "v0.1.0", s.below("before"))
			u := Upgrade{Dir: dir, To: strings.TrimSpace(s.head), Table: table}
			var out strings.Builder
			if err := u.Run(&out); err != nil {
				out.WriteString("error: " + err.Error() + "\n")
			}
			after := contents(t, dir)
			for name := range s.below("before") {
				if *update {
					s.files["after/"+name] = after[name]
				} else if after[name] != s.files["after/"+name] {
					t.Errorf("%s is\n%s\nwant\n%s", name, after[name], s.files["after/"+name])
				}
			}
			report := out.String()
			if *update {
				s.files["report"] = report
				s.write(t, name)
			} else if report != s.files["report"] {
				t.Errorf("the report is\n%s\nwant\n%s", report, s.files["report"])
			}
		})
	}
}

// old is a module that compiles with v0.1.0 alone.
var old = map[string]string{"a.go": "package operator\n\nimport \"" + rootModule + "/informer\"\n\nconst kind = informer.EventAdded\n"}

func TestUpgrade_ASecondRunChangesNothing_Q8(t *testing.T) {
	table := flyballs(t)
	dir := operator(t, "v0.1.0", old)
	for i, want := range []string{"edits made: 2", "nothing to do"} {
		before := contents(t, dir)
		var out strings.Builder
		if err := (Upgrade{Dir: dir, To: "latest", Table: table}).Run(&out); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("run %d: %v, prints %s, want %q in it", i+1, err, &out, want)
		}
		if same := maps.Equal(before, contents(t, dir)); same != (i == 1) {
			t.Errorf("run %d: the module is as before: %v", i+1, same)
		}
	}
	if got := contents(t, dir)["go.mod"]; !strings.Contains(got, rootModule+" v0.3.0\n") {
		t.Errorf("go.mod is\n%s\nwant it to require v0.3.0", got)
	}
}

// Where a bot has changed go.mod first, the version before gives the types.
func TestUpgrade_FromTheVersionBefore_Q8(t *testing.T) {
	table := flyballs(t)
	dir := operator(t, "v0.2.0", old)
	u := Upgrade{Dir: dir, To: "v0.2.0", Table: table}
	u.From = "v0.1.0"
	var out strings.Builder
	if err := u.Run(&out); err != nil || !strings.Contains(contents(t, dir)["a.go"], "informer.Added") {
		t.Errorf("%v, prints %s, and a.go is\n%s\nwant it edited", err, &out, contents(t, dir)["a.go"])
	}
}

func TestUpgrade_ThatCannotBeMadeWritesNothing_Q9(t *testing.T) {
	table := flyballs(t)
	git := func(t *testing.T, dir string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, dir string)
		change  func(u *Upgrade)
		want    string
	}{
		{"no module", func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "go.mod")) }, nil, "is in no module"},
		{"no directory", func(t *testing.T, dir string) {}, func(u *Upgrade) { u.Dir += "/none" }, "none"},
		{"a module without Flyball", func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "go.mod"), "module example.com/m\n\ngo 1.26.0\n")
		}, nil, "requires no version of"},
		{"a replacement", func(t *testing.T, dir string) {
			goIn(t, dir, "mod", "edit", "-replace", rootModule+"=../flyball")
		}, nil, "remove the replacement first"},
		{"an unknown version", nil, func(u *Upgrade) { u.To = "v0.9.0" }, "find version v0.9.0"},
		{"an earlier version", nil, func(u *Upgrade) { u.From, u.To = "v0.2.0", "v0.1.0" }, "later than v0.1.0"},
		{"a version that the program does not know", nil, func(u *Upgrade) { u.Own, u.To = "v0.2.0", "latest" }, "go run " + rootModule + "/cmd/flyball@v0.3.0 upgrade"},
		{"no version", nil, func(u *Upgrade) { u.To = "" }, "--to"},
		{"code that does not compile", func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "b.go"), "package operator\n\nvar x = missing\n")
		}, nil, "b.go:3: undefined: missing"},
		{"code that does not parse", func(t *testing.T, dir string) { put(t, filepath.Join(dir, "b.go"), "package operator\n\nvar x =\n") }, nil, "b.go"},
		{"uncommitted changes", func(t *testing.T, dir string) {
			git(t, dir, "init", "-q")
			git(t, dir, "add", ".")
			git(t, dir, "commit", "-qm", "all")
			put(t, filepath.Join(dir, "a.go"), old["a.go"]+"\n// more\n")
		}, nil, "a.go would change, and has changes that are not committed"},
		{"a dry run", nil, func(u *Upgrade) { u.DryRun = true }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := operator(t, "v0.1.0", old)
			if c.prepare != nil {
				c.prepare(t, dir)
			}
			u := Upgrade{Dir: dir, To: "v0.2.0", Table: table}
			if c.change != nil {
				c.change(&u)
			}
			before := contents(t, dir)
			var out strings.Builder
			err := u.Run(&out)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want an error with %q", err, c.want)
			}
			if after := contents(t, dir); !maps.Equal(after, before) {
				t.Errorf("the module has changed to %v", after)
			}
			if want := "-const kind = informer.EventAdded\n+const kind = informer.Added\n"; u.DryRun && !strings.Contains(out.String(), want) {
				t.Errorf("it prints %s, want %q in it", &out, want)
			}
		})
	}
}

// A workspace and a vendor directory do not decide about the versions. The directory is
// updated.
func TestUpgrade_VendoredInAWorkspace_Q9(t *testing.T) {
	table := flyballs(t)
	dir := operator(t, "v0.1.0", old)
	goIn(t, dir, "mod", "vendor")
	put(t, filepath.Join(dir, "go.work"), "go 1.26.0\n\nuse .\n")
	t.Setenv("GOWORK", "")
	if err := (Upgrade{Dir: dir, To: "v0.2.0", Table: table}).Run(&strings.Builder{}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOWORK", "off")
	goIn(t, dir, "vet", "-mod=vendor", "./...")
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}

func TestCompare(t *testing.T) {
	ordered := []string{"", "v0.0.0-20260101000000-abcdefabcdef", "v0.1.0-rc.1", "v0.1.0-rc.2", "v0.1.0-rc.10", "v0.1.0-rc.x", "v0.1.0",
		"v0.1.1-0.20260101000000-abcdefabcdef", "v0.1.1", "v0.2.0", "v0.10.0", "v1.0.0"}
	for i, a := range ordered {
		for j, b := range ordered {
			if got, want := compare(a, b), cmp.Compare(i, j); got != want {
				t.Errorf("compare(%s, %s) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestParseTable_NamesTheLineThatIsWrong(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"## Unreleased\n\n\tuse a.B", "changes.txt:3: no entry"},
		{"## Unreleased\n- x\n\tmove a.B", "changes.txt:3: move takes two names"},
		{"## Unreleased\n- x\n\tuse", "use takes arguments"},
		{"## Unreleased\n- x\n\tdrop a.B", `no verb "drop"`},
		{"## Unreleased\n- x\n\trewrite a: b(", "rewrite takes"},
		{"## Unreleased\n- x\n\trewrite a: b( -> c()", "parse"},
		{"## Unreleased\nx", "changes.txt:2"},
	} {
		if _, err := ParseTable(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want an error with %q", c.text, err, c.want)
		}
	}
}

func TestDiff_IsUnified(t *testing.T) {
	a := strings.Split("1 2 3 4 5 6 7 8 9 10 11 12", " ")
	b := strings.Split("1 2 x 4 5 6 7 8 9 10 11 12 13", " ")
	want := "@@ -1,6 +1,6 @@\n 1\n 2\n-3\n+x\n 4\n 5\n 6\n@@ -10,3 +10,4 @@\n 10\n 11\n 12\n+13\n"
	if got := unified(a, b); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := unified(a, a); got != "" {
		t.Errorf("equal texts differ by\n%s", got)
	}
}
