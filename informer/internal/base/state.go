// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package base

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// State says where one list and watch stands.
type State string

const (
	// StateWaiting: not started yet.
	StateWaiting State = "Waiting"
	// StateNotServed: the server does not serve the kind; tried again until it does.
	StateNotServed State = "NotServed"
	// StateForbidden: the server refuses the list or watch (403).
	StateForbidden State = "Forbidden"
	// StateUnauthorized: the server does not accept who we are (401).
	StateUnauthorized State = "Unauthorized"
	// StateListing: a list is being read, page by page.
	StateListing State = "Listing"
	// StateStreaming: a streaming list is being read.
	StateStreaming State = "Streaming"
	// StateLive: the watch is open.
	StateLive State = "Live"
	// StateDecodingErrors: the watch is open, as in Live, but some objects of the
	// scope cannot be decoded, or not even their names be read. Reason says how
	// many, and names the first.
	StateDecodingErrors State = "DecodingErrors"
	// StateStale: the objects are from before; the server cannot be reached or
	// answers with errors.
	StateStale State = "Stale"
	// StateMisuse: what was asked for cannot be; the reason says why.
	StateMisuse State = "Misuse"
	// StateStopped: Run has ended.
	StateStopped State = "Stopped"
)

// States are all that there are.
func States() []State {
	return []State{
		StateWaiting, StateNotServed, StateForbidden, StateUnauthorized, StateListing, StateStreaming, StateLive,
		StateDecodingErrors, StateStale, StateMisuse, StateStopped,
	}
}

// HintOf is what a person can do where the server's words do not say it.
func HintOf(s State) string {
	switch s {
	case StateForbidden:
		return "grant list and watch of it by a Role or ClusterRole; it is asked for again"
	case StateStale:
		return "what is known stays readable; the server is asked again"
	case StateDecodingErrors:
		return "correct the objects; Lister.Undecodable lists those that have a name"
	case StateUnauthorized:
		return "check the credentials of the kubeconfig or the service account; they are tried again"
	}
	return ""
}

// ScopeState is the state of one list and watch at one moment.
type ScopeState struct {
	Scope WatchScope
	// NamespaceSelector by which a handle chooses namespaces: all else is of the
	// watch of those namespaces then, and Synced says that they are known. Empty:
	// it is a list and watch of the kind.
	NamespaceSelector string
	State             State
	// Reason is the last error in the server's words, or what cannot be decoded, or
	// why a list is read and how far; empty when Live.
	Reason string
	// Since when the state holds.
	Since time.Time
	// NextTry is when the server is asked again; zero when it is not waiting.
	NextTry time.Time
	// Synced: the first list is in the Indexer.
	Synced bool
	// Version that the Indexer has reached.
	Version Version
	// LastContact is when the server last sent anything.
	LastContact time.Time
	// Relists by reason since the start; the first list is not counted.
	Relists map[string]int
	// Watches opened since the start.
	Watches int
	// StreamFallbacks counts how often paged lists took over, because the server
	// refused a streaming list or did not end it.
	StreamFallbacks int
	// PagedUntil is until when lists go by pages because of that, found out by
	// this scope or by another of the kind. Zero: they are not held to pages.
	PagedUntil time.Time
	// Undecodable objects of the scope, which are in quarantine.
	Undecodable int
	// Unreadable objects in the last list and on the watch since: not even their
	// names could be read. While a list has some, it deletes nothing.
	Unreadable int
	// UnreadableReason of the first of them.
	UnreadableReason string
	// SharedWith is whose watch feeds this scope, such as "*v1.Deployment in all
	// namespaces": the state is that of the watch. Empty: it has one of its own.
	SharedWith string
	// Anomalies of the watches since the start.
	Anomalies Anomalies
	// Audits of the scope since the start.
	Audits Audits
}

// String is the state in one line, with the reason, what to do and the next try.
func (s ScopeState) String() string {
	scope := s.Scope.String()
	if s.NamespaceSelector != "" {
		scope = fmt.Sprintf("in namespaces with labels %q", s.NamespaceSelector)
	}
	text := fmt.Sprintf("%s: %s since %s", scope, s.State, s.Since.Format(time.RFC3339))
	if s.SharedWith != "" {
		text += ", by the watch of " + s.SharedWith
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	if hint := HintOf(s.State); hint != "" {
		text += " (" + hint + ")"
	}
	if !s.NextTry.IsZero() {
		text += ", next try " + s.NextTry.Format(time.RFC3339)
	}
	return text
}

// Snapshot is one informer at one moment.
type Snapshot struct {
	Kind schema.GroupVersionKind
	// Synced: the first list of every scope is stored.
	Synced bool
	Scopes []ScopeState
	// Objects held, and of these such that cannot be decoded.
	Objects, Undecodable int
	// Bytes of the objects as the server sent them, without managed fields that are
	// dropped. In memory an object takes more, some two to four times as much, or
	// less where Transform takes parts away.
	Bytes int64
	// Tombstones of own deletions that the watch has not confirmed.
	Tombstones int
	// Forgotten tombstones: there were too many, the oldest went first. A late
	// watch may show such an object once more.
	Forgotten uint64
	// IndexPanics of index functions: objects that an index lacks values of.
	IndexPanics uint64
	// Awaiting counts the keys with an own write that is not shown yet, because
	// only the server can say whether the object still is in the scope.
	Awaiting int
	// NotOverlaid counts own writes that only the watch shows, because the
	// server gives no versions that can be compared.
	NotOverlaid uint64
	// Mutations of shared objects that the MutationDetector has found.
	Mutations uint64
	// Waiting deltas on their way to the Indexer.
	Waiting  int
	Handlers []HandlerSnapshot
}

// Audits counts what came of comparing a scope with the server.
type Audits struct {
	// Done: the scope was compared. Abandoned: it was not, since the list failed
	// or the watch did not reach its version in time.
	Done, Abandoned int
	// Differences found, and of these Repaired by a list.
	Differences, Repaired int
	// Rewinds: the server's versions had gone back, and were past the scope's again.
	// Lists that are no audits find them too.
	Rewinds int
	// Last is when the last one was done; zero: none was.
	Last time.Time
}

// HandlerSnapshot says how far one handler is.
type HandlerSnapshot struct {
	Name    string
	Synced  bool
	Backlog int // keys (EveryEvent: events) waiting
	// BacklogBytes of an EveryEvent handler, as its option of that name counts
	// them.
	BacklogBytes int64
	// Merged is how many updates of an EveryEvent handler went into an earlier one,
	// because its backlog, or what waited to be stored, had passed its bound.
	Merged    uint64
	Delivered uint64 // events given to the handler
	Panics    uint64 // calls that panicked or ended their goroutine
	// Running is how long the present call has been running; 0: there is none.
	Running time.Duration
	// Oldest is how long the first that waits has been waiting, to the
	// millisecond; 0: nothing waits.
	Oldest time.Duration
	// Longest call so far, the present one included.
	Longest time.Duration
	// Goroutine that calls the handler, by its number in stack dumps; 0: none yet.
	Goroutine uint64
}

// Slowest is the handler that is behind the most: the one whose first waiting
// event, or present call, is the oldest. ok: there is one that has anything to
// do.
func (s Snapshot) Slowest() (slowest HandlerSnapshot, ok bool) {
	for _, h := range s.Handlers {
		if h.lag() > slowest.lag() || !ok && (h.Running > 0 || h.Backlog > 0) {
			slowest, ok = h, true
		}
	}
	return slowest, ok
}

// lag is how far the handler is behind.
func (h HandlerSnapshot) lag() time.Duration { return max(h.Running, h.Oldest) }
