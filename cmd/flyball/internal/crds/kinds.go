// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

const (
	resourcePath = "github.com/flyball-dev/flyball/resource"
	metaPath     = "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kind is one version of a kind.
type kind struct {
	in      *source
	name    string
	version schema.GroupVersion
	at      token.Pos
}

// source is a package with its declarations.
type source struct {
	pkg     *loader.Package
	types   map[string]declared
	values  map[string]value
	methods map[string][]string // of types
}

// declared is the declaration of a type.
type declared struct {
	spec *ast.TypeSpec
	decl *ast.GenDecl
	file *ast.File
}

// value is a variable or constant with its initial value.
type value struct {
	expr ast.Expr
	file *ast.File
}

// source parses a package once.
func (w *walk) source(pkg *loader.Package) *source {
	if s := w.sources[pkg]; s != nil {
		return s
	}
	pkg.NeedSyntax()
	s := &source{pkg: pkg, types: map[string]declared{}, values: map[string]value{}, methods: map[string][]string{}}
	w.sources[pkg] = s
	w.order = append(w.order, pkg)
	for _, file := range pkg.Syntax {
		s.index(file)
	}
	w.problems.of(pkg)
	return s
}

func (s *source) index(file *ast.File) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				of := receiver(d.Recv.List[0].Type)
				s.methods[of] = append(s.methods[of], d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					s.types[spec.Name.Name] = declared{spec, d, file}
				case *ast.ValueSpec:
					for i, name := range spec.Names {
						if i < len(spec.Values) {
							s.values[name.Name] = value{spec.Values[i], file}
						}
					}
				}
			}
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// imported returns the package that a file imports under a name; nil: none.
func (s *source) imported(file *ast.File, name string) *loader.Package {
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		pkg := s.pkg.Imports()[path]
		if pkg != nil && (spec.Name == nil && pkg.Name == name || spec.Name != nil && spec.Name.Name == name) {
			return pkg
		}
	}
	return nil
}

// kinds returns the kinds in the packages, in the order of packages and names.
func (w *walk) kinds(roots []*loader.Package) []kind {
	var out []kind
	for _, root := range roots {
		s := w.source(root)
		marked, isMarked := w.marked(root)
		for _, k := range w.defined(s) {
			if isMarked && (k.version.Group != marked.Group || k.version.Version != marked.Version) {
				w.problems.add(k.at, "%s: resource.Define gives %s, and the markers of the package %s; remove the markers", k.name, k.version, marked)
			}
			out = append(out, k)
		}
		for name, d := range s.types {
			has := slices.ContainsFunc(out, func(k kind) bool { return k.in == s && k.name == name })
			if isMarked && !has && embeds(s, d, "TypeMeta") && embeds(s, d, "ObjectMeta") {
				out = append(out, kind{s, name, marked, d.spec.Pos()})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b kind) int {
		return compareAt(a.in.pkg.PkgPath+":"+a.name, b.in.pkg.PkgPath+":"+b.name)
	})
	w.checkConflicts(out)
	return out
}

// checkConflicts finds kinds of one name and version in several packages, and packages with
// several versions.
func (w *walk) checkConflicts(kinds []kind) {
	for i, k := range kinds {
		for _, other := range kinds[:i] {
			switch {
			case other.in == k.in && other.version != k.version:
				w.problems.add(k.at, "%s is in %s, and %s of the same package in %s; give each version its own package", k.name, k.version, other.name, other.version)
			case other.in != k.in && other.name == k.name && other.version == k.version:
				w.problems.add(k.at, "%s of %s is in %s, too", k.name, k.version, other.in.pkg.PkgPath)
			}
		}
	}
}

// marked returns the group and version that the markers of a package give.
func (w *walk) marked(pkg *loader.Package) (gv schema.GroupVersion, ok bool) {
	// With a collector of its own: what it finds is remembered, and instances of generic
	// types are yet to come.
	found, err := markers.PackageMarkers(&markers.Collector{Registry: w.registry}, pkg)
	if err != nil {
		pkg.AddError(err)
		w.problems.of(pkg)
		return gv, false
	}
	group, ok := found.Get("groupName").(string)
	version, named := found.Get("versionName").(string)
	if !named {
		version = pkg.Name
	}
	return schema.GroupVersion{Group: group, Version: version}, ok
}

// embeds reports whether a type embeds a type of metav1.
func embeds(s *source, d declared, name string) bool {
	fields, ok := d.spec.Type.(*ast.StructType)
	if !ok || d.spec.TypeParams != nil {
		return false
	}
	return slices.ContainsFunc(fields.Fields.List, func(f *ast.Field) bool {
		selector, ok := f.Type.(*ast.SelectorExpr)
		if !ok || len(f.Names) > 0 || selector.Sel.Name != name {
			return false
		}
		from, ok := selector.X.(*ast.Ident)
		pkg := s.imported(d.file, from.Name)
		return ok && pkg != nil && pkg.PkgPath == metaPath
	})
}

// defined returns the kinds that variables of a package define.
func (w *walk) defined(s *source) []kind {
	var out []kind
	for _, v := range s.values {
		call, ok := ast.Unparen(v.expr).(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			continue
		}
		of, ok := ast.Unparen(call.Fun).(*ast.IndexExpr)
		if !ok || !w.isDefine(s, v.file, of.X) {
			continue
		}
		name, ok := of.Index.(*ast.Ident)
		if !ok || s.types[name.Name].spec == nil {
			w.problems.add(of.Index.Pos(), "the argument of resource.Define is not a type of this package, so its definition has no name; declare a struct here")
			continue
		}
		gv, err := w.groupVersion(s, v.file, call.Args[0])
		if err != nil {
			w.problems.add(call.Args[0].Pos(), "%s: read the group and version: %v", name.Name, err)
			continue
		}
		out = append(out, kind{s, name.Name, gv, s.types[name.Name].spec.Pos()})
	}
	return out
}

func (w *walk) isDefine(s *source, file *ast.File, f ast.Expr) bool {
	selector, ok := f.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "Define" {
		return false
	}
	from, ok := selector.X.(*ast.Ident)
	if !ok {
		return false
	}
	pkg := s.imported(file, from.Name)
	return pkg != nil && pkg.PkgPath == resourcePath
}

// groupVersion evaluates an expression of type schema.GroupVersion.
func (w *walk) groupVersion(s *source, file *ast.File, e ast.Expr) (gv schema.GroupVersion, err error) {
	lit, err := w.literal(s, file, e)
	if err != nil {
		return gv, err
	}
	fields, ok := lit.expr.(*ast.CompositeLit)
	if !ok {
		return gv, errNotLiteral
	}
	for _, element := range fields.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return gv, errNotLiteral
		}
		text, err := w.text(lit.in, lit.file, pair.Value)
		if err != nil {
			return gv, err
		}
		switch key, _ := pair.Key.(*ast.Ident); {
		case key != nil && key.Name == "Group":
			gv.Group = text
		case key != nil && key.Name == "Version":
			gv.Version = text
		}
	}
	return gv, nil
}

var errNotLiteral = fmt.Errorf("it is no literal such as schema.GroupVersion{Group: %q, Version: %q}, and no variable with one; write it so", "example.com", "v1")

// place is an expression and the file that gives its names a meaning.
type place struct {
	in   *source
	file *ast.File
	expr ast.Expr
}

// literal follows variables and constants to their values.
func (w *walk) literal(s *source, file *ast.File, e ast.Expr) (place, error) {
	at := place{s, file, e}
	for range 10 {
		switch e := ast.Unparen(at.expr).(type) {
		case *ast.Ident:
			v, ok := at.in.values[e.Name]
			if !ok {
				return at, errNotLiteral
			}
			at.file, at.expr = v.file, v.expr
		case *ast.SelectorExpr:
			from, ok := e.X.(*ast.Ident)
			if !ok {
				return at, errNotLiteral
			}
			pkg := at.in.imported(at.file, from.Name)
			if pkg == nil {
				return at, errNotLiteral
			}
			at.in = w.source(pkg)
			v, ok := at.in.values[e.Sel.Name]
			if !ok {
				return at, errNotLiteral
			}
			at.file, at.expr = v.file, v.expr
		default:
			return place{at.in, at.file, e}, nil
		}
	}
	return at, errNotLiteral
}

// text evaluates a constant string.
func (w *walk) text(s *source, file *ast.File, e ast.Expr) (string, error) {
	at, err := w.literal(s, file, e)
	if err != nil {
		return "", err
	}
	switch e := at.expr.(type) {
	case *ast.BasicLit:
		return strconv.Unquote(e.Value)
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			break
		}
		left, err := w.text(at.in, at.file, e.X)
		if err != nil {
			return "", err
		}
		right, err := w.text(at.in, at.file, e.Y)
		return left + right, err
	}
	return "", errNotLiteral
}
