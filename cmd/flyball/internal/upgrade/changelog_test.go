// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const repository = "../../../.."

// breaking returns the entries under Changed and Removed, by version.
func breaking(changelog string) map[string][]string {
	found := map[string][]string{}
	version, counts := "", false
	for line := range strings.Lines(changelog) {
		line = strings.TrimRight(line, "\n")
		heading, isVersion := strings.CutPrefix(line, "## ")
		switch {
		case isVersion:
			version, counts = versionOf(heading), false
		case strings.HasPrefix(line, "### "):
			counts = line == "### Changed" || line == "### Removed"
		case counts && strings.HasPrefix(line, "- "):
			found[version] = append(found[version], line[2:])
		case counts && strings.HasPrefix(line, "  "):
			last := len(found[version]) - 1
			found[version][last] += " " + strings.TrimSpace(line)
		}
	}
	return found
}

// A breaking change is not made without the lines that upgrade needs.
func TestTable_HasEachBreakingEntryOfTheChangelog(t *testing.T) {
	text, err := os.ReadFile(repository + "/CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	table, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	want := breaking(string(text))
	if len(want) == 0 {
		t.Fatal("the changelog has no breaking entry; this test looks at nothing")
	}
	for _, s := range table {
		for _, c := range s.Changes {
			at := slices.Index(want[s.Version], c.Entry)
			if at < 0 {
				t.Errorf("changes.txt has an entry that CHANGELOG.md does not have under Changed or Removed of %q:\n%s", s.Version, c.Entry)
				continue
			}
			want[s.Version] = slices.Delete(want[s.Version], at, at+1)
			if len(c.Lines) == 0 {
				t.Errorf("changes.txt has no line for this entry; if no code shows what it concerns, write note PACKAGE, or none REASON:\n%s", c.Entry)
			}
		}
	}
	for version, entries := range want {
		for _, entry := range entries {
			t.Errorf("changes.txt does not have this entry of CHANGELOG.md, version %q; copy it, and add its lines:\n%s", version, entry)
		}
	}
}

// api has the packages of the repository as they are now.
type api struct {
	t       *testing.T
	exports map[string]string
	imports types.Importer
}

func presentAPI(t *testing.T) *api {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Export", "./...", "./simulate/...")
	cmd.Dir, cmd.Stderr = repository, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	a := &api{t: t, exports: map[string]string{}}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		a.exports[l.ImportPath] = l.Export
	}
	a.imports = importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(a.exports[path]) })
	return a
}

func (a *api) has(n Name) bool {
	c := &configuration{exports: a.exports, imports: a.imports, objects: map[string]types.Object{}}
	return a.exports[rootModule+"/"+n.Package] != "" && (len(n.Path) == 0 || c.object(n) != nil)
}

// names are all that the packages of Flyball declare, without qualifiers.
func (a *api) names() map[string]bool {
	found := map[string]bool{}
	for p := range a.exports {
		ours, ok := strings.CutPrefix(p, rootModule+"/")
		if !ok || slices.Contains(strings.Split(ours, "/"), "internal") || a.exports[p] == "" {
			continue
		}
		pkg, err := a.imports.Import(p)
		if err != nil {
			a.t.Fatal(err)
		}
		found[path.Base(p)], found[ours] = true, true
		for _, name := range pkg.Scope().Names() {
			found[name] = true
			typed, ok := pkg.Scope().Lookup(name).(*types.TypeName)
			if !ok {
				continue
			}
			methods := types.NewMethodSet(types.NewPointer(typed.Type()))
			for m := range methods.Methods() {
				found[m.Obj().Name()] = true
			}
			if s, ok := typed.Type().Underlying().(*types.Struct); ok {
				for f := range s.Fields() {
					found[f.Name()] = true
				}
			}
			if i, ok := typed.Type().Underlying().(*types.Interface); ok {
				for m := range i.Methods() {
					found[m.Name()] = true
				}
			}
		}
	}
	return found
}

var (
	quoted     = regexp.MustCompile("`([^`]+)`")
	identifier = regexp.MustCompile(`^(?:[A-Za-z]\w*\.)*[A-Z]\w*[a-z]\w*$`)
)

// What is not released yet is held against the code: old names are gone, new ones are there,
// and each name of an entry that is gone has a line.
func TestTable_AgreesWithTheCode(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles all packages")
	}
	table, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	a := presentAPI(t)
	names := a.names()
	if len(names) < 100 {
		t.Fatalf("the repository declares %d names; this test looks at too little", len(names))
	}
	for _, s := range table {
		if s.Version != "" {
			continue
		}
		for _, c := range s.Changes {
			old := map[string]bool{}
			for _, l := range c.Lines {
				a.check(l, old)
			}
			for _, q := range quoted.FindAllStringSubmatch(c.Entry, -1) {
				if last := q[1][strings.LastIndex(q[1], ".")+1:]; identifier.MatchString(q[1]) && !names[last] && !old[last] {
					t.Errorf("%s is not in the code, and no line of its entry in changes.txt has it:\n%s", q[1], c.Entry)
				}
			}
		}
	}
}

// check checks one line, and adds the old names that it has.
func (a *api) check(l Line, old map[string]bool) {
	a.t.Helper()
	for _, element := range l.Old.Path {
		old[element] = true
	}
	present := func(n Name) {
		a.t.Helper()
		if !a.has(n) {
			a.t.Errorf("%s %s: there is no %s", l.Verb, l.Old, n)
		}
	}
	switch l.Verb {
	case Rename:
		present(Name{l.Old.Package, append(slices.Clone(l.Old.Path[:len(l.Old.Path)-1]), l.New)})
	case Move:
		present(parseName(l.New))
	case Note:
		present(l.Old)
	case Use:
		present(Name{Package: l.Old.Package})
	case Rewriting:
		for _, p := range l.Rewrite.packages {
			present(Name{Package: p})
		}
		for _, s := range l.Rewrite.before {
			ast.Inspect(s, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					old[s.Sel.Name] = true
				}
				return true
			})
		}
		after, _, err := parseForm(l.Rewrite.after.text)
		if err != nil {
			a.t.Error(err)
		}
		for _, s := range after {
			ast.Inspect(s, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && l.Rewrite.packages[x.Name] != "" {
						present(Name{l.Rewrite.packages[x.Name], []string{s.Sel.Name}})
					}
				}
				return true
			})
		}
	}
	if (l.Verb == Rename || l.Verb == Move) && a.has(l.Old) {
		a.t.Errorf("%s %s: it is still there", l.Verb, l.Old)
	}
}
