// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/gotree"
)

// A finding is a place that a change concerns.
type finding struct {
	change int // in the section
	line   Line
	at     token.Position
	pos    token.Pos
	what   string // what is used there
	by     string // what the edit made of it; empty: it is to be edited by hand
}

// editor finds and edits uses of a section's changes in one file.
type editor struct {
	*typedFile
	fset     *token.FileSet
	section  Section
	embedded map[token.Pos]string // new names of the user's fields that embed a renamed type
	out      *gotree.File
	imports  map[string]string // names of packages that edits need, by path
	found    []finding
}

// apply finds what a section concerns in a program, and returns the places with the edited
// files.
func (p *program) apply(section Section) ([]finding, map[string][]byte, error) {
	var all []finding
	changed := map[string][]byte{}
	for _, b := range p.configurations {
		b.aim(section)
	}
	embedded := p.embedded()
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		f := p.files[name]
		e := &editor{typedFile: f, fset: p.fset, section: section, embedded: embedded, imports: map[string]string{},
			out: gotree.Of(f.path, f.text, p.fset, f.tree)}
		e.run()
		all = append(all, e.found...)
		if !e.out.IsEdited() {
			continue
		}
		text, err := e.out.Edited()
		if err == nil {
			text, err = e.fixImports(text)
		}
		if err != nil {
			return nil, nil, err
		}
		changed[name] = text
	}
	return all, changed, nil
}

// embedded returns the fields of the module that embed a type which gets another name.
func (p *program) embedded() map[token.Pos]string {
	names := map[token.Pos]string{}
	for _, f := range p.files {
		ast.Inspect(f.tree, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			field, isField := f.info.Defs[id].(*types.Var)
			if !isField || !field.Embedded() {
				return true
			}
			for _, t := range f.in.targets[origin(f.info.Uses[id])] {
				if to := newName(t.line); to != "" && to != id.Name {
					names[field.Pos()] = to
				}
			}
			return true
		})
	}
	return names
}

// newName returns the last element of a name after the edit of a line. Empty: it stays.
func newName(l Line) string {
	switch l.Verb {
	case Rename:
		return l.New
	case Move:
		return parseName(l.New).Path[0]
	}
	return ""
}

// run visits the file from the inside out, so that a form finds the edits inside it.
func (e *editor) run() {
	for _, spec := range e.tree.Imports {
		e.noteImport(spec)
	}
	var stack []ast.Node
	ast.Inspect(e.tree, func(n ast.Node) bool {
		if n != nil {
			stack = append(stack, n)
			return true
		}
		n = stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		var parent ast.Node
		if len(stack) > 0 {
			parent = stack[len(stack)-1]
		}
		e.visit(n, parent)
		return true
	})
}

func (e *editor) visit(n, parent ast.Node) {
	switch n := n.(type) {
	case *ast.Ident:
		e.ident(n, parent)
	case *ast.BlockStmt:
		e.statements(n.List)
	case *ast.CaseClause:
		e.statements(n.Body)
	case *ast.CommClause:
		e.statements(n.Body)
	case ast.Expr:
		e.expression(n)
	}
}

// lines calls f for each line of the section.
func (e *editor) lines(f func(change int, l Line)) {
	for i, change := range e.section.Changes {
		for _, l := range change.Lines {
			f(i, l)
		}
	}
}

func (e *editor) report(change int, l Line, n ast.Node, what, by string) {
	pos := n.Pos()
	if sel, ok := n.(*ast.SelectorExpr); ok {
		pos = sel.Sel.Pos()
	}
	e.found = append(e.found, finding{change, l, e.fset.PositionFor(n.Pos(), false), pos, what, by})
}

// noteImport reports notes on a package.
func (e *editor) noteImport(spec *ast.ImportSpec) {
	to, _ := strconv.Unquote(spec.Path.Value)
	e.lines(func(change int, l Line) {
		if l.Verb == Note && len(l.Old.Path) == 0 && to == rootModule+"/"+l.Old.Package {
			e.report(change, l, spec, l.Old.String(), "")
		}
	})
}

func (e *editor) ident(id *ast.Ident, parent ast.Node) {
	used := e.info.Uses[id]
	if used == nil {
		return
	}
	if to := e.embedded[used.Pos()]; to != "" {
		e.out.Replace(id, to) // the module's own field
	}
	for _, t := range e.in.targets[origin(used)] {
		change, l := t.change, t.line
		selector, isSelector := parent.(*ast.SelectorExpr)
		isSelector = isSelector && selector.Sel == id
		switch {
		case l.Verb == Rename && (isSelector || !e.hides(l.New, id)):
			e.out.Replace(id, l.New)
			e.report(change, l, id, l.Old.String(), Name{l.Old.Package, append(slices.Clone(l.Old.Path[:len(l.Old.Path)-1]), l.New)}.String())
		case l.Verb == Move:
			to := parseName(l.New)
			name := e.qualified(to)
			if isSelector {
				e.out.Supersede(selector.Pos(), selector.End(), name)
			} else {
				e.out.Replace(id, name)
			}
			e.report(change, l, id, l.Old.String(), to.String())
		default:
			e.report(change, l, id, l.Old.String(), "")
		}
	}
}

// hides reports whether another declaration would take the place of a name that is used
// without a qualifier, after a dot import.
func (e *editor) hides(name string, id *ast.Ident) bool {
	used := e.info.Uses[id]
	if used.Parent() == nil || used.Pkg() == e.pkg { // a field or method
		return false
	}
	inner := e.pkg.Scope().Innermost(id.Pos())
	if inner == nil {
		return true
	}
	_, found := inner.LookupParent(name, id.Pos())
	return found != nil && found.Pkg() != used.Pkg()
}

// expression rewrites an expression that has the form of a line.
func (e *editor) expression(x ast.Expr) {
	e.lines(func(change int, l Line) {
		if l.Verb != Rewriting || len(l.Rewrite.before) != 1 {
			return
		}
		form, ok := l.Rewrite.before[0].(*ast.ExprStmt)
		if !ok {
			return
		}
		_, wantsCall := form.X.(*ast.CallExpr)
		if _, isCall := x.(*ast.CallExpr); isCall != wantsCall {
			return
		}
		if m := e.newMatch(l.Rewrite); m.expr(form.X, x) {
			e.rewrite(change, l, m, []ast.Node{x})
		}
	})
}

// statements rewrites statements of a block that have the form of a line.
func (e *editor) statements(list []ast.Stmt) {
	e.lines(func(change int, l Line) {
		if l.Verb != Rewriting {
			return
		}
		if _, isExpr := l.Rewrite.before[0].(*ast.ExprStmt); isExpr {
			return
		}
		for i := range list {
			m := e.newMatch(l.Rewrite)
			if found, ok := m.statements(list, i); ok {
				nodes := make([]ast.Node, len(found))
				for i, s := range found {
					nodes[i] = s
				}
				e.rewrite(change, l, m, nodes)
			}
		}
	})
}

// rewrite replaces the first node, and removes the others, unless a comment would be lost.
func (e *editor) rewrite(change int, l Line, m *match, nodes []ast.Node) {
	var parts []span
	for _, n := range nodes {
		parts = append(parts, span{n.Pos(), n.End()})
	}
	if m.hasComment(parts) {
		return
	}
	bound := map[string]string{}
	for name, s := range m.bound {
		bound[name] = e.out.Span(s.from, s.to)
	}
	text := l.Rewrite.after.expand(bound, func(name string) string { return e.qualifier(l.Rewrite.packages[name]) })
	before := e.out.Text(nodes[0])
	e.found = slices.DeleteFunc(e.found, func(f finding) bool { return f.line.isEdit() && m.covers(parts, f.pos) })
	e.out.Supersede(nodes[0].Pos(), nodes[0].End(), text)
	for _, n := range nodes[1:] {
		e.out.CutLine(n)
	}
	e.report(change, l, nodes[0], short(before), short(text))
}

// short returns an expression in one line.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 72 {
		text = string(runes[:71]) + "…"
	}
	return text
}

// qualified returns how the file writes a name of a package.
func (e *editor) qualified(n Name) string {
	if q := e.qualifier(n.Package); q != "" {
		return q + "." + n.Path[0]
	}
	return n.Path[0]
}

// qualifier returns the name of a package in the file: that of its import, which is added
// if there is none. Empty: it is imported by a dot.
func (e *editor) qualifier(pkg string) string {
	to := rootModule + "/" + pkg
	for _, spec := range e.tree.Imports {
		if imported, _ := strconv.Unquote(spec.Path.Value); imported != to {
			continue
		}
		switch name := e.nameOf(spec); name {
		case "_":
		case ".":
			return ""
		default:
			return name
		}
	}
	if e.imports[to] == "" {
		name := path.Base(to)
		for e.out.Outer()[name] || e.pkg != nil && e.pkg.Scope().Lookup(name) != nil {
			name = "flyball" + name
		}
		e.imports[to] = name
	}
	return e.imports[to]
}

// nameOf returns the name of an import in the file.
func (e *editor) nameOf(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	if name, ok := e.info.Implicits[spec].(*types.PkgName); ok {
		return name.Name()
	}
	to, _ := strconv.Unquote(spec.Path.Value)
	return path.Base(to)
}

// fixImports adds the imports that edits need, and removes those that nothing uses any more.
func (e *editor) fixImports(text []byte) ([]byte, error) {
	f, err := gotree.Parse(e.path, text)
	if err != nil {
		return nil, err
	}
	before, now := e.out.Qualifiers(), f.Qualifiers()
	unused := map[string]bool{} // by the text of their specs
	for _, spec := range e.tree.Imports {
		if name := e.nameOf(spec); before[name] && !now[name] {
			unused[e.out.Text(spec)] = true
		}
	}
	var lines []string
	for _, to := range slices.Sorted(maps.Keys(e.imports)) {
		line := strconv.Quote(to)
		if name := e.imports[to]; name != path.Base(to) {
			line = name + " " + line
		}
		if now[e.imports[to]] {
			lines = append(lines, line)
		}
	}
	f.ChangeImports(unused, lines, rootModule)
	return f.Edited()
}
