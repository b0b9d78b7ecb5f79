// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
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

// WatchScope is what one list and watch covers: a Scope with one namespace.
type WatchScope struct {
	// Namespace that is watched. Empty: all.
	Namespace string
	// LabelSelector and FieldSelector as in Scope.
	LabelSelector, FieldSelector string
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

// String is the scope in words, for logs and errors.
func (s WatchScope) String() string {
	where := "in all namespaces"
	if s.Namespace != "" {
		where = fmt.Sprintf("in namespace %q", s.Namespace)
	}
	for _, sel := range []struct{ name, text string }{{"labels", s.LabelSelector}, {"fields", s.FieldSelector}} {
		if sel.text != "" {
			where += fmt.Sprintf(" with %s %q", sel.name, sel.text)
		}
	}
	return where
}

// membership is whether an object belongs to a scope.
type membership uint8

const (
	outside membership = iota
	inside
	undecided // the server alone can evaluate the field selector
)

// matcher evaluates a WatchScope against objects.
type matcher struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

// newMatcher parses the selectors of s.
func newMatcher(s WatchScope) (matcher, error) {
	byLabel, err := labels.Parse(s.LabelSelector)
	if err != nil {
		return matcher{}, fmt.Errorf("watch %s: parse label selector: %w", s, err)
	}
	byField, err := fields.ParseSelector(s.FieldSelector)
	if err != nil {
		return matcher{}, fmt.Errorf("watch %s: parse field selector: %w", s, err)
	}
	return matcher{namespace: s.Namespace, labels: byLabel, fields: byField}, nil
}

// match says whether obj belongs to the scope. Of fields only metadata.name
// and metadata.namespace are known on this side. A namespace does not divide a
// kind of cluster scope.
func (m matcher) match(obj Object) membership {
	if ns := obj.GetNamespace(); m.namespace != "" && ns != "" && ns != m.namespace {
		return outside
	}
	if !m.labels.Matches(labels.Set(obj.GetLabels())) {
		return outside
	}
	known := fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()}
	result := inside
	for _, r := range m.fields.Requirements() {
		if !known.Has(r.Field) {
			result = undecided
			continue
		}
		equal := known[r.Field] == r.Value
		if equal == strings.HasPrefix(string(r.Operator), "!") {
			return outside
		}
	}
	return result
}

// ScopeID numbers the watch scopes of one informer, from 0.
type ScopeID uint32
