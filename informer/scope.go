// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"
)

// Scope is the part of a kind that an informer covers. The zero Scope is the
// whole kind in all namespaces.
type Scope struct {
	// Namespaces are watched one by one, each with a list and watch of its own.
	// Empty: all namespaces. A kind of cluster scope is watched whole, and once,
	// whatever namespaces are named.
	Namespaces []string
	// NamespaceSelector chooses namespaces by their labels, in the form of
	// kubectl -l, instead of Namespaces: the scope follows them as they come,
	// change their labels and go. It takes the right to list and watch
	// namespaces; without it the state says so. Misuse with Namespaces, and of a
	// kind of cluster scope, whose state then is StateMisuse. Empty: none.
	NamespaceSelector string
	// LabelSelector in the form of kubectl -l. Empty: no selection.
	LabelSelector string
	// FieldSelector in the form of kubectl --field-selector. Empty: no selection.
	FieldSelector string
	// Deferred: nothing is watched for the scope before Start of the handle, which
	// syncs only after it; nobody else waits for that. Where no other handle has the
	// kind watched, a transform, an error handler and managedFields can be asked for
	// until then, also while the factory runs. A Scope with nothing else in it is
	// the factory's namespaces.
	Deferred bool
}

// deferredAlone: the Scope says nothing but Deferred.
func (s Scope) deferredAlone() bool {
	return s.Deferred && len(s.Namespaces) == 0 && s.NamespaceSelector == "" && s.LabelSelector == "" && s.FieldSelector == ""
}

// namespaces to watch one by one, without repetition; one empty name is all.
func (s Scope) namespaces() []string {
	if len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, "") {
		return []string{""}
	}
	out := slices.Clone(s.Namespaces)
	slices.Sort(out)
	return slices.Compact(out)
}

// watchScopesOf is what scopes come down to: each namespace by itself, each
// once, and none that another one covers already. Namespaces do not divide a
// kind of cluster scope.
func watchScopesOf(scopes []Scope, clusterWide bool) []WatchScope {
	var out []WatchScope
	has := make(map[WatchScope]bool)
	for _, s := range scopes {
		namespaces := s.namespaces()
		if clusterWide {
			namespaces = []string{""}
		}
		for _, ns := range namespaces {
			w := WatchScope{Namespace: ns, LabelSelector: s.LabelSelector, FieldSelector: s.FieldSelector}
			if !has[w] {
				has[w] = true
				out = append(out, w)
			}
		}
	}
	return slices.DeleteFunc(out, func(w WatchScope) bool {
		whole := w
		whole.Namespace = ""
		return w != whole && has[whole]
	})
}
