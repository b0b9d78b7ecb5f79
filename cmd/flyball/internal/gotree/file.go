// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package gotree edits Go source by its syntax tree: the tree says which bytes of the text
// change, and all others, comments among them, stay as they are.
package gotree

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
)

// A File is Go source with its syntax tree and the edits to make. It is not safe for
// concurrent use.
type File struct {
	script
	Tree *ast.File
	fset *token.FileSet
}

// Parse parses the source of a file. The name is for messages.
func Parse(name string, text []byte) (*File, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("parse %w", err)
	}
	return &File{script: script{name: name, text: text}, Tree: tree, fset: fset}, nil
}

// Text returns the source of a node.
func (f *File) Text(n ast.Node) string { return string(f.text[f.at(n.Pos()):f.at(n.End())]) }

// Replace replaces the source of a node.
func (f *File) Replace(n ast.Node, text string) { f.change(f.at(n.Pos()), f.at(n.End()), text) }

// Insert inserts text before a position.
func (f *File) Insert(at token.Pos, text string) { f.change(f.at(at), f.at(at), text) }

func (f *File) at(pos token.Pos) int { return f.fset.Position(pos).Offset }

// Line returns the line of a position in the text.
func (f *File) Line(pos token.Pos) int { return f.fset.PositionFor(pos, false).Line }

// Edit parses source, calls change, and returns the source with the edits made.
func Edit(name string, text []byte, change func(f *File) error) ([]byte, error) {
	f, err := Parse(name, text)
	if err != nil {
		return nil, err
	}
	if err := change(f); err != nil {
		return nil, fmt.Errorf("edit %s: %w", name, err)
	}
	return f.Source()
}

// Func returns the function with this name, not a method. Nil: there is none.
func (f *File) Func(name string) *ast.FuncDecl {
	for _, decl := range f.Tree.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == name {
			return fn
		}
	}
	return nil
}

// Calling returns the first statement of fn's body that has a call with this source, such
// as flag.Parse(), or with this function, such as flag.Parse. Nil: there is none.
func (f *File) Calling(fn *ast.FuncDecl, call string) ast.Stmt {
	if fn == nil || fn.Body == nil {
		return nil
	}
	for _, s := range fn.Body.List {
		found := false
		ast.Inspect(s, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok && (f.Text(c) == call || f.Text(c.Fun) == call) {
				found = true
			}
			return !found
		})
		if found {
			return s
		}
	}
	return nil
}

// Literals returns the composite literals below root whose type, or that of its elements,
// has this name.
func (f *File) Literals(root ast.Node, name string) []ast.Node {
	var found []ast.Node
	ast.Inspect(root, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok && nameOf(lit.Type) == name {
			found = append(found, lit)
		}
		return true
	})
	return found
}

// Calls returns the calls of the function or method with this name.
func (f *File) Calls(root ast.Node, name string) []*ast.CallExpr {
	var found []*ast.CallExpr
	ast.Inspect(root, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && nameOf(call.Fun) == name {
			found = append(found, call)
		}
		return true
	})
	return found
}
