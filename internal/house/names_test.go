// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"bytes"
	"cmp"
	"go/ast"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// barredNames say what a name is not: a twin, a leftover, a drawer.
var (
	barredWords = []string{"Typed", "Impl", "Base", "Util", "Utils", "2"}
	barredFiles = []string{"types.go", "helpers.go", "util.go", "utils.go", "common.go", "misc.go"}
	barredDirs  = []string{"pkg", "util", "utils", "common", "helpers", "misc"}
)

// demanded are names that an interface of someone else asks for.
var demanded = map[string][]string{
	"bridge/clientgo":          {"AddEventHandlerWithOptions"}, // cache.SharedInformer
	"bridge/controllerruntime": {"AddEventHandlerWithOptions"}, // cache.Informer
}

func TestHouse_EachPackageHasItsComment(t *testing.T) {
	comments := map[string]string{}
	for _, f := range sources(t) {
		if !f.isTest() {
			comments[f.dir] = cmp.Or(comments[f.dir], f.ast.Doc.Text())
			if f.ast.Doc != nil && f.isLibrary() && !isInternal(f.dir) && f.base() != "doc.go" {
				t.Errorf("%s: the package comment stands in doc.go, so that a reader finds it", f.path)
			}
		}
	}
	for dir, comment := range comments {
		if comment == "" {
			t.Errorf("%s: no package comment; it is the package's contract", dir)
		}
	}
}

// maxTemplate is how many lines of Go the template has without its tests: what a
// reader would delete first belongs into examples/website.
const maxTemplate = 350

func TestHouse_TheTemplateIsSmall(t *testing.T) {
	lines := 0
	for _, f := range sources(t) {
		if within(f.dir, "examples/operator") && !f.isTest() {
			lines += bytes.Count(f.text, []byte("\n"))
		}
	}
	if lines == 0 || lines > maxTemplate {
		t.Errorf("examples/operator has %d lines of Go without tests, want some and at most %d", lines, maxTemplate)
	}
}

func TestHouse_FilesCarryTheLicence(t *testing.T) {
	header := []byte("// SPDX-FileCopyrightText: The Flyball Authors\n// SPDX-License-Identifier: Apache-2.0\n\n")
	for _, f := range sources(t) {
		if !bytes.HasPrefix(f.text, header) {
			t.Errorf("%s: does not begin with these two lines and an empty one:\n%s", f.path, header)
		}
	}
}

func TestHouse_NamesSayWhatAThingIs(t *testing.T) {
	for _, f := range sources(t) {
		if slices.Contains(barredFiles, f.base()) {
			t.Errorf("%s: a file is named after its main type or verb", f.path)
		}
		for _, dir := range strings.Split(f.dir, "/") {
			if slices.Contains(barredDirs, dir) {
				t.Errorf("%s: %q is a drawer, not a package", f.path, dir)
			}
		}
		if f.isTest() || !f.isLibrary() {
			continue
		}
		for _, name := range exported(f.ast) {
			if slices.Contains(demanded[f.dir], name) {
				continue
			}
			if strings.Contains(name, "WithOptions") {
				t.Errorf("%s: %s: each constructor takes its Options; there is no second one", f.path, name)
			}
			for _, word := range words(name) {
				if slices.Contains(barredWords, word) {
					t.Errorf("%s: %s: %q does not belong in an exported name", f.path, name, word)
				}
			}
		}
	}
}

// The root is what a reader sees first: prose, and one package comment with its examples.
func TestHouse_TheRootHasNoTests(t *testing.T) {
	for _, f := range sources(t) {
		if f.dir == "." && f.base() != "doc.go" && !strings.HasPrefix(f.base(), "example_") {
			t.Errorf("%s: the root has doc.go and its examples alone; a rule belongs into internal/house", f.path)
		}
	}
}

// exported returns the exported names that a file declares at its top level,
// methods among them.
func exported(f *ast.File) []string {
	var names []*ast.Ident
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			names = append(names, decl.Name)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name)
				case *ast.ValueSpec:
					names = append(names, spec.Names...)
				}
			}
		}
	}
	var out []string
	for _, name := range names {
		if name.IsExported() {
			out = append(out, name.Name)
		}
	}
	return out
}

// words splits a name at its capitals and digits: AddRateLimited2 is Add,
// Rate, Limited, 2.
func words(name string) []string {
	var out []string
	for i, r := range name {
		if i == 0 || unicode.IsUpper(r) || unicode.IsDigit(r) {
			out = append(out, "")
		}
		out[len(out)-1] += string(r)
	}
	return out
}
