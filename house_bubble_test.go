// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package flyball_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"testing"
)

// sleep is a call of time.Sleep that can run outside a bubble.
type sleep struct{ path, function string }

// mention is one place where a test file names a function, or sleeps.
type mention struct {
	path     string
	function string // the declared function it stands in; "" at the top level
	bubble   bool   // within an argument of synctest.Test, or of what stands for it
}

// sleeps finds the sleeps of one package's tests that can run outside a
// bubble. A function counts as bubbled when it is mentioned, and every mention
// stands in a bubble or in a bubbled function. Functions are told apart by
// name alone, so of two with one name each must be bubbled.
func sleeps(files []sourceFile) []sleep {
	doors := bubbleDoors(files)
	var found []mention
	named := map[string][]mention{}
	for _, f := range files {
		for _, decl := range f.ast.Decls {
			fn, _ := decl.(*ast.FuncDecl)
			at := mention{path: f.path}
			if fn != nil {
				at.function = fn.Name.Name
			}
			visit(decl, doors, false, func(n ast.Node, bubble bool) {
				at.bubble = bubble
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if types.ExprString(n) == "time.Sleep" {
						found = append(found, at)
					}
				case *ast.Ident:
					if fn == nil || n != fn.Name {
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
				all = all && (m.bubble || bubbled[m.function] || m.function == name)
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

// bubbleDoors are the functions whose arguments run in a bubble: synctest.Test,
// and helpers that hand one of their own parameters to it.
func bubbleDoors(files []sourceFile) map[string]bool {
	doors := map[string]bool{"synctest.Test": true}
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

// visit calls f for every node under root and says whether it stands in an
// argument of one of doors.
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
