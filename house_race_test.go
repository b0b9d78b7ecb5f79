// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package flyball_test

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// concurrent are calls and packages that start goroutines, or whose tests would.
var concurrent = []string{"Go", "AfterFunc", "Parallel", "RunParallel"}

// The Makefile tests some packages without the race detector, which finds nothing where
// no goroutine starts: neither in the package nor in its tests.
func TestHouse_RaceDetectorIsLeftOutWhereNothingRunsAtOnce(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^PLAIN := (.*)$`).FindSubmatch(makefile)
	if line == nil {
		t.Fatal("the Makefile has no line that begins with PLAIN :=")
	}
	plain, err := regexp.Compile(strings.ReplaceAll(string(line[1]), "$$", "$"))
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, f := range sources(t) {
		if f.dir == "." || !plain.MatchString(module+"/"+f.dir) {
			continue
		}
		tested[f.dir] = tested[f.dir] || f.isTest()
		for _, imported := range f.imports() {
			if slices.Contains([]string{"testing/synctest", "net/http/httptest", "golang.org/x/sync/errgroup"}, imported) || under(imported, "internal/nursery") {
				t.Errorf("%s imports %s; remove the package from PLAIN in the Makefile", f.path, imported)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine; remove the package from PLAIN in the Makefile", f.path)
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(concurrent, sel.Sel.Name) {
					t.Errorf("%s calls %s; remove the package from PLAIN in the Makefile", f.path, sel.Sel.Name)
				}
			}
			return true
		})
	}
	if len(tested) < 20 {
		t.Errorf("PLAIN matches %d packages, want those without goroutines", len(tested))
	}
	for dir, has := range tested {
		if !has {
			t.Errorf("PLAIN matches %s, which has no test", dir)
		}
	}
}
