// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package informer keeps a local copy of the objects of a kind, always some
// real state of the server or newer, and notifies handlers of changes.
//
//	websites := informer.For[*webv1.Website](factory) // one informer per kind, shared by all callers
//	_, err := websites.AddHandler(changed, informer.HandlerOptions{})
//	site, err := websites.Lister().Get(key) // shared and read-only: kube.Copy it before you modify it
//
//	API server
//	   │  list, watch
//	   ▼
//	Reflector ──▶ DeltaFIFO ──▶ dispatch ──Event──▶ listener, one per handler ──▶ your handler
//	                               │ first          merges its backlog per key
//	                               ▼
//	           own writes ──▶ Indexer ◀── Lister ◀── readers
//
// A scope is one list and watch: a namespace or all of them, with a label and a
// field selector. For returns a handle that sees the union of its own scopes.
//
// # Promises
//
//	I1  a key never goes back to an older version, except at a declared epoch
//	I2  the store changes before any handler is called
//	I3  after each batch a scope equals the server's state at the resourceVersion that it
//	    reports, except for keys where an own write is newer
//	I4  the last event of a key that a handler gets leads to the current state; a changed
//	    UID is a deletion and an addition
//	I5  a relist finds what a broken watch missed
//	I6  an unchanged object is not delivered again, except to handlers with Relists
//	I7  a blocked level-triggered handler costs memory bounded by the number of objects, and
//	    delays no other handler
//	I8  an object that cannot be decoded, or that the transform refuses, affects only
//	    itself, and reads of its key say so
//	I9  a sync completes, or the state says why it has not; no server can hang it silently
//	I10 the end, or the last release, frees every goroutine, connection and object
//	I11 an object whose end a write of this process was answered with does not come back
//	    while watches and lists still deliver the states before its end
//	I12 while the effect of a write of this process on an object is not known, reads that
//	    depend on the object return a *NotSettledError, until a read from the server that
//	    began after the write is stored; the informer sends it by itself
//	I13 its state names an informer that nothing uses, and reconciles that read all objects
//	I14 a divided informer holds the objects of the held shards and no others, also of a server
//	    that ignores the shardSelector; the shards that stay lose no event when the set changes
//	D4  objects have the fields that the handle's Scopes name, and what an informer drops is
//	    lost by no write of package client
//	D6  a start keeps no second copy of what it reads, and what it caches stays within the
//	    memory budget; an informer that does not fit is packed if it may be, else says so
//
// docs/informers.md describes handles and scopes, undecodable objects, own writes, audits,
// changed schemas, and the load on the server.
//
// # Concurrency
//
// New and For start nothing; Run starts everything and returns when all of it
// has ended. Every exported method is safe for concurrent use and does not
// block, except Run, WaitForSync and AddIndex, which reads all objects once.
//
// # Testing
//
// A reconciler's unit test needs only informertest.ListerOf. To test an informer,
// feed New with a ListerWatcher of your own, or use package informertest.
package informer
