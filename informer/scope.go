// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

// Scope is the part of a kind that an informer covers. The zero Scope is the
// whole kind in all namespaces.
type Scope struct {
	// Namespaces are watched one by one, each with a list and watch of its own.
	// Empty: all namespaces, or the kind is of cluster scope.
	Namespaces []string
	// LabelSelector in the form of kubectl -l. Empty: no selection.
	LabelSelector string
	// FieldSelector in the form of kubectl --field-selector. Empty: no selection.
	FieldSelector string
}

// WatchScope is what one list and watch covers: a Scope with one namespace.
type WatchScope struct {
	// Namespace that is watched. Empty: all.
	Namespace string
	// LabelSelector and FieldSelector as in Scope.
	LabelSelector, FieldSelector string
}

// ScopeID numbers the watch scopes of one informer, from 0.
type ScopeID uint32
