// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"go/ast"
	"maps"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/gotree"
)

// versionSource is a package that has a version of kinds. A copy of a version is made of it, and
// the conversions between the copy and the original.
//
//	files of api/v1 ──▶ versionSource ──▶ Types        what the kind reaches, with its comments
//	                                  └─▶ Conversions  functions, field by field
//	config/crd.yaml ──▶ addDefinitionVersion           with the version
//
// The functions are pure.
type versionSource struct {
	files []*gotree.File
	decls map[string]placedDecl // methods by their receivers: Database.Validate
	order []string              // as they stand in the files
	types map[string]*ast.TypeSpec
}

// placedDecl is a declaration and its file.
type placedDecl struct {
	in   *gotree.File
	decl ast.Decl
}

// parseVersion parses the Go files of a package. Tests are left out.
func parseVersion(files map[string][]byte) (*versionSource, error) {
	s := &versionSource{decls: map[string]placedDecl{}, types: map[string]*ast.TypeSpec{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "_test.go") || !strings.HasSuffix(name, ".go") {
			continue
		}
		f, err := gotree.Parse(name, files[name])
		if err != nil {
			return nil, err
		}
		s.files = append(s.files, f)
		for _, name := range f.Declared() {
			s.decls[name] = placedDecl{f, f.DeclarationOf(name)}
			s.order = append(s.order, name)
		}
		ast.Inspect(f.Tree, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				s.types[spec.Name.Name] = spec
			}
			return true
		})
	}
	return s, nil
}

// Declares reports whether the package declares a name.
func (s *versionSource) Declares(name string) bool { return s.decls[name].decl != nil }

// Imports returns the imports of all files.
func (s *versionSource) Imports() gotree.Imports {
	all := gotree.Imports{}
	for _, f := range s.files {
		maps.Copy(all, f.Imports())
	}
	return all
}

// HasMarker reports whether a marker is in the comments of a type.
func (s *versionSource) HasMarker(kind, marker string) bool {
	at := s.decls[kind]
	return at.decl != nil && slices.ContainsFunc(strings.Split(at.in.Whole(at.decl), "\n"), func(line string) bool { return isMarker(line, marker) })
}

func isMarker(line, marker string) bool {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "//")
	rest, marked := strings.CutPrefix(strings.TrimSpace(rest), "+"+marker)
	return ok && marked && (rest == "" || strings.ContainsAny(rest[:1], ":= "))
}

// reach returns the names that a kind leads to: its types, their methods, and constants of
// them. What a kind needs apart from that is written anew.
func (s *versionSource) reach(kind string) map[string]bool {
	found := map[string]bool{}
	for open := []string{kind}; len(open) > 0; {
		name := open[0]
		open = open[1:]
		if found[name] {
			continue
		}
		found[name] = true
		open = append(open, s.mentioned(s.decls[name].decl)...)
		for other, at := range s.decls {
			receiver, method, isMethod := strings.Cut(other, ".")
			gen, isGen := at.decl.(*ast.GenDecl)
			switch {
			case isMethod && receiver == name && !(name == kind && strings.HasPrefix(method, "DeepCopy")):
				open = append(open, other)
			case isGen && s.types[other] == nil && slices.Contains(valueTypes(gen), name):
				open = append(open, other)
			}
		}
	}
	return found
}

// mentioned returns the names of the package in a declaration.
func (s *versionSource) mentioned(decl ast.Decl) []string {
	var names []string
	inner := map[*ast.Ident]bool{}
	if decl == nil {
		return nil
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			inner[n.Sel] = true
		case *ast.Field:
			for _, name := range n.Names {
				inner[name] = true
			}
		case *ast.Ident:
			if !inner[n] && s.Declares(n.Name) {
				names = append(names, n.Name)
			}
		}
		return true
	})
	return names
}

// valueTypes returns the types that constants and variables of a declaration name.
func valueTypes(gen *ast.GenDecl) []string {
	var names []string
	for _, spec := range gen.Specs {
		if value, ok := spec.(*ast.ValueSpec); ok {
			if id, ok := value.Type.(*ast.Ident); ok {
				names = append(names, id.Name)
			}
		}
	}
	return names
}

// Types returns the declarations that a kind leads to, with their comments, except for names
// in there. Markers about the version itself are left out, and add is added to the kind's.
func (s *versionSource) Types(kind, add string, there func(name string) bool) string {
	reached, written := s.reach(kind), map[ast.Decl]bool{}
	var out strings.Builder
	for _, name := range s.order {
		at := s.decls[name]
		if !reached[name] || written[at.decl] || there(name) {
			continue
		}
		written[at.decl] = true
		for line := range strings.Lines(at.in.Whole(at.decl) + "\n") {
			text := strings.TrimSuffix(line, "\n")
			if slices.ContainsFunc(ofVersions, func(marker string) bool { return isMarker(text, marker) }) || strings.HasPrefix(text, "//go:") {
				continue
			}
			if declares(text, kind) && !s.HasMarker(kind, Marker) {
				out.WriteString("// +" + Marker + add + "\n")
			}
			out.WriteString(line)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// declares reports whether a line begins the declaration of a kind, alone or in a group.
func declares(line, kind string) bool {
	rest, _ := strings.CutPrefix(strings.TrimSpace(line), "type ")
	return strings.HasPrefix(rest, kind+" struct")
}

// Marker says what converts the versions of a kind.
const Marker = "flyball:conversion"

// storageMarker is on the version that is stored.
const storageMarker = "kubebuilder:storageversion"

// ofVersions are markers that hold for one version.
var ofVersions = []string{storageMarker, "kubebuilder:unservedversion", "kubebuilder:deprecatedversion", "kubebuilder:skipversion", "groupName", "versionName"}
