// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"
)

// maxDoc is how many lines go doc may print for a package: two screens.
const maxDoc = 125

func TestHouse_GoDocFitsOnTwoScreens(t *testing.T) {
	dirs := map[string][]*ast.File{}
	fset := token.NewFileSet()
	for _, f := range sources(t) {
		if f.isTest() || isInternal(f.dir) || within(f.dir, "examples") || within(f.dir, "hack") {
			continue
		}
		parsed, err := parser.ParseFile(fset, f.path, f.text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		dirs[f.dir] = append(dirs[f.dir], parsed)
	}
	if len(dirs) == 0 {
		t.Fatal("no public package; this test looks at nothing")
	}
	for dir, files := range dirs {
		p, err := doc.NewFromFiles(fset, files, path.Join(module, dir))
		if err != nil {
			t.Fatal(err)
		}
		if lines := docLines(p); lines > maxDoc {
			t.Errorf("go doc ./%s prints %d lines, want at most %d: move details from the package comment to a page of docs", dir, lines, maxDoc)
		}
	}
}

// docLines returns the number of lines that go doc prints for p: the package clause, the
// comment, and a line for each declaration.
func docLines(p *doc.Package) int {
	lines := 2 + strings.Count(string(p.Text(p.Doc)), "\n") + 1
	lines += len(p.Consts) + len(p.Vars) + len(p.Funcs) + len(p.Types)
	for _, typ := range p.Types {
		lines += len(typ.Consts) + len(typ.Vars) + len(typ.Funcs)
	}
	return lines
}
