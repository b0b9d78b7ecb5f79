// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/compact"
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
	// Key names an object within its kind by Namespace, which is empty for
	// cluster-scoped kinds, and Name.
	Key = base.Key
	// Version is a resourceVersion as a number; clients may compare them since
	// Kubernetes 1.35 (KEP-5504). 0: unknown, or not a number.
	Version = base.Version
	// WatchScope is the extent of one list and watch:
	//
	//	Namespace      to watch; empty: all
	//	LabelSelector  and
	//	FieldSelector  as in Scope
	WatchScope = base.WatchScope

	// Compact says how an informer packs the objects that it holds; make it with
	// package informer/compact. Zero: it holds them decoded.
	//
	//	Codec            compresses; nil: objects are not packed
	//	HotObjects       and
	//	HotBytes         bound the decoded objects kept for the next read
	//	DictionaryBytes  is the size of the dictionary
	Compact = compact.Options

	// ListerWatcher is the source of an informer made by New; see package
	// listwatch.
	ListerWatcher[T Object] = listwatch.ListerWatcher[T]

	// IndexFunc returns the values under which an index finds obj. It may be
	// called concurrently and must not block.
	IndexFunc[T Object] = store.IndexFunc[T]

	// Written is the effect of a write of this process, for Observe. Dry runs are
	// never reported.
	//
	//	Kind, Key, UID  of the object; of a Touched write without a name: all
	//	                objects of the namespace may have changed
	//	Effect          of the write
	//	Version         in the answer; 0: unknown
	//	Object          of a Stored write, in any representation; the informer
	//	                copies it if it keeps it
	//	Decode          decodes the answer, for informers of another Go type
	Written = base.Written
	// WriteEffect is the effect of a write.
	WriteEffect = base.WriteEffect

	// Undecodable is an object in quarantine: it exists but cannot be decoded,
	// or the informer's transform refuses it. It is shared and must not be
	// modified.
	//
	//	Key, UID, Version  of the object
	//	Metadata           nil if it cannot be decoded either
	//	Since              when the quarantine of the key began
	//	Err                the *UndecodableError that Get of the key returns
	Undecodable = base.Undecodable
)

// Effects of a write.
const (
	// Stored: Object is the state after create, update, patch or apply, or
	// after a delete that waits for finalizers or the grace period.
	Stored = base.Stored
	// Removed: the object of this UID is gone.
	Removed = base.Removed
	// Touched: the object may have changed, and its state is not known: the
	// answer was lost, or does not show the object, as for a Scale or an Eviction.
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
	StateDoesNotFit     = base.StateDoesNotFit     // the list does not fit into Options.MemoryBudget
	StateDecodingErrors = base.StateDecodingErrors // as Live, but some objects of the scope cannot be decoded
	StateStale          = base.StateStale          // the objects may be outdated; the server is unreachable or answers with errors
	StateMisuse         = base.StateMisuse         // the request is invalid; the reason says why
	StateStopped        = base.StateStopped        // Run has ended
)

// Snapshots of informers.
type (
	// Snapshot is the state of an informer at one moment.
	//
	//	Kind          of the objects
	//	Synced        the first list of every scope is stored
	//	Scopes        the state of each list and watch
	//	Fields        kept of the objects, besides those that always are; nil: all
	//	Handlers      the state of each handler
	//	Objects       in the store
	//	Undecodable   those of them that cannot be decoded
	//	Bytes         of the objects as the server sent them, without dropped
	//	              managed fields
	//	Heap          memory of the objects in bytes, without what they share with
	//	              others; estimated where the decoder does not count
	//	Packed        memory of the objects of a compact informer that are not
	//	              open; 0: not compact
	//	Opened        how often a compact informer has decoded an object for a
	//	              reader; Hot is how many it keeps for the next one
	//	Waiting       deltas that are not stored yet
	//	Tombstones    of own deletions that the watch has not confirmed
	//	Forgotten     tombstones dropped beyond the limit, oldest first; a late
	//	              watch may show such an object once more
	//	Awaiting      keys with an own write that is not visible yet: reads of
	//	              them return a *NotSettledError, or, where only the server
	//	              knows whether the object is still in scope, an older state
	//	NotOverlaid   own writes that only the watch makes visible, because the
	//	              server's versions are not comparable
	//	IndexPanics   panics of index functions; the index lacks those objects
	//	Mutations     of shared objects, found by the MutationDetector
	//
	// Slowest returns the handler that has waited or run for the longest.
	Snapshot = base.Snapshot
	// ScopeState is the state of one list and watch at one moment. String
	// returns it in one line, with a hint. Counts begin with the start.
	//
	//	Scope              what is listed and watched
	//	NamespaceSelector  by which a handle selects namespaces: the other
	//	                   fields then describe the watch of the namespaces
	//	State              since Since
	//	Reason             the server's last error, what cannot be decoded, or
	//	                   why a list is read and its progress; empty when Live
	//	NextTry            when the server is asked again; zero: not waiting
	//	Synced             the first list is stored
	//	Version            that the store has reached
	//	LastContact        when the server last sent anything
	//	Relists            lists after the first, by reason
	//	Watches            opened
	//	StreamFallbacks    times that paged lists took over, because the server
	//	                   refused a streaming list or did not end it
	//	PagedUntil         until when paged lists are used for that reason
	//	Undecodable        objects in quarantine
	//	Unreadable         objects whose names could not be read, in the last
	//	                   list or since; such a list deletes nothing
	//	UnreadableReason   the error of the first of them
	//	SharedWith         the informer whose watch feeds this scope
	//	Anomalies, Audits  of the scope
	ScopeState = base.ScopeState
	// HandlerSnapshot is the state of one handler at one moment.
	//
	//	Name          as in HandlerOptions
	//	Synced        it has returned from all initial objects
	//	Backlog       waiting keys; with EveryEvent, events
	//	BacklogBytes  of them, with EveryEvent, as in HandlerOptions
	//	Merged        updates merged into an earlier one, with EveryEvent
	//	Delivered     events given to the handler
	//	Panics        calls that panicked or ended their goroutine
	//	Running       duration of the present call; 0: none
	//	Longest       duration of the longest call, the present one included
	//	Oldest        how long the first waiting event has waited
	//	Goroutine     its number in stack dumps; 0: none yet
	HandlerSnapshot = base.HandlerSnapshot
	// Anomalies counts what a correct server does not send. It does no harm;
	// high counts point to a problem in the server or a proxy before it.
	//
	//	Doubled     events that repeat a version of an object
	//	Late        events older than the known state, which are ignored
	//	Disordered  events after a newer version of another object, applied
	//	OtherKind   objects of another kind or apiVersion, dropped
	//	OutOfScope  objects of another namespace, or that do not match the
	//	            selectors; a held object that no longer matches leaves
	//	Older       lists older than the requested version, refused
	//
	// Total returns the sum.
	Anomalies = base.Anomalies
	// Audits counts the results of comparing a scope with the server.
	//
	//	Done         completed comparisons
	//	Abandoned    those that failed, or whose version the watch did not
	//	             reach in time
	//	Differences  found
	//	Repaired     differences repaired by a list
	//	Rewinds      times that the server's versions went back and then
	//	             passed the scope's again; other lists find them too
	//	Last         when the last audit completed; zero: none did
	Audits = base.Audits
)

// Errors. Recognize them with errors.AsType.
type (
	// UndecodableError means that the object of Kind and Key exists but cannot
	// be decoded, or the transform refuses it (Refused), because of Err. The next
	// version can heal it, or a retry of the transform. Last is the version of the
	// object that Get returns with this error; 0: none or unknown. Live: it was
	// read from the server, so no handler is notified when it heals.
	UndecodableError = base.UndecodableError
	// OutOfScopeError means that the namespace of Key is not watched for Kind.
	OutOfScopeError = base.OutOfScopeError
	// NamespaceError means that Key has a namespace although Kind is
	// cluster-scoped, or none although it is namespaced.
	NamespaceError = base.NamespaceError
	// NotSyncedError means that the first list of Kind has not arrived.
	NotSyncedError = base.NotSyncedError
	// NotSettledError means that the state of what is read, Key of Kind, is not
	// known after a write of this process: the answer was lost, or did not show
	// the object. A Key without a name is a list. The informer asks the server by
	// itself. Return the error from Reconcile, which runs again when the state is
	// known; elsewhere wait with WhenPassed.
	//
	//	When  calls a function once, when the state is known; nil: at once
	NotSettledError = base.NotSettledError
	// ReleasedError means that the handle of Kind was released, or the informer
	// has ended.
	ReleasedError = base.ReleasedError
	// NotServedError means that the server does not serve Kind. Err, which may
	// be nil, is from the server or discovery. Unlisted: the server serves it
	// but cannot list it.
	NotServedError = base.NotServedError
	// TooLargeError means that an answer has more than Limit bytes, or that to
	// decode it would allocate at least Decoded bytes, if that is not 0, and
	// Limit is what is allowed.
	TooLargeError = encoding.TooLargeError
	// UnexpectedAnswerError means that an answer is not from the Kubernetes
	// API, such as the page of a proxy, or is of another kind. It has the URL,
	// the Code, the ContentType and the start of the Body, and may have in Err
	// what is wrong with it.
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
