// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"bytes"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// maxBranches is how many branches a function has at most, but for some, whose number only shrinks.
const maxBranches = 15

// What one person has to hold. Each figure has a bound, which only shrinks; go test -v prints them.
func TestHouse_SizeOfTheHouse(t *testing.T) {
	packages, branchy := map[string]bool{}, 0
	lines, rootTests := 0, 0
	for _, f := range sources(t) {
		if f.isTest() {
			if f.dir == "." && !strings.HasPrefix(f.path, "example") {
				rootTests++
			}
			continue
		}
		packages[f.dir] = true
		lines += bytes.Count(f.text, []byte("\n"))
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && branches(fn) > maxBranches {
				branchy++
			}
		}
	}
	modules, words := 0, 0
	links := regexp.MustCompile(`(?m)^\[.*\]: .*$`) // the targets of cited codes
	for _, pattern := range []string{"go.mod", "*/go.mod", "*/*/go.mod", "*/*/*/go.mod"} {
		modules += len(glob(t, pattern))
	}
	for _, page := range append([]string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"}, glob(t, "docs/*.md")...) {
		words += len(strings.Fields(links.ReplaceAllString(read(t, page), "")))
	}
	for _, c := range []struct {
		what     string
		now, max int
	}{
		{"modules", modules, 8},
		{"packages", len(packages), 176},
		{"lines of Go without tests", lines, 170_800},
		{"tests at the root", rootTests, 0},
		{"functions with more than 15 branches", branchy, 30},
		{"words in README, ARCHITECTURE, CONTRIBUTING and docs", words, 49_450},
	} {
		t.Logf("%7d %s", c.now, c.what)
		if c.now > c.max {
			t.Errorf("%d %s, at most %d", c.now, c.what, c.max)
		}
	}
}

// branches counts the conditions of a function.
func branches(fn *ast.FuncDecl) (n int) {
	ast.Inspect(fn, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}
