// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// exampleMark names the file that contains the following Go block, word for word.
var exampleMark = regexp.MustCompile(`^<!-- from (\S+_test\.go|hack/tools/bench/migration/\S+\.go) -->$`)

// exampleFunc begins an example, which go doc and pkg.go.dev show as main.
var exampleFunc = regexp.MustCompile(`(?m)^func Example\w*\(\) \{`)

// goBlock is one Go block of the documentation.
type goBlock struct {
	doc  string
	line int    // of the block's first line
	file string // named by the mark before it; "" if there is none
	text string
}

// Each Go block of the documentation is also in a Go file, usually an example of the
// package that it shows, so the build and pkg.go.dev include it.
func TestHouse_GoBlocksStandInExamples(t *testing.T) {
	blocks := 0
	for _, doc := range append(glob(t, "*.md"), glob(t, "docs/*.md")...) {
		for _, b := range goBlocks(t, doc) {
			blocks++
			if b.file == "" {
				t.Errorf("%s:%d: a Go block that is not compiled; put it into an example and name the file: <!-- from client/example_patch_test.go -->", b.doc, b.line)
				continue
			}
			code, err := os.ReadFile(b.file)
			if err != nil {
				t.Errorf("%s:%d: %v", b.doc, b.line, err)
				continue
			}
			shown := exampleFunc.ReplaceAllString(string(code), "func main() {")
			if !strings.Contains(shown, "\n"+b.text) {
				t.Errorf("%s:%d: %s does not have this block; put it there in the same words", b.doc, b.line, b.file)
			}
		}
	}
	if blocks == 0 {
		t.Fatal("no Go block in the documentation; this test looks at nothing")
	}
}

// Files named example_… have examples. A file with other declarations beside them has
// exactly one, because pkg.go.dev shows the declarations only then.
func TestHouse_ExampleFilesAreShownWhole(t *testing.T) {
	for _, f := range sources(t) {
		if !strings.HasPrefix(f.base(), "example_") || !f.isTest() {
			continue
		}
		examples, others := 0, 0
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Example") {
				examples++
			} else if gen, ok := decl.(*ast.GenDecl); !ok || gen.Tok != token.IMPORT {
				others++
			}
		}
		if examples == 0 || examples > 1 && others > 0 {
			t.Errorf("%s: %d examples and %d other declarations, want one example, or examples alone", f.path, examples, others)
		}
	}
}

// goBlocks returns the Go blocks of a document.
func goBlocks(t *testing.T, doc string) []goBlock {
	t.Helper()
	var out []goBlock
	var open *goBlock // the block that is being read
	mark := ""
	number := 0
	for line := range strings.Lines(read(t, doc)) {
		number++
		line = strings.TrimSuffix(line, "\n")
		switch found := exampleMark.FindStringSubmatch(line); {
		case open != nil && line == "```":
			out = append(out, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		case line == "```go":
			open = &goBlock{doc: doc, line: number + 1, file: mark}
			mark = ""
		case found != nil:
			mark = found[1]
		case line != "":
			mark = ""
		}
	}
	return out
}
