// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package clientgo runs code written for client-go's tools/cache on flyball's
// informers, and lets flyball's informers read from client-go's ListerWatchers
// and its controllers be woken by client-go's informers.
//
//	informer.SharedInformer[T] ──NewSharedIndexInformer──▶ cache.SharedIndexInformer
//	                             └─ GetStore, GetIndexer ─▶ cache.Indexer ◀── generated listers
//	cache.ListerWatcher ────────NewListerWatcher────────▶ listwatch.ListerWatcher[T] ──▶ informer.New
//	cache.SharedIndexInformer ──NewSource───────────────▶ source.Source[K] ──▶ Controller.Watch
//
// Subpackage factory replaces the generated informers.SharedInformerFactory,
// byresource the dynamic and the metadata one; queues connects the workqueues.
//
// # Promises
//
// The behaviour that client-go 0.37 documents for these interfaces holds. In
// addition:
//
//	G1  a handler gets the events of its scope in stream order, and additions and
//	    deletions are never dropped or merged, so code can count them
//	G2  a deletion that the watch did not see is a cache.DeletedFinalStateUnknown
//	G3  a registration has synced when its handler has returned from the initial
//	    objects
//	G4  no call begins after RemoveEventHandler has returned, and ShutdownChan is
//	    closed when the last one has ended
//	G5  managedFields stay in the objects regardless of the informer's Options,
//	    unless those of the adapter strip them
//	G9  a list after the first, for instance after a broken watch, delivers each
//	    object again as an update, even if nothing changed; with
//	    Options.OnlyDifferences only what differs
//	G10 no update is merged while the backlog of a handler takes less than
//	    Options.BacklogBytes; above that, consecutive updates of one object are
//	    merged, and the log, the Snapshot and the metrics report it
//	G11 RunWithContext returns when its context has ended, and the informer is then
//	    stopped, even in a factory; a transform can be set until the informer has
//	    started, whatever else runs
//	G15 no update is merged before it is stored either, while the deltas that wait
//	    for that take less than the same bound
//	G16 each event of a client-go informer adds the keys of the old and of the new
//	    object before the next event is taken
//
// An object that was deleted and recreated is a delete and an add, never an
// update between two UIDs. The namespace index, cache.NamespaceIndex, always
// exists. A panic of a handler, an index function or a transform affects only
// that call; the informer logs and counts it.
//
// # Differences
//
// A cache.Store is read-only here. Add, Update, Delete and Replace return
// ErrReadOnly, and Bookmark does nothing: only the informer writes, so reads
// always return some state of the server or newer.
//
// Lists omit objects whose content cannot be decoded, and a read of their key
// returns the error. An object that the transform refuses is read in its last
// accepted state. Before the first list, and outside the informer's scopes, a
// key does not exist, as in client-go.
//
// An external ListerWatcher returns decoded objects. One object that cannot be
// decoded therefore still fails the whole list or watch, whereas flyball's own
// ListerWatcher quarantines it.
//
// # Concurrency
//
// Everything is safe for concurrent use. Constructors start nothing. Each
// handler is called one event at a time, from its own goroutine.
//
// # Testing
//
// NewListerWatcher on a fake clientset feeds an informer in a test, also in a
// testing/synctest bubble.
package clientgo
