// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

// starters are the only library files that start goroutines: in a group whose Wait is in
// the same function, or briefly by AfterFunc.
var starters = map[string]string{
	"internal/testing/logtest/logtest.go": "tests alone: the managers whose words are searched",
	"internal/testing/habits/habits.go":   "tests alone: the habit that writes from a goroutine",
	"internal/taskgroup/taskgroup.go":     "the group that can be joined during a run",
	"internal/writegate/gate.go":          "the alarm that ends a write whose term is over",

	"internal/ownership/agent.go": "the watch of the Leases, and a request each, which Run waits for",
	"internal/ownership/apply.go": "reads and waits that follow from answers, which Run waits for",

	"workqueue/add_after.go": "the timer's callback moves keys that are due, and ends",

	"bridge/controllerruntime/adopt/queue.go": "the timer of a key that is added later, which stops with the source",
	"bridge/controllerruntime/queue.go":       "the timer's callback updates two gauges until the queue has ended",

	"informer/internal/store/deltafifo.go":        "wakes who waits for deltas when ctx ends",
	"informer/core.go":                            "dispatch joins the informer's run",
	"informer/own_writes.go":                      "the settler joins the informer's run",
	"informer/scopes_watched.go":                  "Reflectors join the informer's run, as scopes come and go",
	"informer/namespaces.go":                      "who follows namespaces joins the informer's run",
	"informer/refusals.go":                        "the retries of what the transform has refused join the informer's run",
	"informer/catch_up.go":                        "one scope each, which CatchUp waits for",
	"informer/handlers.go":                        "listeners and their resync join the informer's run",
	"informer/factory.go":                         "informers join the factory's run",
	"informer/internal/delivery/listener.go":      "wakes the listener when its context ends",
	"informer/internal/restclient/answer_body.go": "ends the answer with its context",
	"informer/internal/pacing/pacer.go":           "the alarm that lets pass who waited for a time",
	"informer/internal/headroom/budget.go":        "the alarm that tries again a list that did not fit",
	"informer/internal/restclient/listwatch.go":   "the alarm that ends a list nobody answers",
	"informer/internal/fixture/server.go":         "the scripted server of tests",
	"informer/internal/reflector/garbled.go":      "a timer wants a list, once what has come counts",
	"informer/internal/reflector/session.go":      "the alarm that ends a watch nobody answers or feeds",

	"informer/informertest/lister.go":                 "the informer, until it is synced",
	"bridge/clientgo/internal/lifecycle/lifecycle.go": "client-go's Start runs informers, and its Shutdown waits for them",

	"source/debounce.go": "adds what falls due while the source runs",

	"reconcile/controller.go": "sources and the worker pool join the controller's run",
	"reconcile/worker.go":     "the workers, one that stands in for a worker whose goroutine was ended, and the watch over their deadlines",

	"webhook/run.go":   "the server, who keeps its certificate, and who shuts it down",
	"webhook/share.go": "the alarm that ends a claim on room for a body",

	"manager/internal/election/elector.go": "the watch of the Lease",
	"manager/run.go":                       "stages, which Run waits for in reverse",
	"manager/internal/serving/server.go":   "the server, and who shuts it down",
	"manager/signal.go":                    "waits for a second signal, which ends the process",
	"manager/stage.go":                     "what is added to a stage joins the stage's run",

	"informer/internal/restclient/stream.go": "decode the frames that have arrived together, which waits for them",

	"bridge/controllerruntime/console.go": "the mirrors of workers join the run of the console",
	"bridge/controllerruntime/replica.go": "gives the shards away at the end, which Start waits for",
	"bridge/controllerruntime/reader.go":  "copies the parts of a long list, and waits for them",

	"envtest/build.go":   "the go command, while its progress is shown",
	"envtest/process.go": "waits for a child process to end",
}

// variables are the package-level variables other than errors, embedded files and constant
// tables, each with the reason why they hold no state. The key is file:name.
var variables = map[string]string{
	"bridge/controllerruntime/console.go:theConsole": "controller-runtime makes queues by a function that knows no manager; a second console is an error",
	"internal/decodelimit/costly.go:costlyPlans":     "a cache of what a type alone decides, as that of encoding/json",

	"rights/recorder.go:update": "a flag of tests, which only the command line sets",
}

// pureCalls are the calls whose result a package-level variable may hold: it is immutable.
var pureCalls = []string{
	"errors.New", "fmt.Errorf", "regexp.MustCompile", "reflect.TypeFor", "reflect.TypeOf",
	"template.Must", "strings.NewReplacer", "netip.MustParseAddr", "netip.MustParsePrefix",
}

func TestHouse_GoroutinesStartInListedFiles(t *testing.T) {
	starting := map[string]bool{}
	for _, f := range sources(t) {
		if f.isTest() {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: go statement; use a group whose Wait stands in the same function", f.path)
			case *ast.CallExpr:
				if sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok && slices.Contains([]string{"Go", "Spawn", "AfterFunc"}, sel.Sel.Name) {
					starting[f.path] = f.isLibrary()
				}
			}
			return true
		})
	}
	for path, library := range starting {
		if library && starters[path] == "" {
			t.Errorf("%s: starts a goroutine, but is not on the list of files that do", path)
		}
	}
	for path := range starters {
		if !starting[path] {
			t.Errorf("%s: is on the list of files that start goroutines, but starts none; take it off", path)
		}
	}
}

// A guard is a field that is a struct with its own lock: mu struct { sync.Mutex; … }. Its
// contents are accessed only by functions that take that lock, by functions whose name ends
// in Locked, by unlock…, which release the lock, by methods of a Tx, which is a value with its
// lock held, and by the function that creates the value.
func TestHouse_WhatALockGuardsIsTouchedWithTheLock(t *testing.T) {
	guards := map[string]map[string]bool{} // package → names of guards
	for _, f := range sources(t) {
		if guards[f.dir] == nil {
			guards[f.dir] = map[string]bool{}
		}
		maps.Copy(guards[f.dir], guardsOf(f.ast))
	}
	for _, f := range sources(t) {
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || f.isTest() || strings.HasSuffix(fn.Name.Name, "Locked") ||
				strings.HasPrefix(fn.Name.Name, "unlock") || fn.Recv != nil && types.ExprString(fn.Recv.List[0].Type) == "*Tx" {
				continue
			}
			touched, locked := map[string]string{}, map[string]bool{}
			made := madeIn(fn)
			ast.Inspect(fn, func(n ast.Node) bool {
				outer, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				inner, ok := outer.X.(*ast.SelectorExpr)
				if !ok || !guards[f.dir][inner.Sel.Name] || made[root(inner.X)] {
					return true
				}
				guard := types.ExprString(inner)
				switch outer.Sel.Name {
				case "Lock", "RLock", "TryLock", "TryRLock":
					locked[guard] = true
				case "Unlock", "RUnlock", "Mutex", "RWMutex":
				default:
					touched[guard] = outer.Sel.Name
				}
				return true
			})
			for guard, field := range touched {
				if !locked[guard] {
					t.Errorf("%s: %s touches %s.%s without the lock; lock it, or end the name in Locked", f.path, fn.Name.Name, guard, field)
				}
			}
		}
	}
}

// madeIn returns the names that fn gives to values it has just created: x := &T{…}, x :=
// T{…}, x := new(T) or var x T. No other goroutine has them yet.
func madeIn(fn *ast.FuncDecl) map[string]bool {
	out := map[string]bool{}
	isNew := func(value ast.Expr) bool {
		if address, ok := value.(*ast.UnaryExpr); ok && address.Op == token.AND {
			value = address.X
		}
		call, isCall := value.(*ast.CallExpr)
		_, isLiteral := value.(*ast.CompositeLit)
		return isLiteral || isCall && types.ExprString(call.Fun) == "new"
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, name := range n.Lhs {
				if n.Tok == token.DEFINE && len(n.Lhs) == len(n.Rhs) && isNew(n.Rhs[i]) {
					out[types.ExprString(name)] = true
				}
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				if len(n.Values) == 0 {
					out[name.Name] = true
				}
			}
		}
		return true
	})
	return out
}

// root returns the name that a chain of selectors begins with.
func root(x ast.Expr) string {
	for {
		sel, ok := x.(*ast.SelectorExpr)
		if !ok {
			return types.ExprString(x)
		}
		x = sel.X
	}
}

// guardsOf returns the names of the file's fields that are structs with an
// embedded lock.
func guardsOf(f *ast.File) map[string]bool {
	out := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok {
			return true
		}
		inline, ok := field.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, inner := range inline.Fields.List {
			if of := types.ExprString(inner.Type); len(inner.Names) == 0 && (of == "sync.Mutex" || of == "sync.RWMutex") {
				for _, name := range field.Names {
					out[name.Name] = true
				}
			}
		}
		return true
	})
	return out
}

func TestHouse_PackagesHoldNoState(t *testing.T) {
	seen := map[string]bool{}
	written := map[string]map[string]bool{} // package → names that are written
	for _, f := range sources(t) {
		if written[f.dir] == nil {
			written[f.dir] = map[string]bool{}
		}
		if !f.isTest() {
			maps.Copy(written[f.dir], writes(f.ast))
		}
	}
	for _, f := range sources(t) {
		if f.isTest() || !f.isLibrary() {
			continue
		}
		for name, value := range packageVariables(f.ast) {
			entry := f.path + ":" + name
			fixed := isFixed(value) && !written[f.dir][name]
			if !fixed && variables[entry] == "" {
				t.Errorf("%s: package-level variable %s can change; keep it in a value, so that two managers do not share it", f.path, name)
			}
			seen[entry] = !fixed
		}
	}
	for entry := range variables {
		if !seen[entry] {
			t.Errorf("%s: listed as a variable, but is gone or needs no listing; take it off", entry)
		}
	}
}

// packageVariables returns the file's package-level variables and their initial
// expressions, without blank ones and embedded files.
func packageVariables(f *ast.File) map[string]ast.Expr {
	out := map[string]ast.Expr{}
	for _, decl := range f.Decls {
		decl, ok := decl.(*ast.GenDecl)
		if !ok || decl.Tok != token.VAR || isEmbed(decl.Doc) {
			continue
		}
		for _, spec := range decl.Specs {
			spec := spec.(*ast.ValueSpec)
			for i, name := range spec.Names {
				if name.Name == "_" || isEmbed(spec.Doc) {
					continue
				}
				out[name.Name] = nil
				if i < len(spec.Values) {
					out[name.Name] = spec.Values[i]
				}
			}
		}
	}
	return out
}

func isEmbed(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//go:embed ")
	})
}

// isFixed reports whether a variable with this initial value is constant if it is never
// written. Locks, pools and counters are not.
func isFixed(value ast.Expr) bool {
	switch value := ast.Unparen(value).(type) {
	case nil, *ast.StarExpr:
		return false
	case *ast.CallExpr:
		fn := value.Fun
		if index, ok := fn.(*ast.IndexExpr); ok {
			fn = index.X
		}
		name := types.ExprString(fn)
		_, conversion := fn.(*ast.ArrayType)
		return conversion || slices.Contains(pureCalls, name) || strings.Contains(name, ".WithKind") ||
			strings.Contains(name, ".WithResource")
	case *ast.UnaryExpr:
		return value.Op != token.AND && isFixed(value.X)
	case *ast.CompositeLit:
		of := types.ExprString(value.Type)
		return !strings.HasPrefix(of, "sync.") && !strings.HasPrefix(of, "atomic.")
	}
	return true
}

// writes returns the names that the file assigns to, modifies or takes the address of,
// unless the name is local to a function.
func writes(f *ast.File) map[string]bool {
	out := map[string]bool{}
	mark := func(target ast.Expr) {
		for {
			switch x := ast.Unparen(target).(type) {
			case *ast.IndexExpr:
				target = x.X
				continue
			case *ast.SelectorExpr:
				target = x.X
				continue
			case *ast.StarExpr:
				target = x.X
				continue
			case *ast.Ident:
				if x.Obj == nil || f.Scope.Lookup(x.Name) == x.Obj {
					out[x.Name] = true
				}
			}
			return
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, target := range n.Lhs {
					mark(target)
				}
			}
		case *ast.IncDecStmt:
			mark(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				mark(n.X)
			}
		case *ast.CallExpr:
			if name := types.ExprString(n.Fun); (name == "delete" || name == "clear") && len(n.Args) > 0 {
				mark(n.Args[0])
			}
		}
		return true
	})
	return out
}

// A test sleeps only in a bubble of testing/synctest, where time is virtual: in an argument
// of synctest.Test, or in a function that is used only there.
func TestHouse_TestsDoNotSleep(t *testing.T) {
	packages := map[string][]sourceFile{}
	for _, f := range sources(t) {
		if f.isTest() && !within(f.dir, "hack") { // benchmarks measure real time
			packages[f.dir] = append(packages[f.dir], f)
		}
	}
	for _, files := range packages {
		for _, s := range sleeps(files) {
			t.Errorf("%s: %s sleeps in real time; wait for what it waits for, or run it in synctest.Test", s.path, s.function)
		}
	}
}
