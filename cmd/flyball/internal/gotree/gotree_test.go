// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package gotree

import (
	"go/ast"
	"strings"
	"testing"
)

const source = `package main

import (
	"fmt"

	"example.com/tree/apple"
)

// setup lists apples. A greenApple is one of Apples.
func setup() error {
	apples := list[apple.Apple]() // all apples
	kinds := []kind{of(apples)}
	watch(owned(apples, trees))
	// The first apple is special.
	apple := first("apple", apples)
	if apple == nil {
		return fmt.Errorf("no %v", apple)
	}
	if _, err := apply(trees, apple); err != nil {
		return fmt.Errorf("apples: %w", err)
	}
	report(apple) // at the end
	return nil
}
`

func edited(t *testing.T, text string, change func(f *File)) string {
	t.Helper()
	out, err := Edit("a.go", []byte(text), func(f *File) error { change(f); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// want replaces lines of the source by others.
func want(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(source) }

func check(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFile_RenameKeepsImportsAndComments(t *testing.T) {
	got := edited(t, source, func(f *File) {
		f.Rename(Names{Idents: map[string]string{"apples": "redPears", "Apples": "RedPears", "Apple": "RedPear"}, Strings: map[string]string{"apples": "redpears"}})
	})
	check(t, got, want("apples:", "redpears:", "apples", "redPears", "Apples", "RedPears", "greenApple", "greenRedPear", "apple.Apple", "apple.RedPear"))
	back := edited(t, got, func(f *File) {
		f.Rename(Names{Idents: map[string]string{"redPears": "apples", "RedPears": "Apples", "RedPear": "Apple"}, Strings: map[string]string{"redpears": "apples"}})
	})
	check(t, back, source)
}

func TestFile_RepeatElements(t *testing.T) {
	pears := []Names{{Idents: map[string]string{"apples": "pears", "apple": "pear", "Apple": "Pear"}}}
	got := edited(t, source, func(f *File) {
		f.Repeat(f.Func("setup"), "apples", []string{"kind", "watch"}, pears)
	})
	check(t, got, want(
		"	apples := list[apple.Apple]() // all apples\n", "	apples := list[apple.Apple]()\n	pears := list[pear.Pear]() // all apples\n",
		"of(apples)}", "of(apples), of(pears)}", "owned(apples, trees)", "owned(apples, trees), owned(pears, trees)",
		`	apple := first("apple", apples)`, "	apple := first(\"apple\", apples)\n	pear := first(\"apple\", pears)"))
}

func TestFile_RemoveStatementsAndArguments(t *testing.T) {
	got := edited(t, source, func(f *File) {
		f.Remove(f.Func("setup"), []string{"apple"}, []string{"apply"})
	})
	check(t, got, want(
		"	apples := list[apple.Apple]() // all apples\n", "\n",
		"	// The first apple is special.\n	apple := first(\"apple\", apples)\n	if apple == nil {\n		return fmt.Errorf(\"no %v\", apple)\n	}\n", "\n",
		"apply(trees, apple)", "apply(trees)", "	report(apple) // at the end\n", "\n"))
}

func TestFile_WriteImportsAreThoseUsed(t *testing.T) {
	got := edited(t, source, func(f *File) {
		f.Replace(f.Func("setup").Body, "{\nother.Do(os.Args, extra.X)\nreturn fmt.Errorf(\"\")\n}")
	})
	got = edited(t, got, func(f *File) {
		f.WriteImports(Imports{"os": "os", "other": "example.com/other", "extra": "example.com/tree/more", "unused": "unused"}, "example.com/tree")
	})
	if head, _, _ := strings.Cut(got, "\n\n// setup"); head != "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\n\t\"example.com/other\"\n\n\textra \"example.com/tree/more\"\n)" {
		t.Errorf("the file begins with\n%s", head)
	}
}

func TestFile_OverlayReplacesByName(t *testing.T) {
	other, err := Parse("b.go", []byte("package main\n\n// setup is another.\nfunc setup() {}\n\n// T is new.\ntype T struct{}\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := edited(t, source, func(f *File) { f.Overlay(other) })
	if !strings.HasSuffix(got, "\n\n// setup is another.\nfunc setup() {}\n\n// T is new.\ntype T struct{}\n") || strings.Contains(got, "apples") {
		t.Errorf("the overlay gives\n%s", got)
	}
}

func TestFile_OverlappingEditsAreAnError(t *testing.T) {
	_, err := Edit("a.go", []byte(source), func(f *File) error {
		f.Replace(f.Func("setup").Body, "{}")
		f.Replace(f.Func("setup"), "")
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "two edits") {
		t.Errorf("%v, want an error about two edits", err)
	}
}

func TestFile_WholeHasEveryComment(t *testing.T) {
	text := "package a\n\n// +marker\n\n// T is one.\n//\n// +other\ntype T struct{} // end\n\n// mine\n\nfunc f() {}\n"
	f, err := Parse("a.go", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Whole(f.DeclarationOf("T")); got != "// +marker\n\n// T is one.\n//\n// +other\ntype T struct{} // end" {
		t.Errorf("T is\n%s", got)
	}
	if got := f.Whole(f.DeclarationOf("f")); got != "// mine\n\nfunc f() {}" {
		t.Errorf("f is\n%s", got)
	}
}

func TestFile_AddImportsIsSortedAndDropLineItsInverse(t *testing.T) {
	for _, imports := range []string{
		"import x \"x.org/near\"\n",
		"import (\n\t\"fmt\"\n\n\t// a comment\n\t\"p.org/o\" // another\n\tx \"x.org/near\"\n)\n",
		"import (\n\t\"a.org/a\"\n\t\"p.org/o\"\n\tx \"x.org/near\"\n\t\"y.org/y\"\n)\n",
	} {
		text := "package p\n\n" + imports
		added := edited(t, text, func(f *File) { f.AddImports([]string{`n "m.org/n"`}, "x.org/near") })
		f, err := Parse("p.go", []byte(added))
		if err != nil || strings.Count(added, "\n") != strings.Count(text, "\n")+1 {
			t.Fatalf("%v, got\n%s\nwant one line more", err, added)
		}
		for _, decl := range f.Tree.Decls {
			for _, spec := range decl.(*ast.GenDecl).Specs {
				if spec := spec.(*ast.ImportSpec); spec.Path.Value == `"m.org/n"` && !f.DropLine(spec) {
					f.DropLine(decl)
				}
			}
		}
		unformatted, err := f.Edited()
		if err != nil {
			t.Fatal(err)
		}
		check(t, string(unformatted), text)
	}
}
