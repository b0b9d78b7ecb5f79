// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"sigs.k8s.io/controller-tools/pkg/loader"
)

// deepest bounds the instances that the declaration of an instance needs.
const deepest = 20

// instance declares the instance of a generic type in the package that uses it, which the
// parser of schemas then finds as any type, and returns its name as an expression.
func (w *walk) instance(s *source, file *ast.File, e, generic ast.Expr, args []ast.Expr, to step) ast.Expr {
	in := &instancer{walk: w, user: s, to: to}
	name := in.instance(e.Pos(), setting{s, file, nil}, generic, args, 0)
	if name == "" {
		return nil // which was reported
	}
	w.named(s, name, e.Pos(), to)
	return &ast.Ident{NamePos: e.Pos(), Name: name}
}

// setting is where an expression stands: it gives its names a meaning.
type setting struct {
	in     *source
	file   *ast.File
	params map[string]string // type parameters, and the text of their arguments
}

// instancer writes instances into one package.
type instancer struct {
	walk *walk
	user *source
	to   step
}

// instance declares an instance, and returns its name; empty: there is none.
func (in *instancer) instance(at token.Pos, c setting, generic ast.Expr, args []ast.Expr, depth int) string {
	from, d, ok := in.find(c, generic)
	switch {
	case !ok:
		in.walk.problems.add(at, "%s: the generic type %s cannot be found", in.to.path, types.ExprString(generic))
		return ""
	case d.spec.TypeParams == nil:
		in.walk.problems.add(at, "%s: %s is not a generic type", in.to.path, types.ExprString(generic))
		return ""
	case depth > deepest:
		in.walk.problems.add(at, "%s: the instances of %s have no end, and a schema must have one", in.to.path, d.spec.Name.Name)
		return ""
	}
	var texts []string
	for _, arg := range args {
		text := in.render(c, arg, depth)
		if text == "" {
			return ""
		}
		texts = append(texts, text)
	}
	key := instanceKey{in.user, from, d.spec.Name.Name, strings.Join(texts, ", ")}
	if name, declared := in.walk.instances[key]; declared {
		return name
	}
	name := in.unused(key)
	params := map[string]string{}
	for _, field := range d.spec.TypeParams.List {
		for _, param := range field.Names {
			if len(params) < len(texts) {
				params[param.Name] = texts[len(params)]
			}
		}
	}
	if len(params) != d.spec.TypeParams.NumFields() {
		in.walk.problems.add(at, "%s: %s has %d type parameters, and %d arguments", in.to.path, d.spec.Name.Name, d.spec.TypeParams.NumFields(), len(texts))
		return ""
	}
	in.walk.instances[key] = name // now, since the declaration may need itself, which the walk reports
	if err := in.declare(name, setting{from, d.file, params}, d, depth); err != nil {
		delete(in.walk.instances, key)
		if !errors.Is(err, errReported) {
			in.walk.problems.add(at, "%s: make an instance of %s: %v", in.to.path, d.spec.Name.Name, err)
		}
		return ""
	}
	return name
}

// instanceKey identifies an instance in the package that uses it.
type instanceKey struct {
	user, generic *source
	name, args    string
}

// unused returns a name for an instance that no type of the package has.
func (in *instancer) unused(key instanceKey) string {
	name := key.name + "ʹ" + letters(key.args) // a letter that programs do not use
	for n := 2; ; n++ {
		taken := in.user.types[name].spec != nil
		for other, has := range in.walk.instances {
			taken = taken || other.user == in.user && has == name
		}
		if !taken {
			return name
		}
		name = fmt.Sprintf("%sʹ%s%d", key.name, letters(key.args), n)
	}
}

// letters replaces what an identifier cannot have.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, text)
}

// errReported: there is a problem already.
var errReported = errors.New("reported")

// find returns the declaration that an expression names.
func (in *instancer) find(c setting, generic ast.Expr) (*source, declared, bool) {
	switch e := generic.(type) {
	case *ast.Ident:
		d, ok := c.in.types[e.Name]
		return c.in, d, ok
	case *ast.SelectorExpr:
		if from, ok := e.X.(*ast.Ident); ok {
			if pkg := c.in.imported(c.file, from.Name); pkg != nil {
				s := in.walk.source(pkg)
				d, ok := s.types[e.Sel.Name]
				return s, d, ok
			}
		}
	}
	return nil, declared{}, false
}

// declare adds a file with the declaration of an instance to the package. Its lines have the
// positions of the generic declaration.
func (in *instancer) declare(name string, c setting, d declared, depth int) error {
	position := in.walk.fset.Position(d.spec.Pos())
	text, err := os.ReadFile(position.Filename)
	if err != nil {
		return err
	}
	offset := func(p token.Pos) int { return in.walk.fset.PositionFor(p, false).Offset }
	first := d.spec.Name.Pos()
	doc := d.spec.Doc
	if doc == nil && !d.decl.Lparen.IsValid() {
		doc = d.decl.Doc
	}
	docs := ""
	if doc != nil {
		docs = string(text[offset(doc.Pos()):offset(doc.End())]) + "\n"
		position = in.walk.fset.Position(doc.Pos())
	}
	body, err := in.body(text, c, d, offset, depth)
	if err != nil {
		return err
	}
	head := "package " + in.user.pkg.Name + "\n"
	for _, alias := range slices.Sorted(maps.Keys(in.walk.aliases)) {
		if strings.Contains(body, alias+".") {
			head += fmt.Sprintf("import %s %q\n", alias, in.walk.aliases[alias])
		}
	}
	assign := ""
	if d.spec.Assign.IsValid() {
		assign = "= "
	}
	code := fmt.Sprintf("%s\n//line %s:%d\n\n%stype %s %s%s\n", head, position.Filename, position.Line-1, docs, name, assign, body)
	virtual := filepath.Join(filepath.Dir(in.walk.fset.PositionFor(first, false).Filename), name+".go")
	file, err := parser.ParseFile(in.walk.fset, virtual, code, parser.AllErrors|parser.ParseComments)
	if err != nil {
		return err
	}
	in.user.pkg.Syntax = append(in.user.pkg.Syntax, file)
	in.user.index(file)
	return nil
}

// body returns the text of a generic type with its arguments.
func (in *instancer) body(text []byte, c setting, d declared, offset func(token.Pos) int, depth int) (string, error) {
	fields, ok := d.spec.Type.(*ast.StructType)
	if !ok {
		out := in.render(c, d.spec.Type, depth+1)
		if out == "" {
			return "", errReported
		}
		return out, nil
	}
	var out strings.Builder
	at := offset(fields.Pos())
	for _, f := range fields.Fields.List {
		if tag, _ := tagOf(f); tag == "-" {
			// Its type may be one that cannot be named here.
			out.Write(text[at:offset(f.Type.Pos())])
			out.WriteString("struct{}")
			at = offset(f.Type.End())
			continue
		}
		changed := in.render(c, f.Type, depth+1)
		if changed == "" {
			return "", errReported
		}
		out.Write(text[at:offset(f.Type.Pos())])
		out.WriteString(changed)
		at = offset(f.Type.End())
	}
	out.Write(text[at:offset(fields.End())])
	return out.String(), nil
}

// render returns the text of a type as it is written in the user's package; empty: a problem
// was reported.
func (in *instancer) render(c setting, e ast.Expr, depth int) string {
	nested := func(format string, inner ast.Expr) string {
		text := in.render(c, inner, depth)
		if text == "" {
			return ""
		}
		return fmt.Sprintf(format, text)
	}
	switch e := e.(type) {
	case *ast.Ident:
		return in.renderIdent(c, e)
	case *ast.SelectorExpr:
		from, ok := e.X.(*ast.Ident)
		if !ok {
			return ""
		}
		pkg := c.in.imported(c.file, from.Name)
		if pkg == nil {
			in.walk.problems.add(e.Pos(), "%s: the package %s is not imported, or cannot be loaded", in.to.path, from.Name)
			return ""
		}
		return in.qualified(pkg, e.Sel.Name)
	case *ast.ParenExpr:
		return in.render(c, e.X, depth)
	case *ast.StarExpr:
		return nested("*%s", e.X)
	case *ast.ArrayType:
		length := ""
		if e.Len != nil {
			length = types.ExprString(e.Len)
		}
		return nested("["+length+"]%s", e.Elt)
	case *ast.MapType:
		key := in.render(c, e.Key, depth)
		if key == "" {
			return ""
		}
		return nested("map["+key+"]%s", e.Value)
	case *ast.IndexExpr:
		return in.instance(e.Pos(), c, e.X, []ast.Expr{e.Index}, depth+1)
	case *ast.IndexListExpr:
		return in.instance(e.Pos(), c, e.X, e.Indices, depth+1)
	}
	return types.ExprString(e) // which the walk refuses
}

func (in *instancer) renderIdent(c setting, e *ast.Ident) string {
	if arg, ok := c.params[e.Name]; ok {
		return arg
	}
	if _, there := c.in.types[e.Name]; !there || c.in == in.user {
		return e.Name // predeclared, or of this package
	}
	if !e.IsExported() {
		in.walk.problems.add(e.Pos(), "%s: %s is not exported, so that an instance in %s cannot have it; export it", in.to.path, e.Name, in.user.pkg.PkgPath)
		return ""
	}
	return in.qualified(c.in.pkg, e.Name)
}

// qualified returns the name of a type of another package, which the file then imports.
func (in *instancer) qualified(pkg *loader.Package, name string) string {
	if pkg == in.user.pkg {
		return name
	}
	in.user.pkg.Imports()[pkg.PkgPath] = pkg
	// Every file of instances imports a package under this name, so that the text of an
	// argument means the same in each.
	alias := pkg.Name + "ʹ" + letters(pkg.PkgPath)
	in.walk.aliases[alias] = pkg.PkgPath
	return alias + "." + name
}
