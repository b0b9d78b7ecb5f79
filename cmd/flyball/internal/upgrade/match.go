// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
)

// A span is a part of a file.
type span struct{ from, to token.Pos }

func (s span) has(pos token.Pos) bool { return s.from <= pos && pos < s.to }

// A match holds what the letters of a form stand for.
type match struct {
	rewrite *Rewrite
	of      *typedFile
	bound   map[string]span
	exprs   map[string]ast.Expr
}

func (f *typedFile) newMatch(r *Rewrite) *match {
	return &match{rewrite: r, of: f, bound: map[string]span{}, exprs: map[string]ast.Expr{}}
}

// statements matches the form's statements in a list, from index i on. It returns their
// places: the first matches, and each other exactly once after it.
func (m *match) statements(list []ast.Stmt, i int) ([]ast.Stmt, bool) {
	found := []ast.Stmt{list[i]}
	if !m.stmt(m.rewrite.before[0], list[i]) {
		return nil, false
	}
	for _, form := range m.rewrite.before[1:] {
		var next ast.Stmt
		for _, s := range list[i+1:] {
			bound, exprs := maps.Clone(m.bound), maps.Clone(m.exprs)
			if !m.stmt(form, s) {
				m.bound, m.exprs = bound, exprs
				continue
			}
			if next != nil {
				return nil, false
			}
			next = s
		}
		if next == nil {
			return nil, false
		}
		found = append(found, next)
	}
	return found, true
}

func (m *match) stmt(form, s ast.Stmt) bool {
	switch form := form.(type) {
	case *ast.ExprStmt:
		s, ok := s.(*ast.ExprStmt)
		return ok && m.expr(form.X, s.X)
	case *ast.AssignStmt:
		s, ok := s.(*ast.AssignStmt)
		return ok && form.Tok == s.Tok && m.list(form.Lhs, s.Lhs, token.NoPos, token.NoPos) && m.list(form.Rhs, s.Rhs, token.NoPos, token.NoPos)
	}
	return false
}

// list matches expressions. The last letter of a form with an s takes what is left, up to
// the closing token; in a literal also the white space and comments from its brace on.
func (m *match) list(forms, list []ast.Expr, from, end token.Pos) bool {
	for i, form := range forms {
		if id, ok := form.(*ast.Ident); ok && several(id.Name) && i == len(forms)-1 {
			rest := span{end, end}
			switch {
			case from.IsValid():
				if i > 0 || slices.ContainsFunc(list, func(e ast.Expr) bool { _, keyed := e.(*ast.KeyValueExpr); return !keyed }) {
					return false
				}
				rest.from = from
			case len(list) > i:
				rest = span{list[i].Pos(), list[len(list)-1].End()}
			}
			m.bound[id.Name] = rest
			return true
		}
		if i >= len(list) || !m.expr(form, list[i]) {
			return false
		}
	}
	return len(forms) == len(list)
}

func (m *match) expr(form, e ast.Expr) bool {
	if letter, ok := form.(*ast.Ident); ok && one(letter.Name) {
		return m.bind(letter.Name, e)
	}
	e = ast.Unparen(e)
	switch form := form.(type) {
	case *ast.Ident:
		id, ok := e.(*ast.Ident)
		return ok && id.Name == form.Name
	case *ast.SelectorExpr:
		if x, ok := form.X.(*ast.Ident); ok && m.rewrite.packages[x.Name] != "" {
			want := m.of.in.object(Name{m.rewrite.packages[x.Name], []string{form.Sel.Name}})
			return want != nil && want == m.used(e)
		}
		s, ok := e.(*ast.SelectorExpr)
		return ok && s.Sel.Name == form.Sel.Name && m.expr(form.X, s.X)
	case *ast.CallExpr:
		c, ok := e.(*ast.CallExpr)
		return ok && !c.Ellipsis.IsValid() && m.expr(form.Fun, c.Fun) && m.list(form.Args, c.Args, token.NoPos, c.Rparen)
	case *ast.IndexExpr:
		x, ok := e.(*ast.IndexExpr)
		return ok && m.expr(form.X, x.X) && m.expr(form.Index, x.Index)
	case *ast.CompositeLit:
		c, ok := e.(*ast.CompositeLit)
		return ok && c.Type != nil && m.expr(form.Type, c.Type) && m.list(form.Elts, c.Elts, c.Lbrace+1, c.Rbrace)
	}
	return false
}

// bind takes e for a letter. A letter that is there twice stands for the same variable or
// field twice.
func (m *match) bind(name string, e ast.Expr) bool {
	if before, ok := m.exprs[name]; ok {
		return m.same(before, e)
	}
	m.exprs[name], m.bound[name] = e, span{e.Pos(), e.End()}
	return true
}

func (m *match) same(a, b ast.Expr) bool {
	switch a := ast.Unparen(a).(type) {
	case *ast.Ident:
		b, ok := ast.Unparen(b).(*ast.Ident)
		object := m.of.info.ObjectOf(a)
		return ok && object != nil && object == m.of.info.ObjectOf(b)
	case *ast.SelectorExpr:
		b, ok := ast.Unparen(b).(*ast.SelectorExpr)
		return ok && m.of.info.ObjectOf(a.Sel) == m.of.info.ObjectOf(b.Sel) && m.same(a.X, b.X)
	}
	return false
}

// used returns what a name with or without a qualifier is.
func (m *match) used(e ast.Expr) types.Object {
	switch e := e.(type) {
	case *ast.Ident:
		return origin(m.of.info.Uses[e])
	case *ast.SelectorExpr:
		return origin(m.of.info.Uses[e.Sel])
	}
	return nil
}

// covers reports whether the rewrite decides about a position: it is in one of the parts,
// and not in what a letter stands for.
func (m *match) covers(parts []span, pos token.Pos) bool {
	in := func(s span) bool { return s.has(pos) }
	if !slices.ContainsFunc(parts, in) {
		return false
	}
	for _, s := range m.bound {
		if in(s) {
			return false
		}
	}
	return true
}

// hasComment reports whether a comment would be lost.
func (m *match) hasComment(parts []span) bool {
	for _, group := range m.of.tree.Comments {
		if m.covers(parts, group.Pos()) {
			return true
		}
	}
	return false
}
