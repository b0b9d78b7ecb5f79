// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"flag"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "wrap lines of examples/operator, and copy it into template.txtar")

const example = "../../../../examples/operator"

// readExample returns the files of the example that an operator begins with.
func readExample(t *testing.T) files {
	t.Helper()
	all := files{}
	err := filepath.WalkDir(example, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "README.md" || d.Name() == "failure_test.go" {
			return err
		}
		name, err := filepath.Rel(example, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		all[filepath.ToSlash(name)] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// moduleFiles returns go.mod and go.sum of the example alone, which is a part of the module of
// all examples: what go mod tidy leaves of theirs.
func moduleFiles(t *testing.T, all files) files {
	t.Helper()
	dir, root := t.TempDir(), absolute(t, "../../../..")
	text := string(contents(t, "../../../../examples/go.mod"))
	text = strings.Replace(text, "/examples\n", "/examples/operator\n", 1)
	text = strings.ReplaceAll(text, "=> ../", "=> "+root+"/")
	for name, data := range all {
		put(t, filepath.Join(dir, name), data)
	}
	put(t, filepath.Join(dir, "go.mod"), []byte(text))
	put(t, filepath.Join(dir, "go.sum"), contents(t, "../../../../examples/go.sum"))
	cmd := exec.CommandContext(t.Context(), "go", "mod", "tidy")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go mod tidy: %v\n%s", err, out)
	}
	var direct, indirect []string
	for line := range strings.Lines(string(contents(t, filepath.Join(dir, "go.mod")))) {
		switch {
		case strings.HasSuffix(line, " // indirect\n"):
			indirect = append(indirect, line)
		case strings.HasPrefix(line, "\t") && !strings.Contains(line, " => "):
			direct = append(direct, line)
		}
	}
	slices.Sort(direct)
	slices.Sort(indirect)
	text = "module " + templateModule + "\n\ngo 1.26.0\n\nrequire (\n" + strings.Join(direct, "") +
		")\n\nrequire (\n" + strings.Join(indirect, "") + ")\n"
	return files{"go.mod": []byte(text), "go.sum": contents(t, filepath.Join(dir, "go.sum"))}
}

func TestTemplate_IsTheExample_Q4(t *testing.T) {
	all := readExample(t)
	if *update {
		var out bytes.Buffer
		if err := all.wrap(); err != nil {
			t.Fatal(err)
		}
		for name, text := range all {
			put(t, filepath.Join(example, filepath.FromSlash(name)), text)
		}
		maps.Copy(all, moduleFiles(t, all))
		out.WriteString("A copy of examples/operator. After a change there: go test ./cmd/flyball/internal/scaffold -update\n")
		for _, name := range slices.Sorted(maps.Keys(all)) {
			out.WriteString("-- " + name + " --\n")
			out.Write(all[name])
		}
		put(t, "template.txtar", out.Bytes())
		return
	}
	archived := unpack(templateArchive)
	versions := string(contents(t, "../../../../examples/go.mod"))
	for line := range strings.Lines(string(archived["go.mod"])) {
		required, _, _ := strings.Cut(strings.TrimSpace(line), " // ")
		if strings.HasPrefix(line, "\t") && !strings.Contains(versions, "\t"+required) {
			t.Errorf("the template requires %s, which examples/go.mod does not; run this test with -update", required)
		}
	}
	delete(archived, "go.mod")
	delete(archived, "go.sum")
	compare(t, archived, all, "examples/operator; run this test with -update")
}

// With the template's own names the command writes the template.
func TestProject_OfTheTemplateIsTheTemplate_Q4(t *testing.T) {
	got, err := filesOf(Project{Module: "example.com/me/frontend", Kind: "Frontend", Group: templateGroup, Version: "v0.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	want := template()
	want["api/v1/frontend.go"] = want[templateAPI]
	delete(want, templateAPI)
	want["README.md"] = got["README.md"] // the example's is about the example
	for name, text := range want {
		if isGo(name) {
			want[name] = bytes.ReplaceAll(text, []byte(templateModule), []byte("example.com/me/frontend"))
		}
	}
	delete(want, "go.mod") // it has no clone
	delete(got, "go.mod")
	compare(t, got, want, "the template")
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	out, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(out)
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func put(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func filesOf(p Project) (files, error) {
	plan, err := p.check()
	if err != nil {
		return nil, err
	}
	return plan.files()
}

func compare(t *testing.T, got, want files, of string) {
	t.Helper()
	if names, wanted := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(names, wanted) {
		t.Errorf("the files are %v, want those of %s: %v", names, of, wanted)
	}
	for name, text := range want {
		if !bytes.Equal(got[name], text) {
			t.Errorf("%s differs from %s: got\n%s\nwant\n%s", name, of, got[name], text)
		}
	}
}
