// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"
)

// sleep is a call of time.Sleep that can run outside a bubble.
type sleep struct{ path, function string }

// mention is a place where a test file refers to a function or sleeps.
type mention struct {
	path     string
	function string // the declared function or type that contains it; "" for variables
	bubble   bool   // within an argument of synctest.Test, or of its wrappers
}

// sleeps returns the sleeps of one package's tests that can run outside a bubble. A
// function counts as bubbled if it is mentioned, and every mention is in a bubble or in a
// bubbled function. Methods belong to their type, which is bubbled by the same rule: code
// that cannot create a value cannot call its methods. Names are not qualified, so of two
// with the same name each must be bubbled.
func sleeps(files []sourceFile) []sleep {
	doors := bubbleDoors(files)
	var found []mention
	named := map[string][]mention{}
	for _, f := range files {
		for _, part := range parts(f.ast) {
			at := mention{path: f.path, function: part.name}
			visit(part.node, doors, false, func(n ast.Node, bubble bool) {
				at.bubble = bubble
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if types.ExprString(n) == "time.Sleep" {
						found = append(found, at)
					}
				case *ast.Ident:
					if n.Name != part.name {
						named[n.Name] = append(named[n.Name], at)
					}
				}
			})
		}
	}

	bubbled := map[string]bool{}
	for again := true; again; {
		again = false
		for name, mentions := range named {
			all := !bubbled[name]
			for _, m := range mentions {
				all = all && (m.bubble || bubbled[m.function])
			}
			if all {
				bubbled[name], again = true, true
			}
		}
	}
	var out []sleep
	for _, m := range found {
		if !m.bubble && !bubbled[m.function] {
			out = append(out, sleep{m.path, m.function})
		}
	}
	return out
}

// part is a declaration and its name; a method has the name of its type.
type part struct {
	name string
	node ast.Node
}

func parts(f *ast.File) []part {
	var out []part
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			name := decl.Name.Name
			if decl.Recv != nil {
				name = receiver(decl)
			}
			out = append(out, part{name, decl})
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				name := ""
				if of, ok := spec.(*ast.TypeSpec); ok {
					name = of.Name.Name
				}
				out = append(out, part{name, spec})
			}
		}
	}
	return out
}

// receiver returns the name of a method's type, without star and parameters.
func receiver(method *ast.FuncDecl) string {
	name := types.ExprString(method.Recv.List[0].Type)
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "*"), "[")
	return name
}

// bubbleDoors returns the functions whose arguments run in a bubble: synctest.Test, that of
// simulate's fixture, and helpers that pass one of their parameters to them.
func bubbleDoors(files []sourceFile) map[string]bool {
	doors := map[string]bool{"synctest.Test": true, "fixture.Run": true}
	for _, f := range files {
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			params := map[string]bool{}
			for _, field := range fn.Type.Params.List {
				if _, isFunc := field.Type.(*ast.FuncType); isFunc {
					for _, name := range field.Names {
						params[name.Name] = true
					}
				}
			}
			visit(fn.Body, doors, false, func(n ast.Node, bubble bool) {
				if id, ok := n.(*ast.Ident); ok && bubble && params[id.Name] {
					doors[fn.Name.Name] = true
				}
			})
		}
	}
	return doors
}

// visit calls f for every node under root and reports whether it is inside an argument of
// one of doors.
func visit(root ast.Node, doors map[string]bool, bubble bool, f func(n ast.Node, bubble bool)) {
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		f(n, bubble)
		call, ok := n.(*ast.CallExpr)
		if !ok || bubble || !doors[types.ExprString(call.Fun)] {
			return true
		}
		visit(call.Fun, doors, false, f)
		for _, arg := range call.Args {
			visit(arg, doors, true, f)
		}
		return false
	})
}

func TestSleeps_KnowsWhatRunsInABubble(t *testing.T) {
	const top = "package x\nimport (\"testing\"; \"testing/synctest\"; \"time\")\n"
	for text, want := range map[string]string{
		`func TestA(t *testing.T) { time.Sleep(1) }`:                                          "TestA",
		`func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }`: "",
		`func TestA(t *testing.T) { synctest.Test(t, inside) }
		 func inside(t *testing.T) { pause() }
		 func pause() { time.Sleep(1) }`: "",
		`func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { pause() }); pause() }
		 func pause() { time.Sleep(1) }`: "pause",
		`func TestA(t *testing.T) { bubble(t, func() { time.Sleep(1) }) }
		 func bubble(t *testing.T, f func()) { synctest.Test(t, func(*testing.T) { f() }) }`: "",
		`type slow struct{}
		 func (*slow) Run() { time.Sleep(1) }
		 func newSlow() *slow { return &slow{} }
		 func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { newSlow().Run() }) }`: "",
		`type slow struct{}
		 func (*slow) Run() { time.Sleep(1) }
		 func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { new(slow).Run() }); new(slow).Run() }`: "slow",
		`func TestA(t *testing.T) { time.AfterFunc(1, pause) }
		 func pause() { time.Sleep(1); synctest.Test(nil, nil) }`: "pause",
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "x_test.go", top+text, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, s := range sleeps([]sourceFile{{path: "x_test.go", ast: parsed}}) {
			got += s.function
		}
		if got != want {
			t.Errorf("sleeps in real time: %q, want %q, in\n%s", got, want, text)
		}
	}
}
