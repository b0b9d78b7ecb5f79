// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package base

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NotServedError: the server does not serve the kind, as before its
// CustomResourceDefinition is installed.
type NotServedError struct {
	Kind schema.GroupVersionKind
	Err  error // the server's or discovery's words; may be nil
}

func (e *NotServedError) Error() string {
	return fmt.Sprintf("find resource of kind %s: not served by the API server (is its CustomResourceDefinition installed?): %v", e.Kind, e.Err)
}

func (e *NotServedError) Unwrap() error { return e.Err }

// UndecodableError: the object exists, but what the server holds is not a
// valid object of its type, or the informer's transform refuses it. It heals with
// the object's next version; where the transform refuses it, also when the
// transform, which is tried again, accepts it.
type UndecodableError struct {
	Kind schema.GroupVersionKind
	Key  Key
	// Refused: the transform refuses the object.
	Refused bool
	// Last is the version of the object that Get returns with this error: the last
	// that the transform has accepted. 0: there is none, or its version is unknown.
	Last Version
	// Live: read from the server and not from an informer, so that no handler
	// need hear of the healing.
	Live bool
	Err  error
}

func (e *UndecodableError) Error() string {
	last := ""
	if e.Last != 0 {
		last = fmt.Sprintf(" (the state before, at version %s, is still in lists)", e.Last)
	}
	return fmt.Sprintf("read %s %s: the object cannot be decoded: %v%s", e.Kind.Kind, e.Key, e.Err, last)
}

func (e *UndecodableError) Unwrap() error { return e.Err }

// OutOfScopeError: the lister does not cover the key's namespace, so it cannot
// say whether the object exists.
type OutOfScopeError struct {
	Kind schema.GroupVersionKind
	Key  Key
}

func (e *OutOfScopeError) Error() string {
	return fmt.Sprintf("read %s: namespace %q is outside of what the informer watches; add it to the informer's Scope", whatIsRead(e.Kind, e.Key), e.Key.Namespace)
}

// NamespaceError: the read has a namespace, and the kind is cluster-scoped, or it
// has none, and the kind is namespaced. No object can have such a key, so the read
// is a mistake of the program; apierrors.IsNotFound does not hold for it.
type NamespaceError struct {
	Kind schema.GroupVersionKind
	Key  Key // without a name: of a list
}

func (e *NamespaceError) Error() string {
	if e.Key.Namespace == "" {
		return fmt.Sprintf("read %s: kind %s is namespaced; set the namespace of the key", whatIsRead(e.Kind, e.Key), e.Kind.Kind)
	}
	return fmt.Sprintf("read %s: kind %s is cluster-scoped; leave the namespace %q out", whatIsRead(e.Kind, e.Key), e.Kind.Kind, e.Key.Namespace)
}

// whatIsRead is the kind with the key, or of a list with its namespace.
func whatIsRead(kind schema.GroupVersionKind, key Key) string {
	switch {
	case key.Name == "":
		return fmt.Sprintf("%s in %q", kind.Kind, key.Namespace)
	case key.Namespace == "":
		return kind.Kind + " " + key.Name
	}
	return kind.Kind + " " + key.String()
}

// NotSyncedError: the first list has not arrived, so nothing can be said of
// the object.
type NotSyncedError struct {
	Kind schema.GroupVersionKind
}

func (e *NotSyncedError) Error() string {
	return fmt.Sprintf("read %s: the informer has not synced; wait for its Synced channel, or read from a Reconcile, which starts after it", e.Kind.Kind)
}

// ReleasedError: the handle was released, so it sees nothing any more.
type ReleasedError struct {
	Kind schema.GroupVersionKind
}

func (e *ReleasedError) Error() string {
	return fmt.Sprintf("use informer of %s: the handle was released; ask for another one with informer.For", e.Kind.Kind)
}
