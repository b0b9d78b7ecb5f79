// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package informer keeps a local copy of the objects of a kind, always some
// real state of the server or newer, and notifies handlers of changes.
//
//	API server
//	   │  list, watch                               listwatch, internal/restclient, gate
//	   ▼
//	Reflector        decisions in internal/steps    one goroutine per scope
//	   │  Delta
//	   ▼
//	DeltaFIFO        in order (internal/store)      lock: fifo
//	   │  batch of Deltas
//	   ▼
//	dispatch         first the store, then tell     one goroutine
//	   ├──▶ Indexer ◀── Lister ◀── readers          lock: indexer
//	   │       ▲ own writes (Observe)
//	   ▼  Event
//	listener         coalescing backlog             one goroutine per handler
//	   ▼
//	your handler
//
// A SharedInformerFactory has one informer per kind and representation. A scope
// is one list and watch: a namespace or all of them, with a label and a field
// selector. For returns a handle that sees the union of its own scopes.
//
// # Representations
//
// For gives the objects of a kind as their Go type, ForKind as unstructured,
// ForMetadata only their metadata. Each representation has its own store and
// handlers. A metadata scope whose objects are also watched in full shares that
// watch, and the maps and strings of its objects:
//
//	Reflector ──▶ tee ──▶ DeltaFIFO ──▶ … the full objects
//	               └─tap─▶ DeltaFIFO ──▶ … their metadata
//
// A scope that joins later gets what the full one holds, without a list. When
// the full one ends, it continues from there with its own watch.
//
// # Promises
//
//	I1  a key never goes back to an older version, except at a declared epoch
//	I2  the store changes before any handler is called
//	I3  per scope, after each batch the store equals the server's state at the
//	    resourceVersion it reports, except for keys where an own write is newer
//	I4  the last event of a key that a handler gets leads to the current state; a
//	    changed UID is a deletion and an addition
//	I5  a relist finds what a broken watch missed
//	I6  an unchanged object is not delivered again, except to a handler that asks
//	    for it with Relists
//	I7  a blocked level-triggered handler costs memory bounded by the number of
//	    objects, and delays no other handler
//	I8  an object that cannot be decoded, or that the transform refuses, affects
//	    only itself, and reads of its key say so
//	I9  a sync completes, or the state says why it has not; no server can hang it
//	    silently
//	I10 after the end, or the last release, every goroutine, connection and object
//	    has been freed
//
// # Handles
//
// Handles are counted. Release ends the handlers of a handle, and each scope
// that no other handle holds, with its watch and its objects. The last release
// ends the informer; the factory keeps running. SetScopes changes what a handle
// covers at any time: Listers see it at once, and handlers get deletions for
// objects that leave and additions for those that come. A scope with a
// NamespaceSelector follows the namespaces of the cluster in the same way. Only
// For and SetScopes start watches; a read never does.
//
// # Load on the server
//
// A factory has one gate for its server. A kind refused with 429 or 503 waits for
// its Retry-After; other kinds do not wait with it. When the server names a
// priority level in the refusal, the kinds of that level are paced. When several
// kinds are refused and none is served, or there is no connection, all requests
// are paced to fewer than ten a second until answers arrive. Watches go first, then
// relists, then first lists. Options.ConcurrentLists bounds the lists in flight;
// the smallest relist goes first, and a list without an answer for a second holds
// up no other. Kinds whose last request failed have separate places. A request
// that waits says so in its ScopeState. Writes and leases use other clients and
// do not pass this gate.
//
// # Watches without progress
//
// A watch that ends cleanly and has delivered something new, or has lived for two
// seconds, is reopened at once from its last version, up to ten times in a row and
// then once a second. A watch that delivers nothing is reopened with backoff, and
// after a while lists alternate with it: the cache then follows by lists alone,
// and the ScopeState says why. A list older than the version asked for is refused.
// Every list ends: its deadline moves with the objects that arrive, not with the
// bytes.
//
// # Quarantine
//
// An object that cannot be decoded, or that the transform refuses, is in
// quarantine until its next version: its key, metadata and error are kept. Get of
// the key returns an *UndecodableError, All leaves it out, and Lister.Undecodable
// lists it. A handler with HandlerOptions.Undecodable gets Undecoded for
// each such version, Updated when the object heals if the handler was given
// an object of the same UID before, else Added, and Deleted at its end.
// Old of that deletion is zero if the handler was never given an object;
// Event.Undecodable then has the metadata. Other handlers keep the last state they
// were given until the object heals or ends. A scope with such objects is in
// StateDecodingErrors, and otherwise works as a live one.
//
// What the transform refuses is kept as it was decoded and retried with backoff,
// in a goroutine of the informer, so that it can heal without a new version. Until
// then lists and indexes have the last state that the transform accepted, and Get
// returns that state together with the *UndecodableError. Own writes that the
// transform refuses are treated the same way.
//
// # Objects that were not asked for
//
// An object of another kind, apiVersion or namespace than asked for, or one that
// does not match the selectors, is dropped and does not affect the object of its
// name. ScopeState.Anomalies counts such objects, and the log names the first.
//
// # Lost events
//
// If a server loses an event, the store is wrong until the object changes again.
// With Options.Audit each scope is compared from time to time with a list at that
// list's resourceVersion. Differences are counted and logged, and the scope is
// relisted, in a new epoch where the server has objects in older versions than
// were seen. Any list that shows such objects leads there too, once a second list
// confirms it. Own writes and changes that arrive during an audit do not count as
// differences; content at the same version is not compared.
//
// # Changed schemas
//
// When the schema of a kind changes, its objects may decode differently although
// no resourceVersion changes. Such a change ends the watch; the factory then
// compares the hash of the schema (/openapi/v3), relists the kind and compares by
// content. A difference is an update whose old and new object have the same
// resourceVersion. A handler that drops such updates as resyncs misses it.
//
// # Own writes
//
// Observe gives the informer the server's answer to a write of this process. It is
// applied like a delta: the next read has it, each handler receives it once, and
// the watch's event at the same version is ignored. An object that this process has
// deleted stays hidden, by its UID, until the watch confirms the deletion.
//
// # Changes of shared objects
//
// All readers share the objects of the cache: code that modifies one modifies it
// for everyone. Options.DetectMutations keeps copies of all objects (in tests) or
// of a sample (in production). It reports kind, key and fields, and the handlers
// and reconcilers that had the object in use, and puts the copy back into the
// store. MutationDetection says what it costs.
//
// # Concurrency
//
// New and For start nothing; Run starts everything and returns when all of it has
// ended. Every exported method is safe for concurrent use and does not block,
// except Run, WaitForSync and AddIndex, which reads all objects once. Do not
// modify objects from the cache; Copy returns a copy to modify.
//
// # Testing
//
// Feed New with a ListerWatcher of your own, or use package informertest. A
// reconciler's unit test needs only informertest.ListerOf.
package informer
