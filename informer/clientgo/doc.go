// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package clientgo lets code that was written for client-go's tools/cache run
// on flyball's informers, and lets flyball's informers read from client-go's
// ListerWatchers.
//
//	informer.SharedInformer[T] ──NewSharedIndexInformer──▶ cache.SharedIndexInformer
//	                             └─ GetStore, GetIndexer ─▶ cache.Indexer ◀── generated listers
//	cache.ListerWatcher ────────NewListerWatcher────────▶ informer.ListerWatcher[T] ──▶ informer.New
//
// The subpackage factory replaces the generated informers.SharedInformerFactory,
// byresource the dynamic and the metadata one.
//
// # Promises
//
// What client-go 0.37 documents of these interfaces holds. Beyond that:
//
//	G1  a handler is given the events of its scope in the order of the stream,
//	    and an add or a delete is never dropped or merged, so that code which
//	    counts them works
//	G2  a deletion that the watch did not see is a cache.DeletedFinalStateUnknown
//	G3  a registration has synced when its handler has returned from the initial
//	    objects
//	G4  no call begins after RemoveEventHandler has returned, and ShutdownChan is
//	    closed when the last one has ended
//	G5  managedFields stay in the objects, whatever the informer's Options say,
//	    unless those of the adapter strip them
//	G9  a list after the first one, as it follows a broken watch, gives each
//	    object again as an update, also where nothing changed; with
//	    Options.OnlyDifferences it gives what differs
//	G10 no update is merged while what waits for a handler takes less than
//	    Options.BacklogBytes; above that consecutive updates of one object are,
//	    and the log, the Snapshot and the metrics say so
//	G11 RunWithContext returns when its context has ended, and the informer is
//	    stopped then, be it of a factory; a transform can be set until the
//	    informer has started, whatever else runs
//	G15 nor is an update merged before it is stored, while what waits for that
//	    takes less than the same bound
//
// An object that was deleted and made anew is a delete and an add, never an
// update between two UIDs. The namespace index, cache.NamespaceIndex, is always there. A panic of a handler,
// an index function or a transform costs that call alone; it is logged and
// counted by the informer.
//
// # What is different
//
// A cache.Store here is for reading. Add, Update, Delete and Replace return
// ErrReadOnly, and Bookmark does nothing: the informer alone writes, so that
// what is read is always some state of the server or newer.
//
// Objects whose content cannot be decoded are left out of lists, and a read of
// their key returns the error. An object that the transform refuses is read in the
// last state that it has accepted. Before the first list, and outside of the
// informer's scopes, a key does not exist, as in client-go.
//
// A ListerWatcher from outside has decoded its objects already. So one object
// that cannot be decoded still fails the whole list or watch it came with,
// where flyball's own would put it aside.
//
// # Concurrency
//
// Everything is safe for concurrent use. Constructors start nothing. Handlers
// are called one event at a time, each handler from a goroutine of its own.
//
// # Testing
//
// NewListerWatcher over a fake clientset feeds an informer in a test, also in a
// bubble of testing/synctest.
package clientgo
