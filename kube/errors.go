// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NotServedError means that the server does not serve the kind, for instance
// before its CustomResourceDefinition is installed.
type NotServedError struct {
	Kind schema.GroupVersionKind
	// Unlisted: the server serves it, but cannot list it, so no informer can have it.
	Unlisted bool
	Err      error // from the server or discovery; may be nil
}

func (e *NotServedError) Error() string {
	if e.Unlisted {
		return fmt.Sprintf("list %s: the API server serves this kind, but cannot list it, so it cannot be cached; read it from the server", e.Kind)
	}
	return fmt.Sprintf("find resource of kind %s: not served by the API server (is its CustomResourceDefinition installed?): %v", e.Kind, e.Err)
}

func (e *NotServedError) Unwrap() error { return e.Err }

// UndecodableError means that the object exists, but is not a valid object of
// its type, or that the informer's transform refuses it. The next version can
// heal it; so can the transform, which is retried.
type UndecodableError struct {
	Kind schema.GroupVersionKind
	Key  Key
	// Refused: the transform refuses the object.
	Refused bool
	// Last is the version of the object that Get returns with this error: the
	// last one that the transform accepted. 0: none, or its version is unknown.
	Last Version
	// Live: read from the server, not from an informer, so no handler is
	// notified when the object heals.
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

// OutOfScopeError means that the lister does not cover the key's namespace, so
// it does not know whether the object exists.
type OutOfScopeError struct {
	Kind schema.GroupVersionKind
	Key  Key
}

func (e *OutOfScopeError) Error() string {
	return fmt.Sprintf("read %s: namespace %q is outside of what the informer watches; add it to the informer's Scope", whatIsRead(e.Kind, e.Key), e.Key.Namespace)
}

// NamespaceError means that the read has a namespace although the kind is
// cluster-scoped, or none although it is namespaced. No object can have such a
// key, so it is a programming error; apierrors.IsNotFound is false for it.
type NamespaceError struct {
	Kind schema.GroupVersionKind
	Key  Key // without a name for a list
}

func (e *NamespaceError) Error() string {
	if e.Key.Namespace == "" {
		return fmt.Sprintf("read %s: kind %s is namespaced; set the namespace of the key", whatIsRead(e.Kind, e.Key), e.Kind.Kind)
	}
	return fmt.Sprintf("read %s: kind %s is cluster-scoped; leave the namespace %q out", whatIsRead(e.Kind, e.Key), e.Kind.Kind, e.Key.Namespace)
}

// whatIsRead returns the kind with the key, or for a list with its namespace.
func whatIsRead(kind schema.GroupVersionKind, key Key) string {
	switch {
	case key.Name == "":
		return fmt.Sprintf("%s in %q", kind.Kind, key.Namespace)
	case key.Namespace == "":
		return kind.Kind + " " + key.Name
	}
	return kind.Kind + " " + key.String()
}

// NotSyncedError means that the first list has not arrived, so the store cannot
// answer.
type NotSyncedError struct {
	Kind schema.GroupVersionKind
}

func (e *NotSyncedError) Error() string {
	return fmt.Sprintf("read %s: the informer has not synced; a Reconcile starts when the sources of its controller have synced, "+
		"so give the controller a source of this kind with Watch, such as source.Mapped; elsewhere wait for the informer's Synced channel", e.Kind.Kind)
}

// NotSettledError means that the state of what is read is not known after a write of this
// process: the answer was lost, or did not show the object. The informer asks the server
// by itself; return the error from Reconcile, which runs again as soon as the state is
// known.
type NotSettledError struct {
	Kind schema.GroupVersionKind
	Key  Key // what is read; without a name: a list
	// When calls do once, when the state is known. Nil: at once.
	When func(do func()) (stop func())
}

func (e *NotSettledError) Error() string {
	what := whatIsRead(e.Kind, e.Key)
	if e.Key == (Key{}) {
		what = e.Kind.Kind + " in all namespaces"
	}
	return fmt.Sprintf("read %s: the effect of an own write is not known yet, and the server is being asked; return this error from Reconcile to run again when it is", what)
}

// WhenPassed calls do once, when the state is known; at once if it already is. It does not
// block. stop cancels the wait and may be called more than once.
func (e *NotSettledError) WhenPassed(do func()) (stop func()) {
	if e.When == nil {
		do()
		return func() {}
	}
	return e.When(do)
}

// ReleasedError means that the handle was released.
type ReleasedError struct {
	Kind schema.GroupVersionKind
}

func (e *ReleasedError) Error() string {
	return fmt.Sprintf("use informer of %s: the handle was released; ask for another one with informer.For", e.Kind.Kind)
}

// TooLargeError means that a page or frame is too large to read, or that it or
// an object in it would take too much memory when decoded.
type TooLargeError struct {
	Limit int64 // bytes
	// Decoded is the least that decoding would allocate, in bytes; 0: Limit is
	// for reading.
	Decoded int64
}

func (e *TooLargeError) Error() string {
	if e.Decoded > 0 {
		return fmt.Sprintf("decoding takes about %d bytes of memory or more, and %d are allowed; nothing was decoded (few bytes become much in lists of empty elements: find what writes them)", e.Decoded, e.Limit)
	}
	return fmt.Sprintf("more than %d bytes in one page or frame, which is not read into memory (an API server stores no object of that size: find what sends it)", e.Limit)
}

// TooLarge returns Limit and Decoded.
func (e *TooLargeError) TooLarge() (limit, decoded int64) { return e.Limit, e.Decoded }

// UnexpectedAnswerError means that the answer is not from the Kubernetes API,
// such as the page of a proxy, or is an object of another kind.
type UnexpectedAnswerError struct {
	URL         string
	Code        int
	ContentType string
	Body        string // its start
	Err         error  // what is wrong with it; may be nil
}

func (e *UnexpectedAnswerError) Error() string {
	text := fmt.Sprintf("unexpected answer from %s (%d, content type %q): %q", e.URL, e.Code, e.ContentType, e.Body)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *UnexpectedAnswerError) Unwrap() error { return e.Err }
