// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// maxCycle is how many files of a package may refer to each other in a cycle. To change one
// file of it, a reader must keep all of them in mind.
const maxCycle = 12

func TestHouse_FileCyclesAreSmall(t *testing.T) {
	seen := 0
	for _, module := range []string{".", "cmd", "simulate"} {
		for _, p := range checkedPackages(t, module) {
			seen++
			if cycle := largestCycle(p.references()); len(cycle) > maxCycle {
				t.Errorf("%s: %d files refer to each other in a cycle, more than %d: %s", p.path, len(cycle), maxCycle, strings.Join(cycle, " "))
			}
		}
	}
	if seen < 20 {
		t.Errorf("checked %d packages only; the test looks at too little", seen)
	}
}

// maxMethods is how many methods a type may have, with the functions that take it first. A type
// with more is two types.
const maxMethods = 40

// broad are the types with more methods, each with their number and its reason. They only
// shrink: a narrower type fails the test until its line is updated.
var broad = map[string]int{
	"client.Client":                   54, // every verb is there for objects, kinds and subresources
	"informer/internal/store.Indexer": 62, // the cache, its indexes and what decides what enters it
	"reconcile.Controller":            44, // the life cycle, its sources and its workers
	"simulate/internal/kinds.Kind":    41, // what each part of the server asks of a kind
	"simulate/kit.History":            54, // the questions that invariants ask of a run
	"simulate/kit.World":              41, // what a user of a cluster does, and what a test asks
}

func TestHouse_TypesAreNarrow(t *testing.T) {
	for _, module := range []string{".", "cmd", "simulate"} {
		for _, p := range checkedPackages(t, module) {
			for name, n := range p.methods() {
				name = p.path + "." + name
				switch most, excepted := broad[name]; {
				case excepted && n < most:
					t.Errorf("%s has %d methods; lower its exception of %d in internal/house/filecycles_test.go", name, n, most)
				case n > max(maxMethods, most):
					t.Errorf("%s has %d methods, more than %d", name, n, max(maxMethods, most))
				}
			}
		}
	}
}

// methods counts the methods that the package declares for each of its types. A function whose
// first parameter is a struct of the package, or a pointer to one, is a method of it in all but
// form, and counts as one.
func (p checkedPackage) methods() map[string]int {
	counts := map[string]int{}
	for name, of := range p.info.Defs {
		function, ok := of.(*types.Func)
		if !ok || !p.files[p.fset.File(name.Pos())] {
			continue
		}
		signature := function.Signature()
		on := signature.Recv()
		if on == nil && signature.Params().Len() > 0 {
			on = signature.Params().At(0)
			if t := namedOf(on.Type()); t == nil || t.Obj().Pkg() != function.Pkg() || !isStruct(t) {
				continue
			}
		}
		if on == nil {
			continue
		}
		if t := namedOf(on.Type()); t != nil && !types.IsInterface(t) {
			counts[t.Obj().Name()]++
		}
	}
	return counts
}

// namedOf returns the named type that t is, or points to, or nil.
func namedOf(t types.Type) *types.Named {
	if pointer, ok := t.(*types.Pointer); ok {
		t = pointer.Elem()
	}
	named, _ := t.(*types.Named)
	return named
}

func isStruct(t *types.Named) bool {
	_, ok := t.Underlying().(*types.Struct)
	return ok
}

func TestHouse_FileCyclesAreFound(t *testing.T) {
	for _, c := range []struct {
		name       string
		references map[string][]string
		want       int
	}{
		{"a chain", map[string][]string{"a": {"b"}, "b": {"c"}, "c": nil}, 1},
		{"a cycle", map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}, 3},
		{"two cycles", map[string][]string{"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"e"}, "e": {"c"}}, 3},
		{"cycles that share a file", map[string][]string{"a": {"b"}, "b": {"a", "c"}, "c": {"b"}}, 3},
	} {
		if got := largestCycle(c.references); len(got) != c.want {
			t.Errorf("%s: the largest cycle is %v, want %d files", c.name, got, c.want)
		}
	}
}

// A checkedPackage is a package of this repository with its types resolved, without tests.
type checkedPackage struct {
	path  string // below the module's path; "." is the root
	fset  *token.FileSet
	files map[*token.File]bool
	info  *types.Info
}

// alreadyChecked caches the packages of each module for later tests.
var alreadyChecked = map[string][]checkedPackage{}

// checkedPackages resolves the types of all packages of the module in dir. It reads their
// imports from the go command's export data.
func checkedPackages(t *testing.T, dir string) []checkedPackage {
	t.Helper()
	if known := alreadyChecked[dir]; known != nil {
		return known
	}
	exports := map[string]string{}
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
		DepOnly                 bool
	}
	var ours []listed
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly"}
	if build, ok := debug.ReadBuildInfo(); ok && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race") // compiled already by the other tests of the run
	}
	out := json.NewDecoder(strings.NewReader(goCommandIn(t, dir, append(args, "./...")...)))
	for {
		var l listed
		err := out.Decode(&l)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("read what go list prints: %v", err)
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly && len(l.GoFiles) > 0 {
			ours = append(ours, l)
		}
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("go list names no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	checked := make([]checkedPackage, 0, len(ours))
	for _, l := range ours {
		p := checkedPackage{fset: fset, files: map[*token.File]bool{}, info: &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}}
		p.path = strings.TrimPrefix(strings.TrimPrefix(l.ImportPath, module), "/")
		if p.path == "" {
			p.path = "."
		}
		var parsed []*ast.File
		for _, name := range l.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
			p.files[fset.File(file.Pos())] = true
		}
		if _, err := (&types.Config{Importer: imports}).Check(l.ImportPath, fset, parsed, p.info); err != nil {
			t.Fatalf("resolve the types of %s: %v", l.ImportPath, err)
		}
		checked = append(checked, p)
	}
	alreadyChecked[dir] = checked
	return checked
}

// references returns, for each file, the other files of the package that declare what it
// uses: types, functions, methods, fields, variables and constants.
func (p checkedPackage) references() map[string][]string {
	sets := map[string]map[string]bool{}
	for file := range p.files {
		sets[filepath.Base(file.Name())] = map[string]bool{}
	}
	for use, object := range p.info.Uses {
		switch o := object.(type) {
		case *types.Func:
			object = o.Origin()
		case *types.Var:
			object = o.Origin()
		}
		from, to := p.fset.File(use.Pos()), p.fset.File(object.Pos())
		if to != nil && from != to && p.files[to] {
			sets[filepath.Base(from.Name())][filepath.Base(to.Name())] = true
		}
	}
	references := map[string][]string{}
	for file, to := range sets {
		references[file] = slices.Sorted(maps.Keys(to))
	}
	return references
}

// largestCycle returns the largest strongly connected component of a graph, sorted. It uses
// Tarjan's algorithm.
func largestCycle(graph map[string][]string) []string {
	var (
		largest, stack []string
		index          = map[string]int{}
		low            = map[string]int{}
		onStack        = map[string]bool{}
		visit          func(string)
	)
	visit = func(node string) {
		index[node] = len(index) + 1
		low[node] = index[node]
		stack, onStack[node] = append(stack, node), true
		for _, next := range graph[node] {
			if index[next] == 0 {
				visit(next)
				low[node] = min(low[node], low[next])
			} else if onStack[next] {
				low[node] = min(low[node], index[next])
			}
		}
		if low[node] != index[node] {
			return
		}
		at := slices.Index(stack, node)
		if cycle := stack[at:]; len(cycle) > len(largest) {
			largest = slices.Sorted(slices.Values(cycle))
		}
		for _, member := range stack[at:] {
			onStack[member] = false
		}
		stack = stack[:at]
	}
	for _, node := range slices.Sorted(maps.Keys(graph)) {
		if index[node] == 0 {
			visit(node)
		}
	}
	return largest
}
