// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/flyball-dev/flyball"

// TestMain runs the rules in the root of the repository, so that all paths are those of a reader.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// ofTheSite are directories that `make site` writes; the rules are not about what is in them.
var ofTheSite = map[string]bool{"hack/site/node_modules": true, "hack/site/generated": true, "hack/site/dist": true}

// read returns the text of a file.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// glob returns the files that match a pattern, with slashes, of which there are some.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no file matches %s (%v); this test looks at nothing", pattern, err)
	}
	for i := range files {
		files[i] = filepath.ToSlash(files[i])
	}
	return files
}

// sourceFile is one Go file of the repository.
type sourceFile struct {
	path string // from the root, with slashes
	dir  string // its directory, "." for the root
	text []byte
	ast  *ast.File
	fset *token.FileSet
}

func (f sourceFile) base() string { return path.Base(f.path) }
func (f sourceFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// isLibrary reports whether the file is part of what an operator can import.
func (f sourceFile) isLibrary() bool {
	return !within(f.dir, "examples") && !within(f.dir, "hack") && !within(f.dir, "simulate")
}

func (f sourceFile) imports() []string {
	var out []string
	for _, spec := range f.ast.Imports {
		if imp, err := strconv.Unquote(spec.Path.Value); err == nil {
			out = append(out, imp)
		}
	}
	return out
}

func within(dir, top string) bool { return dir == top || strings.HasPrefix(dir, top+"/") }
func under(imp, dir string) bool  { return within(imp, module+"/"+dir) }
func isInternal(dir string) bool  { return slices.Contains(strings.Split(dir, "/"), "internal") }

var parseOnce = sync.OnceValues(parse)

// sources returns every Go file of the repository, those of the nested modules
// and the tests among them.
func sources(t *testing.T) []sourceFile {
	t.Helper()
	files, err := parseOnce()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func parse() ([]sourceFile, error) {
	var files []sourceFile
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if hidden := strings.HasPrefix(d.Name(), ".") && name != "."; hidden || d.Name() == "testdata" || ofTheSite[filepath.ToSlash(name)] {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(fset, name, text, parser.ParseComments)
		if err != nil {
			return err
		}
		slashed := filepath.ToSlash(name)
		files = append(files, sourceFile{slashed, path.Dir(slashed), text, parsed, fset})
		return nil
	})
	return files, err
}

func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	return goCommandIn(t, ".", args...)
}

// goCommandIn runs the go command in a directory, outside any workspace, and
// returns what it prints.
func goCommandIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, problems.String())
	}
	return string(out)
}
