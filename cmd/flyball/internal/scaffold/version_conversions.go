// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"go/ast"
	"go/types"
	"strings"
)

// hubVersion is the version that is converted to and from.
type hubVersion struct {
	Version string // v1
	Package string // its name in imports: apiv1
}

// suffix is the version in names of functions: V1, V1beta1.
func (h hubVersion) suffix() string { return versionSuffix(h.Version) }

// versionSuffix returns a version as it ends the names of Go: V1beta1.
func versionSuffix(version string) string { return strings.ToUpper(version[:1]) + version[1:] }

// Conversions returns functions that convert a kind to and from its hub, whose types are the
// same, and what they call, except for names in there. They set each field, so that a change
// of one version is a change of some lines. Types for which that is not possible, such as
// generic ones, are converted by their JSON.
func (s *versionSource) Conversions(kind, variable string, hub hubVersion, there func(name string) bool) string {
	g := generator{source: s, hub: hub, there: there, done: map[string]bool{}, helpers: map[string]bool{}}
	fields := [2]string{}
	for i, toHub := range []bool{true, false} {
		fields[i] = g.assignments(kind, toHub)
	}
	if g.failed {
		g = generator{helpers: map[string]bool{"sameJSON": true}, there: there}
		fields = [2]string{"\treturn sameJSON(from, to)\n", "\treturn sameJSON(from, to)\n"}
	}
	var out strings.Builder
	fmt.Fprintf(&out, `// %[1]sConversion converts %[1]s objects to and from %[3]s, the hub.
var %[1]sConversion = resource.Convert(GroupVersion, %[2]s.GroupVersion, %[4]sTo%[5]s, %[4]sFrom%[5]s)

func %[4]sTo%[5]s(from *%[1]s, to *%[2]s.%[1]s) error {
%[6]s}

func %[4]sFrom%[5]s(from *%[2]s.%[1]s, to *%[1]s) error {
%[7]s}
`, kind, hub.Package, hub.Version, variable, hub.suffix(), fields[0], fields[1])
	for _, text := range g.functions {
		out.WriteString("\n" + text)
	}
	for _, name := range []string{"convertPointer", "convertList", "convertMap", "sameJSON"} {
		if g.helpers[name] && !there(name) {
			out.WriteString("\n" + helpers[name])
		}
	}
	return out.String()
}

var helpers = map[string]string{
	"convertPointer": `func convertPointer[A, B any](from *A, convert func(A) B) *B {
	if from == nil {
		return nil
	}
	return new(convert(*from))
}
`,
	"convertList": `func convertList[A, B any](from []A, convert func(A) B) []B {
	if from == nil {
		return nil
	}
	to := make([]B, len(from))
	for i := range from {
		to[i] = convert(from[i])
	}
	return to
}
`,
	"convertMap": `func convertMap[K comparable, A, B any](from map[K]A, convert func(A) B) map[K]B {
	if from == nil {
		return nil
	}
	to := make(map[K]B, len(from))
	for key, value := range from {
		to[key] = convert(value)
	}
	return to
}
`,
	"sameJSON": `// sameJSON sets the fields that have the same names in both versions. Set what differs after
// the call.
func sameJSON(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}
`,
}

// generator writes conversions of types that are the same in both packages.
type generator struct {
	source    *versionSource
	hub       hubVersion
	there     func(string) bool
	functions []string
	done      map[string]bool // functions that are written
	helpers   map[string]bool // that are called
	failed    bool            // a type has a form that it does not know
}

func (g *generator) fail() string {
	g.failed = true
	return ""
}

// assignments returns the statements that convert a kind.
func (g *generator) assignments(kind string, toHub bool) string {
	var out strings.Builder
	for _, f := range g.fields(kind) {
		if f.name != "TypeMeta" && f.name != "ObjectMeta" {
			fmt.Fprintf(&out, "\tto.%s = %s\n", f.name, g.value(f.of, "from."+f.name, toHub))
		}
	}
	return out.String() + "\treturn nil\n"
}

type field struct {
	name string
	of   ast.Expr
}

// fields returns the fields of a struct.
func (g *generator) fields(name string) []field {
	spec := g.source.types[name]
	if spec == nil {
		return nil
	}
	fields, ok := spec.Type.(*ast.StructType)
	if !ok || spec.TypeParams != nil {
		g.fail()
		return nil
	}
	var out []field
	for _, f := range fields.Fields.List {
		for _, name := range f.Names {
			out = append(out, field{name.Name, f.Type})
		}
		if len(f.Names) == 0 {
			out = append(out, field{embedded(f.Type), f.Type})
		}
	}
	return out
}

func embedded(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return embedded(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// isLocal reports whether a type is made of types of the package, which differ between the
// versions.
func (g *generator) isLocal(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			return false
		case *ast.Ident:
			spec := g.source.types[n.Name]
			found = found || spec != nil && (!spec.Assign.IsValid() || g.isLocal(spec.Type))
		}
		return !found
	})
	return found
}

// value returns an expression that converts a value of a type.
func (g *generator) value(e ast.Expr, value string, toHub bool) string {
	if !g.isLocal(e) {
		return value
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return g.value(e.X, value, toHub)
	case *ast.Ident:
		return g.named(e.Name, value, toHub)
	case *ast.StarExpr:
		return g.each("convertPointer", e.X, value, toHub)
	case *ast.ArrayType:
		if e.Len == nil {
			return g.each("convertList", e.Elt, value, toHub)
		}
	case *ast.MapType:
		if !g.isLocal(e.Key) {
			return g.each("convertMap", e.Value, value, toHub)
		}
	}
	return g.fail()
}

// each returns a call of a helper that converts what is in a pointer, list or map.
func (g *generator) each(helper string, elem ast.Expr, value string, toHub bool) string {
	g.helpers[helper] = true
	return fmt.Sprintf("%s(%s, %s)", helper, value, g.function(elem, toHub))
}

// function returns an expression for the function that converts values of a type.
func (g *generator) function(e ast.Expr, toHub bool) string {
	if id, ok := e.(*ast.Ident); ok {
		if spec := g.source.types[id.Name]; spec != nil && !spec.Assign.IsValid() {
			if _, isStruct := spec.Type.(*ast.StructType); isStruct {
				return g.structFunction(id.Name, toHub)
			}
		}
	}
	from, to := g.typeOf(e, !toHub), g.typeOf(e, toHub)
	return fmt.Sprintf("func(from %s) %s { return %s }", from, to, g.value(e, "from", toHub))
}

// named returns an expression that converts a value of a type of the package.
func (g *generator) named(name, value string, toHub bool) string {
	spec := g.source.types[name]
	switch {
	case spec.Assign.IsValid():
		return g.value(spec.Type, value, toHub)
	case spec.TypeParams != nil:
		return g.fail()
	}
	if _, isStruct := spec.Type.(*ast.StructType); isStruct {
		return g.structFunction(name, toHub) + "(" + value + ")"
	}
	if g.isLocal(spec.Type) {
		return g.fail() // the types of its parts differ
	}
	return g.typeOf(spec.Name, toHub) + "(" + value + ")"
}

// typeOf returns a type as it is written in the package of the other version.
func (g *generator) typeOf(e ast.Expr, hub bool) string {
	switch e := e.(type) {
	case *ast.Ident:
		if hub && g.source.types[e.Name] != nil {
			return g.hub.Package + "." + e.Name
		}
	case *ast.StarExpr:
		return "*" + g.typeOf(e.X, hub)
	case *ast.ArrayType:
		if e.Len == nil {
			return "[]" + g.typeOf(e.Elt, hub)
		}
		return g.fail()
	case *ast.MapType:
		return "map[" + g.typeOf(e.Key, hub) + "]" + g.typeOf(e.Value, hub)
	}
	return types.ExprString(e)
}

// structFunction writes the function that converts a struct, and returns its name.
func (g *generator) structFunction(name string, toHub bool) string {
	direction := "From"
	if toHub {
		direction = "To"
	}
	function := strings.ToLower(name[:1]) + name[1:] + direction + g.hub.suffix()
	if g.done[function] || g.there(function) {
		return function
	}
	g.done[function] = true
	at := len(g.functions)
	g.functions = append(g.functions, "") // before those that it calls
	id := ast.NewIdent(name)
	var text strings.Builder
	fmt.Fprintf(&text, "func %s(from %s) %s {\n\treturn %[3]s{\n", function, g.typeOf(id, !toHub), g.typeOf(id, toHub))
	for _, f := range g.fields(name) {
		if f.name == "_" || f.name == "" || !ast.IsExported(f.name) {
			return g.fail()
		}
		fmt.Fprintf(&text, "\t\t%s: %s,\n", f.name, g.value(f.of, "from."+f.name, toHub))
	}
	g.functions[at] = text.String() + "\t}\n}\n"
	return function
}
