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

// Types of the informer's parts that users need.
type (
	// Object is a pointer to a Kubernetes API type: a metav1.Object and a
	// runtime.Object.
	Object = base.Object
	// Key names an object within its kind. Namespace is empty for
	// cluster-scoped kinds.
	Key = base.Key
	// Version is a resourceVersion as a number; clients may compare them since
	// Kubernetes 1.35 (KEP-5504). 0: unknown, or not a number.
	Version = base.Version
	// WatchScope is the extent of one list and watch: Namespace (empty: all),
	// LabelSelector and FieldSelector as in Scope.
	WatchScope = base.WatchScope

	// ListerWatcher is the source of an informer made by New; see package
	// listwatch.
	ListerWatcher[T Object] = listwatch.ListerWatcher[T]

	// IndexFunc returns the values under which an index finds obj. It may be
	// called concurrently and must not block.
	IndexFunc[T Object] = store.IndexFunc[T]

	// Written is the API server's answer to a write of this process, for
	// Observe: Kind, Effect, Key, UID, Version and Object.
	Written = base.Written
	// WriteEffect is the effect of a write: Stored, Removed or Touched.
	WriteEffect = base.WriteEffect

	// Undecodable is an object in quarantine: it exists but cannot be decoded,
	// or the informer's transform refuses it. It has the Key, UID and Version,
	// the Metadata if readable, Since and Err.
	Undecodable = base.Undecodable
)

// Effects of a write.
const (
	Stored  = base.Stored
	Removed = base.Removed
	Touched = base.Touched
)

// State is the state of one list and watch.
type State = base.State

// States of a list and watch.
const (
	StateWaiting        = base.StateWaiting        // not started yet
	StateNotServed      = base.StateNotServed      // the server does not serve the kind; retried until it does
	StateForbidden      = base.StateForbidden      // the server forbids the list or watch (403)
	StateUnauthorized   = base.StateUnauthorized   // the server rejects the credentials (401)
	StateListing        = base.StateListing        // a list is being read, page by page
	StateStreaming      = base.StateStreaming      // a streaming list is being read
	StateLive           = base.StateLive           // the watch is open
	StateDecodingErrors = base.StateDecodingErrors // as Live, but some objects of the scope cannot be decoded
	StateStale          = base.StateStale          // the objects may be outdated; the server is unreachable or answers with errors
	StateMisuse         = base.StateMisuse         // the request is invalid; the reason says why
	StateStopped        = base.StateStopped        // Run has ended
)

// Snapshots of informers.
type (
	// Snapshot is the state of an informer at one moment: whether it has
	// synced, its Scopes, its objects, bytes and tombstones, and its Handlers.
	Snapshot = base.Snapshot
	// ScopeState is the state of one list and watch at one moment: State,
	// Reason, since when, the Version reached, and counts of relists, watches,
	// anomalies and audits.
	ScopeState = base.ScopeState
	// HandlerSnapshot is the state of one handler at one moment: what waits for
	// it, for how long, and what it has received.
	HandlerSnapshot = base.HandlerSnapshot
	// Anomalies counts events of watches that a correct server does not send.
	Anomalies = base.Anomalies
	// Audits counts the results of comparing a scope with the server.
	Audits = base.Audits
)

// Errors. Recognize them with errors.AsType.
type (
	// UndecodableError means that the object exists but cannot be decoded, or the
	// transform refuses it.
	UndecodableError = base.UndecodableError
	// OutOfScopeError means that the namespace is not watched.
	OutOfScopeError = base.OutOfScopeError
	// NamespaceError means that a namespace was given for a cluster-scoped
	// kind, or none for a namespaced one.
	NamespaceError = base.NamespaceError
	// NotSyncedError means that the first list has not arrived.
	NotSyncedError = base.NotSyncedError
	// ReleasedError means that the handle was released, or the informer has ended.
	ReleasedError = base.ReleasedError
	// NotServedError means that the server does not serve the kind.
	NotServedError = base.NotServedError
	// TooLargeError means that an answer exceeds the limit for reading; it has
	// the limit.
	TooLargeError = encoding.TooLargeError
	// UnexpectedAnswerError means that an answer is not from the Kubernetes
	// API, such as the page of a proxy.
	UnexpectedAnswerError = restclient.UnexpectedAnswerError
)

// States returns all states.
func States() []State { return base.States() }

// KeyOf returns the key of obj.
func KeyOf(obj metav1.Object) Key { return base.KeyOf(obj) }

// ParseVersion parses a resourceVersion; 0 if it is not a number.
func ParseVersion(resourceVersion string) Version { return base.ParseVersion(resourceVersion) }

// Copy returns a deep copy of obj. All readers share the objects that a Lister
// returns: copy before you modify one.
func Copy[T Object](obj T) T { return base.Copy(obj) }
