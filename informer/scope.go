// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"

	"github.com/flyball-dev/flyball/informer/listwatch"
)

// Scope is the part of a kind that an informer covers. The zero Scope is the
// whole kind in all namespaces.
type Scope struct {
	// Namespaces are watched separately, each with its own list and watch.
	// Empty: all namespaces. A cluster-scoped kind is watched once, as a whole.
	Namespaces []string
	// NamespaceSelector selects namespaces by label, in the form of kubectl -l,
	// instead of Namespaces: the scope follows namespaces as they appear,
	// change their labels and disappear. It needs permission to list and watch
	// namespaces; otherwise the state reports the error. It is misuse together
	// with Namespaces, and for a cluster-scoped kind, whose state is then
	// state.Misuse. Empty: none.
	NamespaceSelector string
	// LabelSelector in the form of kubectl -l. Empty: no selection.
	LabelSelector string
	// FieldSelector in the form of kubectl --field-selector. Empty: no selection.
	FieldSelector string
	// Deferred scopes are watched only after Start of the handle. The handle
	// then syncs only after Start, but others do not wait for it. Until then,
	// unless another handle has the kind watched, a transform, an error handler
	// and managedFields can be set, even while the factory runs. A Scope with
	// only Deferred covers the factory's namespaces.
	Deferred bool
	// Fields are the JSON paths to keep of each object, such as
	// "spec.nodeName"; the rest is not decoded. A path goes through lists
	// without an index ("spec.containers.image") and keeps all that is below it.
	// Always kept are apiVersion, kind, and of the metadata the name, namespace,
	// uid, resourceVersion, generation, timestamps, finalizers, ownerReferences
	// and labels. A handle keeps the union of its scopes, one without Fields
	// everything; the handles of a kind share what all of them keep. The client
	// refuses to write such objects whole. A path that the type does not have is
	// misuse, and so are Fields of a metadata informer or together with a
	// transform. A Scope with only Fields covers the factory's namespaces. Empty:
	// all fields.
	Fields []string
}

// anywhere reports whether s has options but no extent.
func (s Scope) anywhere() bool {
	return (s.Deferred || len(s.Fields) > 0) && len(s.Namespaces) == 0 && s.NamespaceSelector == "" && s.LabelSelector == "" && s.FieldSelector == ""
}

// namespaces to watch, without duplicates; one empty name means all.
func (s Scope) namespaces() []string {
	if len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, "") {
		return []string{""}
	}
	out := slices.Clone(s.Namespaces)
	slices.Sort(out)
	return slices.Compact(out)
}

// watchScopesOf returns the watch scopes of scopes: one per namespace, without
// duplicates and without those that another covers. Namespaces do not limit a
// cluster-scoped kind.
func watchScopesOf(scopes []Scope, clusterWide bool) []listwatch.Scope {
	var out []listwatch.Scope
	has := make(map[listwatch.Scope]bool)
	for _, s := range scopes {
		namespaces := []string{""}
		if !clusterWide {
			namespaces = s.namespaces()
		}
		for _, ns := range namespaces {
			w := listwatch.Scope{Namespace: ns, LabelSelector: s.LabelSelector, FieldSelector: s.FieldSelector}
			if !has[w] {
				has[w] = true
				out = append(out, w)
			}
		}
	}
	return slices.DeleteFunc(out, func(w listwatch.Scope) bool {
		whole := w
		whole.Namespace = ""
		return w != whole && has[whole]
	})
}

// plan is what a handle is to watch. It is made outside the critical section, because that
// takes a while with thousands of namespaces.
type plan struct {
	of          []Scope // without selectors of namespaces
	clusterWide bool
	by          division
	watch       []listwatch.Scope
	namespaces  map[string]bool // of the scopes; nil: all
}

func planOf(scopes []Scope, clusterWide bool, by division) *plan {
	undivided := watchScopesOf(scopes, clusterWide)
	p := &plan{of: scopes, clusterWide: clusterWide, by: by, watch: by.parts(undivided, clusterWide)}
	p.namespaces = make(map[string]bool, len(undivided))
	for _, w := range undivided {
		p.namespaces[w.Namespace] = true
	}
	if p.namespaces[""] {
		p.namespaces = nil
	}
	return p
}

// holds reports whether p is still the plan of these scopes.
func (p *plan) holds(scopes []Scope, clusterWide bool, by division) bool {
	return p.clusterWide == clusterWide && p.by == by && slices.EqualFunc(p.of, scopes, func(a, b Scope) bool {
		return a.LabelSelector == b.LabelSelector && a.FieldSelector == b.FieldSelector && slices.Equal(a.Namespaces, b.Namespaces)
	})
}
