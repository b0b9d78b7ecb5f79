// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package gotree

import (
	"bytes"
	"go/ast"
	"slices"
	"strings"
)

// element is an element of a list: a declaration, a statement of a block, a field of a
// struct or, separated by commas, an element of a literal or an argument of a call.
type element struct {
	node   ast.Node
	commas bool
}

// elements returns the elements of lists below root that mention one of names: the
// smallest that have all mentions of those around them.
// Literals and calls are lists only if lists has the literal's type or the function.
func elements(root ast.Node, names, lists []string) []element {
	var found []element
	for _, e := range outermost(root, lists) {
		all, inside := mentions(e.node, names), 0
		if all == 0 {
			continue
		}
		smaller := elements(e.node, names, lists)
		for _, s := range smaller {
			inside += mentions(s.node, names)
		}
		if inside == all {
			found = append(found, smaller...)
		} else {
			found = append(found, e)
		}
	}
	return found
}

// outermost returns the elements of lists below root that are in no other list there.
func outermost(root ast.Node, lists []string) []element {
	var found []element
	ast.Inspect(root, func(n ast.Node) bool {
		before := len(found)
		switch n := n.(type) {
		case *ast.File:
			found = appendElements(found, n.Decls, false)
		case *ast.BlockStmt:
			found = appendElements(found, n.List, false)
		case *ast.StructType:
			found = appendElements(found, n.Fields.List, false)
		case *ast.CompositeLit:
			if slices.Contains(lists, nameOf(n.Type)) {
				found = appendElements(found, n.Elts, true)
			}
		case *ast.CallExpr:
			if slices.Contains(lists, nameOf(n.Fun)) {
				found = appendElements(found, n.Args, true)
			}
		}
		return len(found) == before
	})
	return found
}

func appendElements[N ast.Node](found []element, nodes []N, commas bool) []element {
	for _, n := range nodes {
		found = append(found, element{n, commas})
	}
	return found
}

// nameOf returns the last name of a function or type: Object of []kit.Object.
func nameOf(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.ArrayType:
		return nameOf(x.Elt)
	}
	return ""
}

// mentions counts the identifiers of n that are one of names.
func mentions(n ast.Node, names []string) int {
	count := 0
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && slices.Contains(names, id.Name) {
			count++
		}
		return true
	})
	return count
}

// Repeat repeats each element of a list below root that mentions name, the smallest with
// all mentions around it: once for each of others, with its names. Blocks and structs are lists; literals and calls are if
// lists has the literal's type or the function.
func (f *File) Repeat(root ast.Node, name string, lists []string, others []Names) {
	for _, e := range elements(root, []string{name}, lists) {
		between := "\n"
		if e.commas {
			between = ", "
		}
		var text strings.Builder
		for _, other := range others {
			text.WriteString(between + f.Renamed(e.node, other))
		}
		f.Insert(e.node.End(), text.String())
	}
}

// Remove removes each element of a list below root that mentions one of names, with the
// comment above it. Lists and elements are those of Repeat.
func (f *File) Remove(root ast.Node, names, lists []string) {
	for _, e := range elements(root, names, lists) {
		if e.commas {
			f.cutOf(e.node)
		} else {
			f.Cut(e.node)
		}
	}
}

// DropArgument removes the argument at index of a call, if it has one.
func (f *File) DropArgument(call *ast.CallExpr, index int) {
	if index < len(call.Args) {
		f.cutOf(call.Args[index])
	}
}

// cutOf removes an element of a list, and a comma.
func (f *File) cutOf(n ast.Node) {
	from, to := f.at(n.Pos()), f.at(n.End())
	after := bytes.TrimLeft(f.text[to:], " \t")
	if rest, ok := bytes.CutPrefix(after, []byte(",")); ok {
		to = len(f.text) - len(bytes.TrimLeft(rest, " \t"))
	} else if before := bytes.TrimRight(f.text[:from], " \t\n"); bytes.HasSuffix(before, []byte(",")) {
		from = len(before) - 1
	}
	f.change(min(from, f.begin(n)), to, "")
}

// Cut removes a node that is on lines of its own, with its comments.
func (f *File) Cut(n ast.Node) {
	to := f.at(n.End())
	line, _, _ := strings.Cut(string(f.text[to:]), "\n")
	if rest := strings.TrimSpace(line); strings.HasPrefix(rest, "//") {
		to += len(line)
	}
	f.change(f.begin(n), to, "")
}

// begin returns where a node begins, or the comment above it.
func (f *File) begin(n ast.Node) int {
	if !f.startsLine(n) {
		return f.at(n.Pos())
	}
	for _, group := range f.Tree.Comments {
		if f.startsLine(group) && f.Line(group.End())+1 == f.Line(n.Pos()) {
			return f.at(group.Pos())
		}
	}
	return f.at(n.Pos())
}

// startsLine reports whether only white space precedes n in its line.
func (f *File) startsLine(n ast.Node) bool {
	at := f.at(n.Pos())
	start := bytes.LastIndexByte(f.text[:at], '\n') + 1
	return len(bytes.TrimSpace(f.text[start:at])) == 0
}
