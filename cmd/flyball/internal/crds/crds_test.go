// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what the scripts of testdata get")

// program writes files into a module of its own that has the dependencies of
// the examples, and returns its directory.
func program(t *testing.T, files []txtar.File) string {
	t.Helper()
	t.Setenv("GOWORK", "off")
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "examples/go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "examples/go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(mod), "module github.com/flyball-dev/flyball/examples", "module example.dev/program", 1)
	text = regexp.MustCompile(`=> \.\.(/\S*)`).ReplaceAllStringFunc(text, func(target string) string {
		return "=> " + strconv.Quote(filepath.ToSlash(root)+strings.TrimPrefix(target, "=> .."))
	})
	// A path with symbolic links is not the one that go list prints.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(slices.Clip(files), txtar.File{Name: "go.mod", Data: []byte(text)}, txtar.File{Name: "go.sum", Data: sum}) {
		name := filepath.Join(dir, file.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Each script is a program, and a file want.yaml or want.err. Its comment has the arguments
// after "crdgen".
func TestScripts_O3_O4(t *testing.T) {
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
			last := len(a.Files) - 1
			want := a.Files[last]
			dir := program(t, a.Files[:last])
			args := []string{"-C", dir, "-o", "crd.yaml"}
			for line := range strings.Lines(string(a.Comment)) {
				if rest, ok := strings.CutPrefix(line, "flyball crds "); ok {
					args = append(args, strings.Fields(rest)...)
				}
			}
			var stdout, stderr bytes.Buffer
			code := Run(t.Context(), args, &stdout, &stderr)
			got, err := os.ReadFile(filepath.Join(dir, "crd.yaml"))
			switch {
			case want.Name == "want.err":
				if err == nil || code != failure {
					t.Errorf("exit code %d, and the file has %d bytes; want %d and no file", code, len(got), failure)
				}
				got = bytes.ReplaceAll(stderr.Bytes(), []byte(dir+string(filepath.Separator)), nil)
			case err != nil || code != success || stderr.Len() > 0:
				t.Fatalf("exit code %d, %v\n%s", code, err, stderr.String())
			}
			if *update {
				a.Files[last].Data = got
				if err := os.WriteFile(script, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Equal(got, want.Data) {
				t.Errorf("%s of %s differs; if it is right, run the test with -update:\n%s", want.Name, script, diff(script, want.Data, got))
			}
		})
	}
}

func TestRun_TheSameInputGivesTheSameBytes_O3(t *testing.T) {
	a, err := txtar.ParseFile("testdata/generic.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := program(t, a.Files)
	var first string
	for range 5 {
		var stdout, stderr bytes.Buffer
		if code := Run(t.Context(), []string{"-C", dir, "./..."}, &stdout, &stderr); code != success {
			t.Fatal(stderr.String())
		}
		if first == "" {
			first = stdout.String()
		}
		if got := stdout.String(); got != first {
			t.Fatalf("two runs differ:\n%s", diff("first", []byte(first), []byte(got)))
		}
	}
}

func TestRun_CheckFailsIfTheFileDiffers_O5(t *testing.T) {
	a, err := txtar.ParseFile("testdata/kubebuilder.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := program(t, a.Files)
	file := filepath.Join(dir, "config", "crd.yaml")
	crdgen := func(more ...string) (int, string) {
		var stdout, stderr bytes.Buffer
		code := Run(t.Context(), append([]string{"-C", dir, "-o", "config/crd.yaml"}, more...), &stdout, &stderr)
		return code, stdout.String() + stderr.String()
	}
	if code, out := crdgen("-check", "./..."); code != failure || !strings.Contains(out, "+kind: CustomResourceDefinition") {
		t.Errorf("without a file: exit code %d, want %d and the whole file as a diff:\n%s", code, failure, out)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("-check has written the file")
	}
	if code, out := crdgen("./..."); code != success {
		t.Fatal(out)
	}
	if code, out := crdgen("-check", "./..."); code != success || out != "" {
		t.Errorf("with the file: exit code %d, want %d and no words:\n%s", code, success, out)
	}
	right, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wrong := bytes.Replace(right, []byte("minLength: 1"), []byte("minLength: 2"), 1)
	if err := os.WriteFile(file, wrong, 0o644); err != nil {
		t.Fatal(err)
	}
	code, out := crdgen("-check", "./...")
	if code != failure || !strings.Contains(out, "-                minLength: 2\n+                minLength: 1\n") || !strings.Contains(out, "config/crd.yaml differs") {
		t.Errorf("with another file: exit code %d, want %d and the line that differs:\n%s", code, failure, out)
	}
	if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, wrong) {
		t.Errorf("-check has changed the file (%v)", err)
	}
}

// The example's file is what its types say; make crds writes it.
func TestExamples_FilesAreWhatTheTypesSay_O5(t *testing.T) {
	t.Setenv("GOWORK", "off")
	var stdout, stderr bytes.Buffer
	if code := Run(t.Context(), []string{"-C", "../../../../examples/operator", "-o", "config/crd.yaml", "-check", "./api/..."}, &stdout, &stderr); code != success {
		t.Errorf("%s%s(make crds writes it)", stdout.String(), stderr.String())
	}
}

func TestRun_MisuseOfFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-check", "name it with -o"},
		{"-unknown", "there is no flag -unknown\nusage"},
		{"-chekc .", "do you mean -check?\nusage"},
		{"-max-description x", "-max-description"},
		{"check ./api/...", "such as -check"},
		{"./api/... -o crd.yaml", "flags come before packages"},
	} {
		var stdout, stderr bytes.Buffer
		if code := Run(t.Context(), strings.Fields(c.args), &stdout, &stderr); code != usage || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s: exit code %d and %q, want %d and %q", c.args, code, stderr.String(), usage, c.want)
		}
	}
}
