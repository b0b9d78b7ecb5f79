// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package informer keeps a local copy of the objects of a kind, always some
// real state of the server or newer, and tells handlers what changes.
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
// is one list and watch in it: a namespace (or all), with a label and a field
// selector. For returns a handle that sees the union of its own scopes.
//
// # Representations
//
// For has a kind's objects as its Go type, ForKind as unstructured, ForMetadata
// their metadata alone. Each representation has its own store and handlers. A
// metadata scope whose objects are watched in full has no watch of its own: the
// Reflector of the full scope writes through a tee (tee.go, tap.go).
//
//	Reflector ──▶ tee ──▶ DeltaFIFO ──▶ … the full objects
//	               └─tap─▶ DeltaFIFO ──▶ … their metadata, which shares their
//	                                        maps and strings
//
// A scope that joins later is given what the full one holds, without a list.
// When the full one ends, it goes on from there with a watch of its own.
//
// # Promises
//
//	I1  a key never goes back to an older version, save at a declared epoch
//	I2  the store changes before anyone is told
//	I3  per scope, after each batch the store equals the server's state at the
//	    resourceVersion it reports, save for keys where an own write is newer
//	I4  what a handler sees of a key ends in the current state, and a changed
//	    UID is a delete and an add
//	I5  a relist finds what a broken watch missed
//	I6  an unchanged object is not delivered again, save to a handler that asks
//	    for it by Relists
//	I7  a stalled level-triggered handler costs memory bounded by the number of
//	    objects, and delays no other
//	I8  an object that cannot be decoded, or that the transform refuses, harms only
//	    itself, and reads of its key say so
//	I9  a sync ends or says why it has not; no server can hang it silently
//	I10 after the end, or the last release, every goroutine, connection and
//	    object is given back
//
// # Handles
//
// Handles are counted. Release gives one up: its handlers go, and a scope that
// no other handle holds ends, with its watch and with what it alone held. The
// last release ends the informer, while the factory runs on. SetScopes changes
// what a handle covers at any time; Listers see it at once, and handlers are told
// of what leaves and of what comes. A scope with a NamespaceSelector follows the
// namespaces of the cluster in the same way. Only For and SetScopes ask for anything to be
// watched: a read never does.
//
// # Manners towards the server
//
// A factory has one gate for its server. A kind that is refused by 429 or 503
// waits for its Retry-After, and no other kind waits with it. When several are
// refused and none is served, or there is no connection, the gate paces all
// requests: less than ten a second, until answers come. Of a priority level that
// the server names in the refusal, it paces the kinds of that level. Watches go
// first, then relists, then first lists. Options.ConcurrentLists bounds the lists
// under way; the smallest relist goes first, and a list that the server says
// nothing of for a second holds up no other. Kinds whose last request failed
// list beside the others. What waits says so in its ScopeState. Writes and
// leases go through other clients, which this gate does not hold.
//
// # Watches of no use
//
// A watch that ends cleanly and has brought something new, or has lived for two
// seconds, is opened again at once from its last version, ten times in a row and
// then once a second. One that brings nothing is opened again with backoff,
// whatever the reason, and after a time lists stand in for it: the cache follows
// by lists alone, and the ScopeState says why. A list that is older than what was
// asked for is refused. Each list comes to an end: its deadline moves with the objects that
// arrive, not with the bytes.
//
// # Quarantine
//
// An object that cannot be decoded, or that the transform refuses, is set apart
// by its key, with its metadata and the error, until its next version. Get of
// the key answers an *UndecodableError, All leaves it out, Lister.Undecodable
// lists all of them. A handler with HandlerOptions.Undecodable is told of them
// too: EventUndecodable for each version, EventUpdated when it heals if the
// handler was given an object of the same UID before, else EventAdded, and
// EventDeleted at its end. Old of that is zero when the handler was never given
// an object; Event.Undecodable then has the metadata. Other handlers keep the
// state they were last given until it heals or ends. A scope that has such
// objects is in StateDecodingErrors, and otherwise works as a live one.
//
// What the transform refuses is kept as it was decoded and given to it again, with
// backoff, in a goroutine of the informer's: it heals without a new version. Until
// then lists and indexes have the last state that the transform has accepted, and
// Get returns that state together with the *UndecodableError, so that nobody takes
// it for the newest. Own writes that the transform refuses are treated alike.
//
// # Objects that were not asked for
//
// An object of another kind, apiVersion or namespace than was asked for, or one
// that does not match the selectors, is not taken, and harms no object of its name.
// ScopeState.Anomalies counts such objects, and the log names the first.
//
// # Lost events
//
// A server that loses an event leaves the store wrong until the object changes
// again. Options.Audit has each scope compared with a list of the server's, now
// and then, at that list's resourceVersion. What differs is counted and logged,
// and the scope is listed anew, in a new epoch where the server has objects in
// older versions than were seen. Such objects show in any list, and lead there
// without audits too, once a second list shows the like. Own writes and whatever else is heard of during
// an audit are no differences; content of the same version is not compared.
//
// # Changed schemas
//
// When the schema of a kind changes, its objects may be read differently,
// though no resourceVersion changes. The watch that such a change ends makes
// the factory compare the schema's hash (/openapi/v3); the kind is then listed
// anew and compared by content, and what differs is told as an update whose old
// and new have the same resourceVersion. A handler that drops such updates as
// resyncs misses it.
//
// # Own writes
//
// Observe gives the informer what the server answered to a write of this
// process. It goes the way of a delta, so the next read has it, each handler
// is told once, and the watch's echo at the same version is no news. An object
// that this process has deleted stays hidden, by its UID, until the watch
// confirms it.
//
// # Changes of shared objects
//
// Who changes an object of the cache changes it for all. Options.DetectMutations
// keeps copies of all objects (in tests), or of a sample (in production), and
// names kind, key, fields, and the handlers and reconcilers that had the object in
// hand; the store gets the copy back. What it costs is said at MutationDetection.
//
// # Concurrency
//
// New and For start nothing; Run starts all and returns when all has ended.
// Every exported method is safe for concurrent use and does not block, save
// Run, WaitForSync and AddIndex, which reads all objects once. Objects are
// shared by all readers and must not be changed; Copy gives one's own.
//
// # Testing
//
// Deltas, entries, backlogs and the Reflector's phases are pure and are held
// by tables and by models under random programs. The life of an informer is
// tested in synctest bubbles over in-memory connections, and on a real API
// server. A test of your own can feed New with a ListerWatcher it has written.
package informer
