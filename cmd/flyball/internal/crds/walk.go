// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

// walk visits each type that a kind reaches. It reports types that have no schema, and
// declares the instances of generic types.
type walk struct {
	fset      *token.FileSet
	registry  *markers.Registry
	collector *markers.Collector
	problems  *problems
	floats    bool
	sources   map[*loader.Package]*source
	order     []*loader.Package
	visited   []visit
	seen      map[ident]bool
	instances map[instanceKey]string // the names of their types
	aliases   map[string]string      // the names of imported packages in files of instances, and their paths
}

// ident names a type.
type ident struct {
	in   *source
	name string
}

// visit is a declaration that belongs to a kind.
type visit struct {
	ident
	declared
}

func newWalk(fset *token.FileSet, registry *markers.Registry, found *problems, floats bool) *walk {
	return &walk{
		fset: fset, registry: registry, collector: &markers.Collector{Registry: registry}, problems: found, floats: floats,
		sources: map[*loader.Package]*source{}, seen: map[ident]bool{}, instances: map[instanceKey]string{}, aliases: map[string]string{},
	}
}

// packages returns the packages that were visited, in order.
func (w *walk) packages() []*loader.Package { return w.order }

// step is where the walk is: the Go fields that lead there, and the types that are open.
type step struct {
	path string
	open []ident
}

func (s step) into(field string) step { return step{s.path + "." + field, s.open} }

// kind visits a kind.
func (w *walk) kind(k kind) {
	d := k.in.types[k.name]
	if d.spec.TypeParams != nil {
		w.problems.add(k.at, "%s: a kind cannot be a generic type; embed an instance of it in a struct with the kind's name", k.name)
		return
	}
	w.named(k.in, k.name, k.at, step{path: k.name})
}

// named visits a type of a package.
func (w *walk) named(s *source, name string, at token.Pos, to step) {
	d, ok := s.types[name]
	if !ok {
		w.problems.add(at, "%s: there is no type %s in %s", to.path, name, s.pkg.PkgPath)
		return
	}
	id := ident{s, name}
	if slices.Contains(to.open, id) {
		w.problems.add(at, "%s: the type %s contains itself, and a schema cannot; use runtime.RawExtension, or JSON of package apiextensions/v1, for the inner part", to.path, name)
		return
	}
	if w.seen[id] {
		return
	}
	w.seen[id] = true
	w.visited = append(w.visited, visit{id, d})
	if w.encodesItself(s, name, d) {
		return
	}
	to.open = append(slices.Clip(to.open), id)
	if d.spec.Assign.IsValid() {
		switch d.spec.Type.(type) {
		case *ast.MapType, *ast.ArrayType, *ast.StarExpr, *ast.StructType:
			d.spec.Assign = token.NoPos // controller-tools has no schema for such an alias
		}
	}
	if fields, ok := d.spec.Type.(*ast.StructType); ok {
		w.fields(s, d, fields, to)
		return
	}
	if changed := w.expr(s, d.file, d.spec.Type, to); changed != nil {
		d.spec.Type = changed
	}
}

// encodesItself reports whether methods encode a type as its markers say.
func (w *walk) encodesItself(s *source, name string, d declared) bool {
	return slices.Contains(s.methods[name], "MarshalText") || slices.Contains(s.methods[name], "MarshalJSON") && d.hasTypeMarker()
}

// hasTypeMarker reports whether a marker says the type in the schema.
func (d declared) hasTypeMarker() bool {
	doc := d.spec.Doc
	if doc == nil {
		doc = d.decl.Doc
	}
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.Contains(c.Text, "+kubebuilder:validation:Type=")
	})
}

func (w *walk) fields(s *source, d declared, in *ast.StructType, to step) {
	for _, f := range in.Fields.List {
		tag, tagged := tagOf(f)
		if tag == "-" {
			continue
		}
		names := f.Names
		if len(names) == 0 {
			names = []*ast.Ident{{NamePos: f.Type.Pos(), Name: embedded(f.Type)}}
		}
		for _, name := range names {
			if err := wrongTag(name.Name, tag, tagged, len(f.Names) == 0); err != nil {
				w.problems.add(name.Pos(), "%s.%s: %v", to.path, name.Name, err)
			}
		}
		if w.quotes(s, d.file, f.Type, tag) && !has(f, "Type=string") && !has(f, "Schemaless") {
			w.problems.add(names[0].Pos(), "%s.%s: the json option string quotes the value in JSON, and the schema is that of %s; remove the option, or add the marker +kubebuilder:validation:Type=string",
				to.path, names[0].Name, types.ExprString(f.Type))
		}
		if has(f, "Schemaless") {
			continue
		}
		inner := to.into(names[0].Name)
		if len(f.Names) == 0 && strings.HasPrefix(tag, ",") {
			inner.path = to.path // its fields are the struct's own
		}
		if changed := w.expr(s, d.file, f.Type, inner); changed != nil {
			f.Type = changed
		}
	}
}

func tagOf(f *ast.Field) (tag string, ok bool) {
	if f.Tag == nil {
		return "", false
	}
	text, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return "", false
	}
	return reflect.StructTag(text).Lookup("json")
}

// embedded returns the name of an embedded field.
func embedded(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.Sel.Name
	default:
		return receiver(e)
	}
}

// wrongTag returns what is wrong with a field and its tag, in the words of package resource.
func wrongTag(name, tag string, tagged, embedded bool) error {
	encoded, _, _ := strings.Cut(tag, ",")
	switch {
	case name != "" && !ast.IsExported(name) && !embedded:
		return fmt.Errorf("the field is not exported, so it is not encoded; export it, or remove it")
	case !tagged && embedded:
		return fmt.Errorf("the embedded struct has no json tag; add `json:\",inline\"`, or a name")
	case !tagged:
		return fmt.Errorf("the field has no json tag; add one such as `json:%q`", strings.ToLower(name[:1])+name[1:])
	case encoded == "" && !embedded:
		return fmt.Errorf("the json tag has no name; give one")
	}
	return nil
}

// has reports whether a field has a marker about its validation that begins with this name.
func has(f *ast.Field, marker string) bool {
	return f.Doc != nil && slices.ContainsFunc(f.Doc.List, func(c *ast.Comment) bool {
		return strings.Contains(c.Text, "+kubebuilder:validation:"+marker)
	})
}

// expr visits the types of an expression. It returns what takes its place, if that changes.
func (w *walk) expr(s *source, file *ast.File, e ast.Expr, to step) ast.Expr {
	switch e := e.(type) {
	case *ast.Ident:
		w.ident(s, file, e, to)
	case *ast.SelectorExpr:
		from, ok := e.X.(*ast.Ident)
		if !ok {
			break
		}
		pkg := s.imported(file, from.Name)
		if pkg == nil {
			w.problems.add(e.Pos(), "%s: the package %s is not imported, or cannot be loaded", to.path, from.Name)
			break
		}
		w.external(pkg, e.Sel.Name, e.Pos(), to)
	case *ast.ParenExpr:
		if changed := w.expr(s, file, e.X, to); changed != nil {
			return changed
		}
		return e.X
	case *ast.StarExpr:
		replaceIn(&e.X, w.expr(s, file, e.X, to))
	case *ast.ArrayType:
		replaceIn(&e.Elt, w.expr(s, file, e.Elt, to))
	case *ast.MapType:
		if key, _ := w.basic(s, file, e.Key, 0); key != "string" {
			w.problems.add(e.Key.Pos(), "%s: the keys of %s are not strings, as those of a JSON object are; use a map with string keys, or a list", to.path, types.ExprString(e))
		}
		replaceIn(&e.Value, w.expr(s, file, e.Value, to))
	case *ast.IndexExpr:
		return w.instance(s, file, e, e.X, []ast.Expr{e.Index}, to)
	case *ast.IndexListExpr:
		return w.instance(s, file, e, e.X, e.Indices, to)
	case *ast.StructType:
		w.problems.add(e.Pos(), "%s: a struct without a name has no place for markers; declare a type for it", to.path)
	case *ast.InterfaceType:
		w.isInterface(e.Pos(), "interface", to)
	case *ast.FuncType, *ast.ChanType:
		w.problems.add(e.Pos(), "%s: %s has no JSON; remove the field", to.path, types.ExprString(e))
	}
	return nil
}

func replaceIn(at *ast.Expr, changed ast.Expr) {
	if changed != nil {
		*at = changed
	}
}

func (w *walk) isInterface(at token.Pos, name string, to step) {
	w.problems.add(at, "%s: the %s cannot be decoded, and has no schema; use runtime.RawExtension, or JSON of package apiextensions/v1", to.path, name)
}

// ident visits a name without a package.
func (w *walk) ident(s *source, file *ast.File, e *ast.Ident, to step) {
	if _, here := s.types[e.Name]; here {
		w.named(s, e.Name, e.Pos(), to)
		return
	}
	switch e.Name {
	case "any", "error", "comparable":
		w.isInterface(e.Pos(), "interface "+e.Name, to)
	case "float32", "float64":
		if !w.floats {
			w.problems.add(e.Pos(), "%s: %s loses digits in JSON; use resource.Quantity, a string or an integer, or give -floats", to.path, e.Name)
		}
	case "complex64", "complex128", "uintptr":
		w.problems.add(e.Pos(), "%s: %s has no JSON; remove the field", to.path, e.Name)
	default:
		if types.Universe.Lookup(e.Name) != nil {
			return
		}
		for _, spec := range file.Imports { // of a dot import
			path, _ := strconv.Unquote(spec.Path.Value)
			pkg := s.pkg.Imports()[path]
			if spec.Name == nil || spec.Name.Name != "." || pkg == nil {
				continue
			}
			if _, there := w.source(pkg).types[e.Name]; there {
				w.external(pkg, e.Name, e.Pos(), to)
				return
			}
		}
		w.problems.add(e.Pos(), "%s: there is no type %s", to.path, e.Name)
	}
}

// external visits a type of another package. Those of Kubernetes are known to have schemas.
func (w *walk) external(pkg *loader.Package, name string, at token.Pos, to step) {
	if strings.HasPrefix(pkg.PkgPath, "k8s.io/") {
		return
	}
	w.named(w.source(pkg), name, at, to)
}

// quotes reports whether the json option string makes a string in JSON of a value that has
// another schema.
func (w *walk) quotes(s *source, file *ast.File, e ast.Expr, tag string) bool {
	_, options, _ := strings.Cut(tag, ",")
	if !slices.Contains(strings.Split(options, ","), "string") {
		return false
	}
	if p, ok := e.(*ast.StarExpr); ok {
		e = p.X
	}
	of, differs := w.basic(s, file, e, 0)
	known := types.Universe.Lookup(of) // of other types encoding/json ignores the option
	if known == nil || differs {
		return false
	}
	b, ok := known.Type().Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsBoolean|types.IsInteger|types.IsFloat|types.IsString) != 0
}

// basic returns the name of the predeclared type that a type is, or is defined as, and whether
// the methods or markers of a type on the way make another JSON or schema of it. Empty: of
// another type.
func (w *walk) basic(s *source, file *ast.File, e ast.Expr, depth int) (name string, differs bool) {
	switch e := e.(type) {
	case *ast.Ident:
		d, here := s.types[e.Name]
		switch {
		case !here:
			return e.Name, false
		case depth < 10:
			name, differs = w.basic(s, d.file, d.spec.Type, depth+1)
			return name, differs || d.hasTypeMarker() || slices.Contains(s.methods[e.Name], "MarshalText") || slices.Contains(s.methods[e.Name], "MarshalJSON")
		}
	case *ast.SelectorExpr:
		from, ok := e.X.(*ast.Ident)
		if !ok {
			break
		}
		if pkg := s.imported(file, from.Name); pkg != nil {
			there := w.source(pkg)
			if _, ok := there.types[e.Sel.Name]; ok {
				return w.basic(there, nil, &ast.Ident{Name: e.Sel.Name}, depth)
			}
		}
	case *ast.ParenExpr:
		return w.basic(s, file, e.X, depth)
	}
	return "", false
}
