// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// concurrent are calls and packages that start goroutines, or whose tests would.
var concurrent = []string{"Go", "AfterFunc", "Parallel", "RunParallel"}

// Some packages of the library are tested without the race detector, which finds nothing
// where no goroutine starts: neither in the package nor in its tests.
func TestHouse_RaceDetectorIsLeftOutWhereNothingRunsAtOnce(t *testing.T) {
	const list = "hack/test/sequential.txt"
	sequential := strings.Fields(read(t, list))
	tested := map[string]bool{}
	for _, f := range sources(t) {
		if !slices.Contains(sequential, module+"/"+f.dir) {
			continue
		}
		tested[f.dir] = tested[f.dir] || f.isTest()
		for _, imported := range f.imports() {
			if slices.Contains([]string{"testing/synctest", "net/http/httptest", "golang.org/x/sync/errgroup"}, imported) || under(imported, "internal/taskgroup") {
				t.Errorf("%s imports %s; remove the package from "+list, f.path, imported)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine; remove the package from "+list, f.path)
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(concurrent, sel.Sel.Name) {
					t.Errorf("%s calls %s; remove the package from "+list, f.path, sel.Sel.Name)
				}
			}
			return true
		})
	}
	if want := len(sequential); len(tested) != want {
		t.Errorf("%s names %d packages, of which %d exist", list, want, len(tested))
	}
	for dir, has := range tested {
		if !has {
			t.Errorf("%s names %s, which has no test", list, dir)
		}
	}
}
