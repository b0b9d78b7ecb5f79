// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"go/ast"
	"go/token"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"

	"github.com/flyball-dev/flyball/internal/editdistance"
)

// many are the markers that may stand several times at one place.
var many = []string{
	"kubebuilder:printcolumn", "kubebuilder:metadata", "kubebuilder:selectablefield", "listMapKey",
	"kubebuilder:validation:XValidation", "kubebuilder:validation:items:XValidation",
	"kubebuilder:validation:ExactlyOneOf", "kubebuilder:validation:AtMostOneOf", "kubebuilder:validation:AtLeastOneOf",
	"kubebuilder:validation:UIntegerMultipleOf",
}

// others are markers of kubebuilder for other tools.
var others = []string{"kubebuilder:object", "kubebuilder:rbac", "kubebuilder:webhook", "kubebuilder:scaffold", "kubebuilder:ac", "kubebuilder:docs-gen", "kubebuilder:skip"}

// checkMarkers reports markers that contradict each other, at each visited type and its
// fields, and unknown ones in roots: those of other packages are not the user's to correct.
func (w *walk) checkMarkers(roots []*loader.Package) {
	for _, v := range w.visited {
		values, err := w.collector.MarkersInPackage(v.in.pkg)
		if err != nil {
			v.in.pkg.AddError(err)
			w.problems.of(v.in.pkg)
			continue
		}
		w.contradictions(v.name, v.spec.Pos(), values[v.spec])
		if fields, ok := v.spec.Type.(*ast.StructType); ok {
			for _, f := range fields.Fields.List {
				name := v.name
				if len(f.Names) > 0 {
					name += "." + f.Names[0].Name
				}
				w.contradictions(name, f.Pos(), values[f])
			}
		}
		if slices.Contains(roots, v.in.pkg) {
			w.unknown(v)
		}
	}
}

// contradictions reports values of one marker that differ, and markers that exclude each
// other.
func (w *walk) contradictions(name string, at token.Pos, values markers.MarkerValues) {
	name, _, _ = strings.Cut(name, "ʹ")
	for marker, all := range values {
		if slices.Contains(many, marker) {
			continue
		}
		for _, other := range all[1:] {
			if !reflect.DeepEqual(all[0], other) {
				w.problems.add(at, "%s: the marker +%s is there twice, with other values; keep one", name, marker)
				break
			}
		}
	}
	given := func(markers ...string) string {
		for _, marker := range markers {
			if len(values[marker]) > 0 {
				return marker
			}
		}
		return ""
	}
	optional := given("optional", "kubebuilder:validation:Optional", "k8s:optional")
	required := given("required", "kubebuilder:validation:Required", "k8s:required")
	if optional != "" && required != "" {
		w.problems.add(at, "%s: the markers +%s and +%s exclude each other; keep one", name, optional, required)
	}
}

// unknown reports markers of kubebuilder that do not exist, such as misspelled ones.
func (w *walk) unknown(v visit) {
	first := v.spec.Pos()
	for _, doc := range []*ast.CommentGroup{v.decl.Doc, v.spec.Doc} {
		if doc != nil {
			first = min(first, doc.Pos())
		}
	}
	body := v.spec.End()
	if fields, ok := v.spec.Type.(*ast.StructType); ok {
		body = fields.Pos()
	}
	for _, group := range v.file.Comments {
		if group.Pos() < first || group.End() > v.spec.End() {
			continue
		}
		target := markers.DescribesType
		if group.Pos() > body {
			target = markers.DescribesField
		}
		for _, c := range group.List {
			text := strings.TrimSpace(strings.TrimPrefix(c.Text, "//"))
			if !strings.HasPrefix(text, "+kubebuilder:") && !strings.HasPrefix(text, "+flyball:") || w.registry.Lookup(text, target) != nil {
				continue
			}
			name := strings.TrimPrefix(text, "+")
			if i := strings.IndexAny(name, "= `\""); i >= 0 {
				name = name[:i]
			}
			if slices.ContainsFunc(others, func(other string) bool { return name == other || strings.HasPrefix(name, other+":") }) {
				continue
			}
			w.problems.add(c.Pos(), "there is no marker +%s for a %s%s", name, map[markers.TargetType]string{markers.DescribesType: "type", markers.DescribesField: "field"}[target], w.nearest(name, target))
		}
	}
}

// nearest returns a hint at the marker that was meant; empty: there is none like it.
func (w *walk) nearest(name string, target markers.TargetType) string {
	best, least := "", 4
	for _, d := range w.registry.AllDefinitions() {
		if n := editdistance.Of(strings.ToLower(d.Name), strings.ToLower(name)); d.Target == target && (n < least || n == least && d.Name < best) {
			best, least = d.Name, n
		}
	}
	if best == "" {
		return ""
	}
	return "; is it +" + best + "?"
}
