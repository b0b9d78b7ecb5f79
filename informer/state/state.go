// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// State is the state of one list and watch.
type State string

const (
	// Waiting: not started yet.
	Waiting State = "Waiting"
	// NotServed: the server does not serve the kind; retried until it
	// does.
	NotServed State = "NotServed"
	// Forbidden: the server forbids the list or watch (403).
	Forbidden State = "Forbidden"
	// Unauthorized: the server rejects the credentials (401).
	Unauthorized State = "Unauthorized"
	// Listing: a list is being read, page by page.
	Listing State = "Listing"
	// Streaming: a streaming list is being read.
	Streaming State = "Streaming"
	// Live: the watch is open.
	Live State = "Live"
	// DecodingErrors: the watch is open, as in Live, but some objects of
	// the scope, or even their names, cannot be decoded. Reason has their
	// number and the first one.
	DecodingErrors State = "DecodingErrors"
	// DoesNotFit: the list does not fit into Options.MemoryBudget. It was
	// stopped and is tried again; what is cached stays readable. Reason has the
	// numbers.
	DoesNotFit State = "DoesNotFit"
	// Stale: the objects may be outdated; the server is unreachable or
	// answers with errors.
	Stale State = "Stale"
	// Misuse: the request is invalid; Reason says why.
	Misuse State = "Misuse"
	// Stopped: Run has ended.
	Stopped State = "Stopped"
)

// All returns all states.
func All() []State {
	return []State{
		Waiting, NotServed, Forbidden, Unauthorized, Listing, Streaming, Live,
		DecodingErrors, DoesNotFit, Stale, Misuse, Stopped,
	}
}

// Hint returns what a person can do about the state, or what it means, or an empty text.
// synced: the first list has arrived.
func (s State) Hint(synced bool) string {
	switch s {
	case Forbidden:
		return "grant list and watch of it by a Role or ClusterRole; it is asked for again"
	case Stale:
		if !synced {
			return "it has never been listed: reads fail, and readiness and controllers wait for it; the server is asked again"
		}
		return "what is known stays readable; the server is asked again"
	case DecodingErrors:
		return "correct the objects; Lister.Undecodable lists those that have a name"
	case DoesNotFit:
		return "keep less: some fields, compact, metadata only, a selector or fewer namespaces; or give more memory: Options.MemoryBudget, GOMEMLIMIT or the container's limit; it is tried again"
	case Unauthorized:
		return "check the credentials of the kubeconfig or the service account; they are tried again"
	}
	return ""
}

// Scope is the state of one list and watch at one moment.
type Scope struct {
	Scope listwatch.Scope
	// NamespaceSelector by which a handle selects namespaces: the other fields
	// then describe the watch of the namespaces, and Synced means that they are
	// known. Empty: a list and watch of the kind.
	NamespaceSelector string
	State             State
	// Reason is the server's last error, or what cannot be decoded, or why a
	// list is read and its progress; empty when Live.
	Reason string
	// Since is when the state began.
	Since time.Time
	// NextTry is when the server is asked again; zero if it is not waiting.
	NextTry time.Time
	// Synced: the first list is in the Indexer.
	Synced bool
	// Version is what the Indexer has reached.
	Version kube.Version
	// LastContact is when the server last sent anything.
	LastContact time.Time
	// Relists counts lists since the start by reason, except the first.
	Relists map[string]int
	// Watches opened since the start.
	Watches int
	// StreamFallbacks counts how often paged lists took over because the server
	// refused a streaming list or did not end it.
	StreamFallbacks int
	// PagedUntil is until when this scope, or all of the kind, use paged lists
	// for that reason. Zero: streaming lists are allowed.
	PagedUntil time.Time
	// Undecodable counts the scope's objects in quarantine.
	Undecodable int
	// Unreadable counts objects, in the last list and on the watch since, whose
	// names could not even be read. A list with such objects deletes nothing.
	Unreadable int
	// UnreadableReason is the error of the first one.
	UnreadableReason string
	// SharedWith names the informer whose watch feeds this scope, such as
	// "*v1.Deployment in all namespaces"; the state is that of its watch.
	// Empty: the scope has its own watch.
	SharedWith string
	// Anomalies of the watches since the start.
	Anomalies Anomalies
	// Audits of the scope since the start.
	Audits Audits
}

// String returns the state in one line, with the reason, a hint and the next
// try.
func (s Scope) String() string {
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
	if hint := s.State.Hint(s.Synced); hint != "" {
		text += " (" + hint + ")"
	}
	if !s.NextTry.IsZero() {
		text += ", next try " + s.NextTry.Format(time.RFC3339)
	}
	return text
}

// Informer is the state of one informer at one moment.
type Informer struct {
	Kind schema.GroupVersionKind
	// Synced: the first list of every scope is stored.
	Synced bool
	Scopes []Scope
	// Division of the objects into shards.
	Division Division
	// Fields that are kept of the objects, besides those that always are; nil:
	// all.
	Fields []string
	// Objects in the store, and those of them that cannot be decoded.
	Objects, Undecodable int
	// Bytes is the size of the objects as the server sent them, without dropped
	// managed fields.
	Bytes int64
	// Heap is the memory of the objects, in bytes, without what they share with
	// others and without what a transform removes; where the decoder does not
	// count, it is estimated from Bytes.
	Heap int64
	// Packed is the memory of the objects of a compact informer, except those
	// that are open; 0: the informer is not compact.
	Packed int64
	// PackedBecause is why objects that were held decoded have been packed; empty: they were not,
	// or are packed from the start.
	PackedBecause string
	// Opened counts how often a compact informer has decoded an object for a
	// reader. Hot is how many decoded objects it keeps for the next one.
	Opened uint64
	Hot    int
	// Tombstones of own deletions that the watch has not confirmed.
	Tombstones int
	// Forgotten counts the tombstones dropped beyond the limit, oldest first. A
	// late watch may show such an object once more.
	Forgotten uint64
	// IndexPanics counts panics of index functions. An index lacks the values
	// of those objects.
	IndexPanics uint64
	// Awaiting counts keys with an own write that is not visible yet: reads of
	// them return a *NotSettledError, or, where only the server can tell whether
	// the object is still in the scope, an older state.
	Awaiting int
	// NotOverlaid counts own writes that only the watch makes visible, because
	// the server's versions are not comparable.
	NotOverlaid uint64
	// Mutations of shared objects found by the MutationDetector.
	Mutations uint64
	// Waiting counts deltas not yet in the Indexer.
	Waiting  int
	Handlers []Handler
	// UnusedSince is since when no handler has received its events and nobody has read it, to about
	// the time between two snapshots. Zero: something uses it, or it is not synced. A manager leaves
	// it zero while the program does not work: it does not lead, or its controllers have ended fewer
	// than 100 reconciles since.
	UnusedSince time.Time
	// Scans are the reads of reconciles that have walked over more than 1,000 objects, because they
	// named neither a namespace nor an index; the first 16 lines of code.
	Scans []Scan
}

// Audits counts the results of comparing a scope with the server.
type Audits struct {
	// Done counts completed comparisons, Abandoned those that failed because of
	// the list, or because the watch did not reach its version in time.
	Done, Abandoned int
	// Differences found, and those Repaired by a list.
	Differences, Repaired int
	// Rewinds counts how often the server's versions went back and then passed
	// the scope's again. Other lists find them too.
	Rewinds int
	// Last is when the last audit completed; zero: none did.
	Last time.Time
}

// Handler is the state of one handler.
type Handler struct {
	Name    string
	Synced  bool
	Backlog int // waiting keys (EveryEvent: events)
	// BacklogBytes of an EveryEvent handler, counted as in HandlerOptions.
	BacklogBytes int64
	// Merged counts updates of an EveryEvent handler that were merged into an
	// earlier one, because its backlog, or the informer's, exceeded its bound.
	Merged    uint64
	Delivered uint64 // events passed to the handler
	Panics    uint64 // calls that panicked or ended their goroutine
	// Running is the duration of the present call so far; 0: none.
	Running time.Duration
	// Oldest is how long the first waiting event has waited, in milliseconds;
	// 0: nothing waits.
	Oldest time.Duration
	// Longest is the longest call so far, including the present one.
	Longest time.Duration
	// Goroutine is the number, in stack dumps, of the handler's goroutine; 0:
	// none yet.
	Goroutine uint64
}

// Slowest returns the handler whose first waiting event, or present call, is
// the oldest. ok: a handler has something to do.
func (s Informer) Slowest() (slowest Handler, ok bool) {
	for _, h := range s.Handlers {
		if h.lag() > slowest.lag() || !ok && (h.Running > 0 || h.Backlog > 0) {
			slowest, ok = h, true
		}
	}
	return slowest, ok
}

func (h Handler) lag() time.Duration { return max(h.Running, h.Oldest) }
