// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what the scripts of testdata get")

// put writes files into a new directory.
func put(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if err := errors.Join(err, os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tree returns the regular files below a directory.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// run runs the command with a go command that does nothing, and returns what it prints.
func run(t *testing.T, dir string, args ...string) (int, string) {
	t.Helper()
	return runWith(t, dir, func(context.Context, string, ...string) error { return nil }, args...)
}

func runWith(
	t *testing.T, dir string, goes func(context.Context, string, ...string) error, args ...string,
) (int, string) {
	t.Helper()
	var out bytes.Buffer
	args = append([]string{"-C", dir}, args...)
	code := Command{Version: "v0.2.0", RunGo: goes}.Run(t.Context(), args, &out, &out)
	return code, strings.ReplaceAll(out.String(), dir, "DIR")
}

// Each script is a module, and behind want.out, which has what is printed, the files that change.
// Its comment has the arguments after "flyball adopt".
func TestScripts_Q7(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("there are no scripts: %v", err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(script)
			if err != nil {
				t.Fatal(err)
			}
			end := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == "want.out" })
			if end < 0 {
				end = len(a.Files)
			}
			before := map[string]string{}
			for _, file := range a.Files[:end] {
				before[file.Name] = string(file.Data)
			}
			var args []string
			for line := range strings.Lines(string(a.Comment)) {
				if rest, ok := strings.CutPrefix(line, "flyball adopt "); ok {
					args = strings.Fields(rest)
				}
			}
			dir := put(t, before)
			code, out := run(t, dir, args...)
			after := tree(t, dir)
			got := []txtar.File{{Name: "want.out", Data: fmt.Appendf(nil, "%sexit code %d\n", out, code)}}
			for _, name := range slices.Sorted(maps.Keys(after)) {
				if after[name] != before[name] {
					got = append(got, txtar.File{Name: name, Data: []byte(after[name])})
				}
			}
			compare(t, script, a, end, got)
			if code == 0 && len(args) == 0 {
				goesBack(t, dir, before, after)
			}
		})
	}
}

func compare(t *testing.T, script string, a *txtar.Archive, end int, got []txtar.File) {
	t.Helper()
	before, want := a.Files[:end], txtar.Format(&txtar.Archive{Files: a.Files[end:]})
	text := txtar.Format(&txtar.Archive{Files: got})
	if *update {
		a.Files = slices.Concat(before, got)
		if err := os.WriteFile(script, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(text, want) {
		t.Errorf("%s: got\n%s\nwant\n%s\nif it is right, run the test with -update", script, text, want)
	}
}

// goesBack checks that the edited module is formatted where it was, that a second run changes
// nothing, and that -undo gives back the same bytes, unless the bridge was in use before.
func goesBack(t *testing.T, dir string, before, after map[string]string) {
	t.Helper()
	for name, text := range after {
		if text != before[name] && isFormatted(before[name]) && !isFormatted(text) {
			t.Errorf("%s was formatted, and is not:\n%s", name, text)
		}
	}
	if code, out := run(t, dir); code != 0 || !maps.Equal(tree(t, dir), after) {
		t.Errorf("a second run has exit code %d, want 0 and no changed file\n%s", code, out)
	}
	code, out := run(t, dir, "-undo")
	now := tree(t, dir)
	for name, text := range before {
		if code != 0 || now[name] != text && !strings.Contains(text, bridgePath) {
			t.Errorf("-undo has exit code %d, and %s is\n%s\nwant\n%s\n%s", code, name, now[name], text, out)
		}
	}
}

func isFormatted(text string) bool {
	formatted, err := format.Source([]byte(text))
	return err == nil && string(formatted) == text
}

const (
	goMod  = "module example.com/operator\n\nrequire sigs.k8s.io/controller-runtime v0.25.2\n"
	mainGo = `package main

import (
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
)

func main() { ctrl.NewManager(nil, ctrl.Options{}) }
`
)

// Line ends, missing last ones among them, and modes stay.
func TestAdopt_KeepsLineEndsAndModes_Q7(t *testing.T) {
	crlf := strings.ReplaceAll(mainGo, "\n", "\r\n")
	files := map[string]string{
		"go.mod":         goMod,
		"crlf/main.go":   crlf,
		"mixed/main.go":  strings.Replace(mainGo, "\n", "\r\n", 4),
		"noend/main.go":  strings.TrimSuffix(mainGo, "\n"),
		"raw/main.go":    crlf + "\r\nvar text = `a\r\nb`\r\n",
		"bom/main.go":    "\ufeff" + mainGo,
		"script/main.go": mainGo,
	}
	dir := put(t, files)
	script := filepath.Join(dir, "script", "main.go")
	if err := os.Chmod(script, 0o550); err != nil {
		t.Fatal(err)
	}
	if code, out := run(t, dir); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	after := tree(t, dir)
	for name := range files {
		if name != "go.mod" && !strings.Contains(after[name], "bridge.Options(ctrl.Options{})") {
			t.Errorf("%s is not edited:\n%q", name, after[name])
		}
	}
	if text := after["crlf/main.go"]; strings.Count(text, "\n") != strings.Count(text, "\r\n") {
		t.Errorf("an inserted line of crlf/main.go ends with LF alone, want CRLF: %q", text)
	}
	if info, err := os.Stat(script); err != nil || info.Mode().Perm() != 0o550 {
		t.Errorf("the mode of script/main.go is %v (%v), want 0550", info.Mode(), err)
	}
	if code, out := run(t, dir, "-undo"); code != 0 || !maps.Equal(tree(t, dir), files) {
		t.Errorf("-undo has exit code %d, and other bytes than before\n%s\n%q", code, out, tree(t, dir))
	}
}

// If the go command fails, every file is as it was, and the error says why and what to do.
func TestAdopt_GoFailsAndAllIsUndone_Q7(t *testing.T) {
	for _, fails := range []string{"get", "mod"} {
		files := map[string]string{"go.mod": goMod, "main.go": mainGo}
		dir := put(t, files)
		code, out := runWith(t, dir, func(_ context.Context, in string, args ...string) error {
			if in != dir || !strings.Contains(tree(t, in)["main.go"], "bridge.Options") {
				t.Errorf("go %s runs in %s, before the edit", args, in)
			}
			for _, name := range []string{"go.mod", "go.sum"} {
				if err := os.WriteFile(filepath.Join(in, name), []byte("changed"), 0o644); err != nil {
					t.Error(err)
				}
			}
			if args[0] == fails {
				return errors.New("exit status 1\ngo: 404 Not Found")
			}
			return nil
		})
		if code != 1 || !maps.Equal(tree(t, dir), files) {
			t.Errorf("go %s fails: exit code %d, want 1; files\n%q", fails, code, tree(t, dir))
		}
		for _, want := range []string{"edits are undone, as go " + fails, "404", "-version", "with -n"} {
			if !strings.Contains(out, want) {
				t.Errorf("go %s fails: the error lacks %q:\n%s", fails, want, out)
			}
		}
	}
}

// The go command runs where it has something to complete: once.
func TestAdopt_RunsTheGoCommand(t *testing.T) {
	dir := put(t, map[string]string{"go.mod": goMod, "main.go": mainGo})
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-check"}, ""},
		{[]string{"-n"}, ""},
		{nil, "get " + bridgePath + "@v0.2.0, mod tidy"}, // the edit is there, the requirement is not
		{nil, ""},
		{[]string{"-version", "v0.3.0"}, "get " + bridgePath + "@v0.3.0, mod tidy"},
		{[]string{"-undo", "-n"}, ""},
		{[]string{"-undo"}, ""},
	} {
		var ran []string
		code, out := runWith(t, dir, func(_ context.Context, in string, args ...string) error {
			ran = append(ran, strings.Join(args, " "))
			mod := goMod + "require " + bridgePath + " v0.2.0\n"
			return os.WriteFile(filepath.Join(in, "go.mod"), []byte(mod), 0o644)
		}, c.args...)
		if got := strings.Join(ran, ", "); code != 0 || got != c.want {
			t.Errorf("%v: exit code %d, and it runs go %s, want %s\n%s", c.args, code, got, c.want, out)
		}
	}
}

// Nothing outside of the module is read or written, and what is not a module is an error.
func TestAdopt_HostileTrees_Q7(t *testing.T) {
	outside := put(t, map[string]string{"main.go": mainGo})
	dir := put(t, map[string]string{
		"go.mod": goMod, "main.go": mainGo, "_x/main.go": mainGo, ".git/main.go": mainGo,
	})
	for name, target := range map[string]string{
		"linked": outside, "link.go": filepath.Join(outside, "main.go"),
		"loop": ".", "gone.go": "nothing",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skip("there are no symbolic links here:", err)
		}
	}
	code, out := run(t, dir)
	if code != 0 || !strings.Contains(out, "link.go: note: is not a regular file") ||
		!strings.Contains(out, "gone.go: note: ") {
		t.Errorf("exit code %d, want 0 and notes about the links\n%s", code, out)
	}
	after := tree(t, dir)
	if tree(t, outside)["main.go"] != mainGo ||
		after["_x/main.go"] != mainGo || after[".git/main.go"] != mainGo {
		t.Error("a file that is not of the module has changed")
	}
	if !strings.Contains(after["main.go"], "bridge.Options") || len(after) != 4 {
		t.Errorf("the files are\n%q\nwant main.go edited, and no file more", after)
	}
	alias := filepath.Join(t.TempDir(), "alias")
	if err := os.Symlink(dir, alias); err != nil {
		t.Fatal(err)
	}
	if code, out := run(t, alias, "-undo"); code != 0 || tree(t, dir)["main.go"] != mainGo {
		t.Errorf("through a link to the module -undo has exit code %d and changes nothing\n%s", code, out)
	}
	if err := os.Symlink(filepath.Join(dir, "go.mod"), filepath.Join(outside, "go.mod")); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		t.TempDir():                  "give the directory that has the operator's go.mod with -C",
		filepath.Join(dir, "no"):     "give its directory with -C",
		filepath.Join(dir, "go.mod"): "give its directory with -C",
		outside:                      "escapes",
	} {
		if code, out := run(t, in); code != 1 || !strings.Contains(out, want) {
			t.Errorf("in %s: exit code %d, want 1 and %q\n%s", in, code, want, out)
		}
	}
}

func TestAdopt_WrongArguments(t *testing.T) {
	dir := put(t, map[string]string{"go.mod": goMod, "main.go": mainGo})
	for _, c := range []struct {
		want string
		args []string
	}{
		{"give it without -undo", []string{"-check", "-undo"}},
		{"is one argument too many", []string{"./..."}},
		{"do you mean -check?", []string{"-chek"}},
	} {
		if code, out := run(t, dir, c.args...); code != 2 || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit code %d, want 2 and %q\n%s", c.args, code, c.want, out)
		}
	}
	if tree(t, dir)["main.go"] != mainGo {
		t.Error("main.go has changed")
	}
}

// Whatever the input, an edit is undone to its bytes, and a second one changes nothing.
func FuzzEdit(f *testing.F) {
	f.Add(mainGo)
	f.Add(strings.ReplaceAll(mainGo, "\n", "\r\n"))
	f.Add("package main;import ctrl \"sigs.k8s.io/controller-runtime\"\n" +
		"var _,_=ctrl.NewManager(a,/*b*/c)")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, bridgePath) {
			t.Skip()
		}
		Check([]byte(text), []File{{"main.go", []byte(text)}})
		r, err := Edit(File{"main.go", []byte(text)}, nil)
		if err != nil || len(r.Changed) == 0 {
			if string(r.Text) != text {
				t.Fatalf("%v, and the text is %q", err, r.Text)
			}
			return
		}
		again, err := Edit(File{"main.go", r.Text}, nil)
		if err != nil || len(again.Changed) > 0 || again.Wrapped != len(r.Changed)+r.Wrapped {
			t.Fatalf("%v, and a second edit changes %v of %q", err, again.Changed, r.Text)
		}
		back, err := Undo(File{"main.go", r.Text})
		if err != nil || string(back.Text) != text {
			t.Fatalf("%v, got %q back, want %q", err, back.Text, text)
		}
	})
}
