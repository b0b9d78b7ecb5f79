// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package gotree

import (
	"go/ast"
	"go/token"
	"slices"
)

// DeclarationOf returns the declaration of a function, type, constant or variable, or of a
// method by its receiver: reconciler.reconcile. Nil: there is none.
func (f *File) DeclarationOf(name string) ast.Decl {
	for _, decl := range f.Tree.Decls {
		if slices.Contains(declared(decl), name) {
			return decl
		}
	}
	return nil
}

// Declared returns the names that the file declares, methods by their receivers.
func (f *File) Declared() []string {
	var names []string
	for _, decl := range f.Tree.Decls {
		names = append(names, declared(decl)...)
	}
	return names
}

func declared(decl ast.Decl) []string {
	var names []string
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		name := decl.Name.Name
		if decl.Recv != nil && len(decl.Recv.List) == 1 {
			receiver := decl.Recv.List[0].Type
			if pointer, ok := receiver.(*ast.StarExpr); ok {
				receiver = pointer.X
			}
			name = nameOf(receiver) + "." + name
		}
		names = append(names, name)
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					names = append(names, id.Name)
				}
			}
		}
	}
	return names
}

// Overlay replaces the declarations of f by those of the same names in other, and appends
// the rest of other's. Imports of other are added.
func (f *File) Overlay(other *File) {
	for _, decl := range other.Tree.Decls {
		if isImport(decl) {
			f.Insert(f.Tree.Name.End(), "\n\n"+other.Text(decl))
			continue
		}
		text := other.Declaration(declared(decl)[0])
		if old := f.DeclarationOf(declared(decl)[0]); old != nil {
			f.change(f.begin(old), f.at(old.End()), text)
		} else {
			f.AppendText(text)
		}
	}
}

// Append appends the declaration of this name in other. It reports whether there is one.
func (f *File) Append(other *File, name string) bool {
	text := other.Declaration(name)
	if text != "" {
		f.AppendText(text)
	}
	return text != ""
}

// Declaration returns the source of a declaration with its comment. Empty: there is none.
func (f *File) Declaration(name string) string {
	decl := f.DeclarationOf(name)
	if decl == nil {
		return ""
	}
	return string(f.text[f.begin(decl):f.at(decl.End())])
}

// Whole returns the source of a declaration with all comments after the one before it, and
// the comment behind it on its line.
func (f *File) Whole(decl ast.Decl) string {
	first := f.Tree.Name.End() // the end of what is before
	for _, other := range f.Tree.Decls {
		if other.End() <= decl.Pos() {
			first = other.End()
		}
	}
	from, to := f.at(decl.Pos()), f.at(decl.End())
	for _, group := range f.Tree.Comments {
		switch {
		case group.Pos() > first && group.End() <= decl.Pos() && f.Line(group.Pos()) > f.Line(first):
			from = min(from, f.at(group.Pos()))
		case group.Pos() >= decl.End() && f.Line(group.Pos()) == f.Line(decl.End()):
			to = f.at(group.End())
		}
	}
	return string(f.text[from:to])
}

// AppendText appends a declaration.
func (f *File) AppendText(declaration string) {
	f.change(len(f.text), len(f.text), "\n"+declaration+"\n")
}

func isImport(decl ast.Decl) bool {
	gen, ok := decl.(*ast.GenDecl)
	return ok && gen.Tok == token.IMPORT
}
