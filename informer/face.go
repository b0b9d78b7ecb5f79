// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// What the parts of the informer share, and users see.
type (
	// Object is what an informer holds: a pointer to a Kubernetes API type, that
	// is, a metav1.Object and a runtime.Object.
	Object = base.Object
	// Key names an object within its kind. Namespace is empty for kinds of
	// cluster scope.
	Key = base.Key
	// Version is a resourceVersion as a number, which Kubernetes lets clients
	// compare since 1.35 (KEP-5504). 0: unknown, or not a number.
	Version = base.Version
	// WatchScope is what one list and watch covers: Namespace (empty: all),
	// LabelSelector and FieldSelector as in Scope.
	WatchScope = base.WatchScope

	// ListerWatcher is where an informer of New takes its objects from; see package
	// listwatch.
	ListerWatcher[T Object] = listwatch.ListerWatcher[T]

	// IndexFunc returns the values under which an index has obj. It is called by
	// several goroutines at a time, and must not block.
	IndexFunc[T Object] = store.IndexFunc[T]

	// Written is what the API server answered to a write of this process, for
	// Observe: Kind, Effect, Key, UID, Version and Object of the answer.
	Written = base.Written
	// WriteEffect says what an answered write did: Stored, Removed or Touched.
	WriteEffect = base.WriteEffect

	// Undecodable is an object in quarantine: it exists, but what the server holds
	// cannot be decoded, or the informer's transform refuses it. It has the Key,
	// UID and Version, the Metadata where that could be read, Since and Err.
	Undecodable = base.Undecodable
)

// Effects of an answered write.
const (
	Stored  = base.Stored
	Removed = base.Removed
	Touched = base.Touched
)

// State says where one list and watch stands.
type State = base.State

// States of a list and watch.
const (
	StateWaiting        = base.StateWaiting        // not started yet
	StateNotServed      = base.StateNotServed      // the server does not serve the kind; tried again until it does
	StateForbidden      = base.StateForbidden      // the server refuses the list or watch (403)
	StateUnauthorized   = base.StateUnauthorized   // the server does not accept the credentials (401)
	StateListing        = base.StateListing        // a list is being read, page by page
	StateStreaming      = base.StateStreaming      // a streaming list is being read
	StateLive           = base.StateLive           // the watch is open
	StateDecodingErrors = base.StateDecodingErrors // as Live, but some objects of the scope cannot be decoded
	StateStale          = base.StateStale          // the objects are from before: the server cannot be reached or answers with errors
	StateMisuse         = base.StateMisuse         // what was asked for cannot be; the reason says why
	StateStopped        = base.StateStopped        // Run has ended
)

// Snapshots of informers.
type (
	// Snapshot is one informer at one moment: whether it has synced, its Scopes,
	// the objects, bytes and tombstones it holds, and its Handlers.
	Snapshot = base.Snapshot
	// ScopeState is one list and watch at one moment: its State, the Reason for
	// it, since when, the Version reached, and counts of relists, watches,
	// anomalies and audits.
	ScopeState = base.ScopeState
	// HandlerSnapshot is one handler at one moment: what waits for it, for how
	// long, and what it was given.
	HandlerSnapshot = base.HandlerSnapshot
	// Anomalies counts events of watches that a correct server does not send.
	Anomalies = base.Anomalies
	// Audits counts what came of comparing a scope with the server.
	Audits = base.Audits
)

// Errors. Use errors.AsType to recognize them.
type (
	// UndecodableError: the object exists and cannot be decoded, or the transform
	// refuses it.
	UndecodableError = base.UndecodableError
	// OutOfScopeError: the namespace is not watched, so nothing is known of it.
	OutOfScopeError = base.OutOfScopeError
	// NamespaceError: a namespace was given for a cluster-scoped kind, or none for
	// a namespaced one.
	NamespaceError = base.NamespaceError
	// NotSyncedError: the first list has not arrived.
	NotSyncedError = base.NotSyncedError
	// ReleasedError: the handle was released, or the informer has ended.
	ReleasedError = base.ReleasedError
	// NotServedError: the server does not serve the kind.
	NotServedError = base.NotServedError
	// TooLargeError: an answer is larger than may be read; it has the limit.
	TooLargeError = encoding.TooLargeError
	// UnexpectedAnswerError: an answer is not of the Kubernetes API, such as the
	// page of a proxy.
	UnexpectedAnswerError = restclient.UnexpectedAnswerError
)

// States are all that there are.
func States() []State { return base.States() }

// KeyOf returns the key of obj.
func KeyOf(obj metav1.Object) Key { return base.KeyOf(obj) }

// ParseVersion reads a resourceVersion; 0 if it is not a number.
func ParseVersion(resourceVersion string) Version { return base.ParseVersion(resourceVersion) }

// Copy returns a deep copy of obj. What a Lister returns is shared by all its
// readers: copy it before changing it.
func Copy[T Object](obj T) T { return base.Copy(obj) }
