// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package gotree

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"unicode"
)

// Names say how words are written where they are names of Go, and where they are in
// strings. A word is what begins at a capital: newFrontend has new and Frontend.
type Names struct {
	Idents, Strings map[string]string
}

// Ident returns the new name of an identifier.
func (n Names) Ident(name string) string { return replaceWords(name, n.Idents) }

// word is what a comment or a string has in place of an identifier.
var word = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// Comment returns the new text of a comment, which speaks of Go's names.
func (n Names) Comment(text string) string { return word.ReplaceAllStringFunc(text, n.Ident) }

// String returns the new text of a string.
func (n Names) String(text string) string {
	return word.ReplaceAllStringFunc(text, func(w string) string { return replaceWords(w, n.Strings) })
}

// Rename renames identifiers and the words of strings and comments. Paths of imports and
// the package's name stay.
func (f *File) Rename(names Names) {
	f.renameIn(f.Tree, names)
	f.Comments(func(text string) string {
		if strings.HasPrefix(text, "//go:") {
			return text
		}
		return names.Comment(text)
	})
}

func (f *File) renameIn(root ast.Node, names Names) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Ident:
			if to := names.Ident(n.Name); to != n.Name && n != f.Tree.Name {
				f.Replace(n, to)
			}
		case *ast.BasicLit:
			if to := names.String(n.Value); n.Kind == token.STRING && to != n.Value {
				f.Replace(n, to)
			}
		}
		return true
	})
}

// Renamed returns the source of a node with its names changed, without an edit of f.
func (f *File) Renamed(n ast.Node, names Names) string {
	part := &File{script: script{name: f.name, text: f.text}, Tree: f.Tree, fset: f.fset}
	part.renameIn(n, names)
	text, from := f.Text(n), f.at(n.Pos())
	for i := len(part.edits) - 1; i >= 0; i-- { // Inspect goes forward
		e := part.edits[i]
		text = text[:e.from-from] + e.text + text[e.to-from:]
	}
	return text
}

// replaceWords replaces words of a name, or several in a row.
func replaceWords(name string, replace map[string]string) string {
	var out strings.Builder
	all := words(name)
	for len(all) > 0 {
		to, length := all[0], 1
		for n := len(all); n > 0; n-- {
			if by, ok := replace[strings.Join(all[:n], "")]; ok {
				to, length = by, n
				break
			}
		}
		out.WriteString(to)
		all = all[length:]
	}
	return out.String()
}

// words splits a name at its capitals.
func words(name string) []string {
	var all []string
	start := 0
	for i, r := range name {
		if i > start && (unicode.IsUpper(r) || r == '_') {
			all = append(all, name[start:i])
			start = i
		}
	}
	return append(all, name[start:])
}

// Comments changes the text of each comment, with its slashes.
func (f *File) Comments(change func(text string) string) {
	for _, group := range f.Tree.Comments {
		for _, c := range group.List {
			if to := change(c.Text); to != c.Text {
				f.Replace(c, to)
			}
		}
	}
}

// Strings changes each string literal, with its quotes, paths of imports among them.
func (f *File) Strings(change func(quoted string) string) {
	ast.Inspect(f.Tree, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if to := change(lit.Value); to != lit.Value {
				f.Replace(lit, to)
			}
		}
		return true
	})
}

// Selectors replaces each expression of two or more names, such as frontend.Spec.Image, by
// what replace has for it. It returns those that it has found.
func (f *File) Selectors(replace map[string]string) map[string]bool {
	found := map[string]bool{}
	ast.Inspect(f.Tree, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		to, ok := replace[f.Text(s)]
		if ok {
			found[f.Text(s)] = true
			f.Replace(s, to)
		}
		return !ok
	})
	return found
}

// RenameObjects renames identifiers without a qualifier and, in comments, words: whole
// names, not their parts.
func (f *File) RenameObjects(names map[string]string) {
	qualified := map[*ast.Ident]bool{}
	ast.Inspect(f.Tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			qualified[n.Sel] = true
		case *ast.Ident:
			if names[n.Name] != "" && !qualified[n] {
				f.Replace(n, names[n.Name])
			}
		}
		return true
	})
	f.Comments(func(text string) string {
		return word.ReplaceAllStringFunc(text, func(w string) string {
			if to := names[w]; to != "" {
				return to
			}
			return w
		})
	})
}
