// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
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

func TestTemplate_IsTheExample_Q4(t *testing.T) {
	all := readExample(t)
	if *update {
		var out bytes.Buffer
		if err := all.wrap(); err != nil {
			t.Fatal(err)
		}
		out.WriteString("A copy of examples/operator. After a change there: go test ./cmd/flyball/internal/scaffold -update\n")
		for _, name := range slices.Sorted(maps.Keys(all)) {
			out.WriteString("-- " + name + " --\n")
			out.Write(all[name])
			if err := os.WriteFile(filepath.Join(example, filepath.FromSlash(name)), all[name], 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile("template.txtar", out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	compare(t, unpack(templateArchive), all, "examples/operator; run this test with -update")
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
