// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package gotree

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Imports are the paths of packages by their names in a file.
type Imports map[string]string

// Imports returns what the file imports, except for blank imports.
func (f *File) Imports() Imports {
	all := Imports{}
	for _, spec := range f.Tree.Imports {
		if name, to := imported(spec); name != "_" {
			all[name] = to
		}
	}
	return all
}

func imported(spec *ast.ImportSpec) (name, to string) {
	to, _ = strconv.Unquote(spec.Path.Value) // the parser has checked it
	if spec.Name != nil {
		return spec.Name.Name, to
	}
	return path.Base(to), to
}

// WriteImports writes the file's imports anew: what it uses of known and of what it
// imports already, and blank imports. The groups, with a blank line between them, are the
// standard library, other packages, and those whose paths begin with one of own, in order.
func (f *File) WriteImports(known Imports, own ...string) {
	use := maps.Clone(known)
	maps.Copy(use, f.Imports())
	lines := make([][]string, 2+len(own))
	add := func(to, line string) {
		group := 1
		if first, _, _ := strings.Cut(to, "/"); !strings.Contains(first, ".") {
			group = 0
		}
		for i, prefix := range own {
			if to == prefix || strings.HasPrefix(to, prefix+"/") {
				group = 2 + i
			}
		}
		lines[group] = append(lines[group], line)
	}
	used := f.Qualifiers()
	for name, to := range use {
		switch {
		case !used[name]:
		case name == path.Base(to):
			add(to, strconv.Quote(to))
		default:
			add(to, name+" "+strconv.Quote(to))
		}
	}
	for _, spec := range f.Tree.Imports {
		if name, to := imported(spec); name == "_" {
			add(to, "_ "+strconv.Quote(to))
		}
	}
	var last ast.Decl // a comment may be between the package's name and it
	for _, decl := range f.Tree.Decls {
		if isImport(decl) {
			f.Cut(decl)
			last = decl
		}
	}
	var text strings.Builder
	for _, group := range lines {
		if len(group) == 0 {
			continue
		}
		slices.SortFunc(group, func(a, b string) int { return strings.Compare(a[strings.Index(a, `"`):], b[strings.Index(b, `"`):]) })
		text.WriteString(strings.Join(group, "\n") + "\n\n")
	}
	block := "import (\n" + strings.TrimSuffix(text.String(), "\n") + ")"
	switch {
	case text.Len() == 0:
	case last != nil:
		f.Insert(last.End(), block)
	default:
		f.Insert(f.Tree.Name.End(), "\n\n"+block)
	}
}

// Qualifiers returns the names before a dot.
func (f *File) Qualifiers() map[string]bool {
	used := map[string]bool{}
	ast.Inspect(f.Tree, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := s.X.(*ast.Ident); ok {
				used[id.Name] = true
			}
		}
		return true
	})
	return used
}

// Outer returns the names that the file uses or declares without a qualifier, and the
// names of packages: those that a new name must not repeat.
func (f *File) Outer() map[string]bool {
	names := map[string]bool{}
	inner := map[*ast.Ident]bool{}
	ast.Inspect(f.Tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			inner[n.Sel] = true
		case *ast.KeyValueExpr:
			if id, ok := n.Key.(*ast.Ident); ok {
				inner[id] = true
			}
		case *ast.Ident:
			if !inner[n] {
				names[n.Name] = true
			}
		}
		return true
	})
	return names
}

// AddImports adds specs beside the first import of a path that begins with near, before those of
// its group whose paths are greater. Other lines stay.
func (f *File) AddImports(specs []string, near string) {
	var beside *ast.ImportSpec
	var block *ast.GenDecl // has it
	found := false
	for _, decl := range f.Tree.Decls {
		if !isImport(decl) {
			continue
		}
		for _, s := range decl.(*ast.GenDecl).Specs {
			spec := s.(*ast.ImportSpec)
			_, to := imported(spec)
			if isNear := strings.HasPrefix(to, near); beside == nil || isNear && !found {
				beside, block, found = spec, decl.(*ast.GenDecl), isNear
			}
		}
	}
	for _, spec := range specs {
		switch {
		case beside == nil:
		case block.Lparen.IsValid():
			place := f.place(block, beside, spec[strings.Index(spec, `"`):])
			f.InsertLine(above(place, place.Doc), "\t"+spec)
		default:
			f.InsertLine(above(block, block.Doc), "import "+spec)
		}
	}
}

// place returns the first of the imports with lesser lines in the group of one, and of itself,
// from which on all paths are greater than the quoted one.
func (f *File) place(block *ast.GenDecl, spec *ast.ImportSpec, quoted string) *ast.ImportSpec {
	for i := slices.Index(block.Specs, ast.Spec(spec)); i > 0; i-- {
		before := block.Specs[i-1].(*ast.ImportSpec)
		if before.Path.Value <= quoted || f.Line(before.End())+1 != f.Line(spec.Pos()) {
			break
		}
		spec = before
	}
	return spec
}

func above(n ast.Node, doc *ast.CommentGroup) ast.Node {
	if doc != nil {
		return doc
	}
	return n
}
