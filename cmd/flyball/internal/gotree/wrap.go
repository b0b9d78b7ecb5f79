// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package gotree

import (
	"cmp"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"unicode/utf8"
)

// Wrap breaks lines of Go that are longer than width, as gofmt would leave them: between
// conditions, in the body of a function literal, or after an opening bracket. Comments and
// strings are not broken.
func Wrap(name string, text []byte, width int) ([]byte, error) {
	for done := 0; ; {
		line := longLine(text, width, done)
		if line < 0 {
			return text, nil
		}
		broken := false
		out, err := Edit(name, text, func(f *File) error {
			broken = breaker{f, line + 1, width}.breakLine()
			return nil
		})
		if err != nil {
			return nil, err
		}
		if text = out; !broken {
			done = line + 1
		}
	}
}

// longLine returns the first line from a line on, counted from 0, that is longer than width.
// Negative: there is none.
func longLine(text []byte, width, from int) int {
	for i, line := range strings.Split(string(text), "\n") {
		if i >= from && utf8.RuneCountInString(line) > width &&
			!strings.HasPrefix(strings.TrimSpace(line), "//") {
			return i
		}
	}
	return -1
}

// list is what is between brackets.
type list struct {
	open, end token.Pos // behind the opening bracket, and of the closing one
	items     []ast.Node
	body      bool // of a function: statements
}

// breaker breaks one line of a file.
type breaker struct {
	*File
	number, width int
}

// has reports whether both positions are in the line.
func (f breaker) has(a, b token.Pos) bool { return f.Line(a) == f.number && f.Line(b) == f.number }

// breakLine breaks the line, and reports whether it could.
func (f breaker) breakLine() bool {
	var lists []list
	var conditions []token.Pos
	add := func(l list) {
		if len(l.items) > 0 && f.has(l.open, l.end) {
			lists = append(lists, l)
		}
	}
	ast.Inspect(f.Tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			add(list{n.Body.Lbrace + 1, n.Body.Rbrace, nodes(n.Body.List), true})
		case *ast.FuncDecl:
			add(list{n.Type.Params.Opening + 1, n.Type.Params.Closing, nodes(n.Type.Params.List), false})
		case *ast.CallExpr:
			add(list{n.Lparen + 1, n.Rparen, nodes(n.Args), false})
		case *ast.CompositeLit:
			add(list{n.Lbrace + 1, n.Rbrace, nodes(n.Elts), false})
		case *ast.BinaryExpr:
			if at := n.OpPos + 2; slices.Contains([]token.Token{token.LAND, token.LOR}, n.Op) &&
				f.has(at, n.Y.Pos()) && f.fset.Position(at).Column <= f.width {
				conditions = append(conditions, at)
			}
		}
		return true
	})
	slices.SortStableFunc(lists, func(a, b list) int {
		if a.body != b.body {
			return map[bool]int{true: -1, false: 1}[a.body]
		}
		return cmp.Compare(a.open, b.open)
	})
	switch {
	case len(lists) > 0 && lists[0].body:
		f.Insert(lists[0].open, "\n")
		f.Insert(lists[0].end, "\n")
	case len(conditions) > 0:
		f.Insert(slices.Max(conditions), "\n")
	case len(lists) > 0:
		f.breakList(lists[0])
	default:
		return false
	}
	return true
}

// breakList puts the items of a list on a line, or where that is too long on a line each.
func (f breaker) breakList(l list) {
	text := f.Span(l.open, l.end)
	start := f.fset.File(l.open).LineStart(f.number)
	indented := len(f.Span(start, l.open)) - len(strings.TrimLeft(f.Span(start, l.open), "\t"))
	f.Insert(l.open, "\n")
	if indented+1+utf8.RuneCountInString(text)+1 > f.width {
		for _, item := range l.items[1:] {
			f.Insert(item.Pos(), "\n")
		}
	}
	f.Insert(l.end, ",\n")
}

func nodes[N ast.Node](from []N) []ast.Node {
	var out []ast.Node
	for _, n := range from {
		out = append(out, n)
	}
	return out
}
