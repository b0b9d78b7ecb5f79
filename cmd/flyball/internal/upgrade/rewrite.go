// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
)

// A Rewrite is another form of an expression, or of statements of one block. As in gofmt -r,
// a single letter stands for any expression; a letter with an s, last in a list, for any
// number of them: xs. Names of packages are resolved by types. The first statement is
// replaced, and the others, which may follow later in the block, are removed.
type Rewrite struct {
	packages map[string]string // path below the module by name
	before   []ast.Stmt
	after    template
}

// parseRewrite parses: packages: before -> after.
func parseRewrite(text string) (*Rewrite, error) {
	packages, forms, found := strings.Cut(text, ": ")
	before, after, foundToo := strings.Cut(forms, " -> ")
	if !found || !foundToo {
		return nil, errors.New("rewrite takes packages: before -> after")
	}
	r := &Rewrite{packages: map[string]string{}}
	for _, p := range strings.Fields(packages) {
		r.packages[path.Base(p)] = p
	}
	var err error
	if r.before, _, err = parseForm(before); err == nil {
		r.after, err = parseTemplate(after)
	}
	return r, err
}

const formPrefix = "package p\nfunc _() {"

func parseForm(text string) ([]ast.Stmt, *token.FileSet, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, "", formPrefix+text+"\n}", parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, fmt.Errorf("parse %q: %w", text, err)
	}
	return tree.Decls[0].(*ast.FuncDecl).Body.List, fset, nil
}

// one and several report whether an identifier of a form stands for something.
func one(name string) bool { return len(name) == 1 && name != "_" }
func several(name string) bool {
	return len(name) == 2 && name[0] >= 'a' && name[0] <= 'z' && name[1] == 's'
}

// A template is the text of a form with the places of its identifiers.
type template struct {
	text   string
	places []place
}

type place struct {
	from, to  int
	name      string
	qualifier bool
}

func parseTemplate(text string) (template, error) {
	form, fset, err := parseForm(text)
	if err != nil {
		return template{}, err
	}
	t := template{text: text}
	skip := map[*ast.Ident]bool{}
	add := func(id *ast.Ident, qualifier bool) {
		from := fset.Position(id.Pos()).Offset - len(formPrefix)
		t.places = append(t.places, place{from, from + len(id.Name), id.Name, qualifier})
	}
	for _, stmt := range form {
		ast.Inspect(stmt, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				skip[n.Sel] = true
				if x, ok := n.X.(*ast.Ident); ok && !one(x.Name) {
					skip[x] = true
					add(x, true)
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok {
					skip[key] = true
				}
			case *ast.Ident:
				if !skip[n] && (one(n.Name) || several(n.Name)) {
					add(n, false)
				}
			}
			return true
		})
	}
	slices.SortFunc(t.places, func(a, b place) int { return a.from - b.from })
	return t, nil
}

// expand returns the text with what its identifiers stand for. qualify returns the name of
// a package in the file, or "" where it is imported by a dot.
func (t template) expand(bound map[string]string, qualify func(name string) string) string {
	var out strings.Builder
	done := 0
	for _, p := range t.places {
		before := t.text[done:p.from]
		done = p.to
		text, isBound := bound[p.name]
		switch {
		case p.qualifier:
			if text = qualify(p.name); text == "" {
				done++ // the dot
			}
		case !isBound: // a name that only the new form has
			text = p.name
		case several(p.name) && strings.TrimSpace(text) == "":
			before, text = strings.TrimSuffix(before, ", "), ""
		case several(p.name) && strings.HasPrefix(text, "\n"):
			before = strings.TrimSuffix(before, " ")
		}
		out.WriteString(before + text)
	}
	return out.String() + t.text[done:]
}
