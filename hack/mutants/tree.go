// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// tree indexes the Go files below a directory: their declarations, and which packages have
// which tests.
type tree struct {
	root  string
	decls map[string][]decl   // by name, as declared gives it
	tests map[string][]string // directories by the name of a test or fuzz target
}

// decl is a package-level declaration.
type decl struct {
	file *source
	node ast.Node
}

type source struct {
	path string // relative to the root, with slashes
	text []byte
	fset *token.FileSet
}

// load parses each file once. It omits what the go command omits.
func load(root string) (*tree, error) {
	t := &tree{root: root, decls: map[string][]decl{}, tests: map[string][]string{}}
	return t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if path != root && entry.IsDir() && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		path, err = filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return t.add(filepath.ToSlash(path), text)
	})
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// add indexes one file.
func (t *tree) add(path string, text []byte) error {
	if strings.HasSuffix(path, "_test.go") {
		dir := strings.TrimSuffix("./"+filepath.ToSlash(filepath.Dir(path)), "/.")
		for _, match := range testFunc.FindAllSubmatch(text, -1) {
			t.tests[string(match[1])] = append(t.tests[string(match[1])], dir)
		}
		return nil
	}
	src := &source{path: path, text: text, fset: token.NewFileSet()}
	file, err := parser.ParseFile(src.fset, path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		for name, node := range declared(d) {
			t.decls[name] = append(t.decls[name], decl{src, node})
		}
	}
	return nil
}

// declared returns what d declares: f, T.m and (*T).m for functions, the name alone for
// types, variables and constants. It omits type parameters.
func declared(d ast.Decl) map[string]ast.Node {
	out := map[string]ast.Node{}
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			name = receiver(d.Recv.List[0].Type) + "." + name
		}
		out[name] = d
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				out[spec.Name.Name] = spec
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					out[name.Name] = spec
				}
			}
		}
	}
	return out
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return "(*" + receiver(e.X) + ")"
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

var typeParameters = regexp.MustCompile(`\[[^\]]*\]`)

// named returns the declarations of a name, which may begin with elements of
// the package's path: "kit.Run" and "simulate/kit.Run" are declarations of Run
// in packages below which or in which these elements follow each other.
func (t *tree) named(name string) []decl {
	name = typeParameters.ReplaceAllString(name, "")
	if found := t.decls[name]; len(found) > 0 {
		return found
	}
	elements, rest := "", name
	slash := strings.LastIndex(name, "/") + 1
	if dot := strings.Index(name[slash:], "."); dot >= 0 {
		elements, rest = name[:slash+dot], name[slash+dot+1:]
	}
	var out []decl
	for _, d := range t.decls[rest] {
		if strings.Contains("/"+filepath.ToSlash(filepath.Dir(d.file.path))+"/", "/"+elements+"/") {
			out = append(out, d)
		}
	}
	return out
}

// holders returns the directories of the packages with a test that matches.
func (t *tree) holders(test *regexp.Regexp) []string {
	var dirs []string
	for name, in := range t.tests {
		if test.MatchString(name) {
			dirs = append(dirs, in...)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// edit is a mutant's change of one file.
type edit struct {
	path     string
	from, to []byte
}

// place finds the one place where m applies and returns the changed file.
func (t *tree) place(m mutant) (edit, error) {
	decls := t.named(m.in)
	if len(decls) == 0 {
		return edit{}, fmt.Errorf("nothing is declared as %s", m.in)
	}
	type spot struct {
		decl
		from, to int
	}
	var spots []spot
	var at []string
	for _, d := range decls {
		for _, found := range occurrences(d, m.old) {
			spots = append(spots, spot{d, found[0], found[1]})
			at = append(at, d.file.fset.Position(d.file.fset.File(d.node.Pos()).Pos(found[0])).String())
		}
	}
	switch {
	case len(spots) == 0:
		return edit{}, fmt.Errorf("%s, declared in %s, does not contain\n%s", m.in, paths(decls), m.old)
	case len(spots) > 1:
		return edit{}, fmt.Errorf("%s contains this %d times (%s), say more of what surrounds it or of its package:\n%s",
			m.in, len(spots), strings.Join(at, ", "), m.old)
	case slices.Equal(words(m.old), words(m.new)):
		return edit{}, fmt.Errorf("the mutant changes nothing but the form of\n%s", m.old)
	}
	s := spots[0]
	changed := splice(s.file.text, s.from, s.to, m.new)
	if _, err := parser.ParseFile(token.NewFileSet(), s.file.path, changed, parser.SkipObjectResolution); err != nil {
		return edit{}, fmt.Errorf("the changed %s does not parse: %w", m.in, err)
	}
	return edit{s.file.path, s.file.text, changed}, nil
}

func paths(decls []decl) string {
	var out []string
	for _, d := range decls {
		out = append(out, d.file.path)
	}
	return strings.Join(out, ", ")
}
