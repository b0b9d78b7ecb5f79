// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// constructors make a manager of a configuration and options.
var constructors = []string{controllerRuntime + ".NewManager", managerPath + ".New"}

// A Result is an edited file.
type Result struct {
	Text []byte
	// Changed are the calls that have been edited, by their lines before.
	Changed []Finding
	// Left are notes about calls that a person has to edit.
	Left []Finding
	// Wrapped is how many calls have the bridge's options already.
	Wrapped int
}

// Edit wraps the options of each manager that a package or a test suite makes by
// bridge.Options, and imports the bridge. Names in taken are those that the package declares. A
// file that does not parse, or cannot be edited, is an error, and its text stays.
func Edit(file File, taken map[string]bool) (Result, error) {
	r := Result{Text: file.Text}
	s, err := parse(file)
	if err != nil {
		return r, err
	}
	name, imported := s.bridgeName(taken)
	for _, call := range s.managers() {
		switch why := s.unfit(call); {
		case s.isWrapped(call):
			r.Wrapped++
		case why != "":
			r.Left = append(r.Left, s.find(call, true, "%s is not edited, because %s; "+
				"write bridge.Options(…) around its options", s.Text(call.Fun), why))
		default:
			s.Insert(call.Args[1].Pos(), name+".Options(")
			s.Insert(call.Args[1].End(), ")")
			r.Changed = append(r.Changed, s.find(call, false,
				"the options of %s are in %s.Options", s.Text(call.Fun), name))
		}
	}
	if len(r.Changed) == 0 {
		return r, nil
	}
	if !imported {
		s.AddImports([]string{name + " " + strconv.Quote(bridgePath)}, controllerRuntime)
	}
	return s.complete(file, r)
}

// Undo makes the options that bridge.Options wraps the call's again, and removes the import if
// nothing else needs it.
func Undo(file File) (Result, error) {
	r := Result{Text: file.Text}
	s, err := parse(file)
	if err != nil || ast.IsGenerated(s.Tree) {
		return r, err
	}
	unwrapped := map[ast.Expr]bool{}
	for _, call := range s.managers() {
		if wrap := s.wrapper(call); wrap != nil {
			unwrapped[wrap.Fun] = true
			s.unwrap(wrap)
			r.Changed = append(r.Changed, s.find(call, false,
				"the options of %s are its own again", s.Text(call.Fun)))
		}
	}
	ast.Inspect(s.Tree, func(n ast.Node) bool {
		if x, ok := n.(*ast.SelectorExpr); ok && !unwrapped[x] && s.uses(x, bridgePath) {
			r.Left = append(r.Left, s.find(x, true, "%s stays; remove it by hand", s.Text(x)))
		}
		return true
	})
	if len(r.Changed) == 0 {
		return r, nil
	}
	if len(r.Left) == 0 {
		for _, decl := range s.Tree.Decls {
			if err := s.dropImport(decl); err != nil {
				return Result{Text: file.Text}, err
			}
		}
	}
	return s.complete(file, r)
}

// unwrap removes a call around its argument, but no comment.
func (s *source) unwrap(call *ast.CallExpr) {
	from, to := call.Args[0].Pos(), call.Args[0].End()
	if strings.TrimSpace(s.Span(call.Lparen+1, from)) != "" {
		from = call.Lparen + 1
	}
	if strings.Trim(s.Span(to, call.Rparen), ", \t\n") != "" {
		to = call.Rparen
	}
	s.Supersede(call.Pos(), from, "")
	s.Supersede(to, call.End(), "")
}

// complete returns r with the text of the edits, or if they cannot be made with that of the file.
func (s *source) complete(file File, r Result) (Result, error) {
	text, err := s.result()
	if err != nil {
		return Result{Text: file.Text}, err
	}
	r.Text = text
	return r, nil
}

// managers returns the calls that make a manager.
func (s *source) managers() []*ast.CallExpr {
	var calls []*ast.CallExpr
	ast.Inspect(s.Tree, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && s.is(call.Fun, constructors...) {
			calls = append(calls, call)
		}
		return true
	})
	return calls
}

// unfit returns why a call is not edited. Empty: it is.
func (s *source) unfit(call *ast.CallExpr) string {
	switch {
	case ast.IsGenerated(s.Tree):
		return "the file is generated"
	case s.isTest() && !s.isSuite():
		return "the file is not a test suite"
	case len(call.Args) != 2:
		return "its arguments are those that another call returns"
	}
	return ""
}

// wrapper returns the call of bridge.Options that is the options of a call. Nil: there is none.
func (s *source) wrapper(call *ast.CallExpr) *ast.CallExpr {
	if len(call.Args) == 2 {
		c, ok := call.Args[1].(*ast.CallExpr)
		if ok && len(c.Args) == 1 && s.is(c.Fun, bridgePath+".Options") {
			return c
		}
	}
	return nil
}

// isWrapped reports whether the options of a call are the bridge's, or a variable that is set to
// them.
func (s *source) isWrapped(call *ast.CallExpr) bool {
	if len(call.Args) != 2 {
		return false
	}
	id, ok := call.Args[1].(*ast.Ident)
	if !ok || id.Obj == nil {
		return s.wrapper(call) != nil
	}
	found := false
	ast.Inspect(s.Tree, func(n ast.Node) bool {
		set, ok := n.(*ast.AssignStmt)
		if ok && len(set.Rhs) == 1 && s.uses(set.Rhs[0], bridgePath) {
			found = found || slices.ContainsFunc(set.Lhs, func(x ast.Expr) bool {
				to, ok := x.(*ast.Ident)
				return ok && to.Obj == id.Obj
			})
		}
		return true
	})
	return found
}

// bridgeName returns the local name of the bridge, and whether the file imports it by that.
func (s *source) bridgeName(taken map[string]bool) (name string, imported bool) {
	for name, to := range s.imports {
		if to == bridgePath && name != "_" {
			return name, true
		}
	}
	outer := s.Outer()
	name = "bridge"
	for i := 1; outer[name] || taken[name] || s.imports[name] != ""; i++ {
		name = "flyballbridge"
		if i > 1 {
			name += strconv.Itoa(i)
		}
	}
	return name, false
}

// dropImport removes the import of the bridge.
func (s *source) dropImport(decl ast.Decl) error {
	block, ok := decl.(*ast.GenDecl)
	if !ok {
		return nil
	}
	for _, spec := range block.Specs {
		spec, ok := spec.(*ast.ImportSpec)
		if !ok || spec.Path.Value != strconv.Quote(bridgePath) ||
			spec.Name != nil && spec.Name.Name == "_" {
			continue
		}
		var line ast.Node = spec
		if !block.Lparen.IsValid() {
			line = block
		}
		if !s.DropLine(line) {
			return fmt.Errorf("the import of the bridge is beside another; run gofmt -w %s first", s.name)
		}
	}
	return nil
}
