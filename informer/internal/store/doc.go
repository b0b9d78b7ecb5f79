// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package store keeps the objects of one kind: the DeltaFIFO collects what
// lists and watches deliver, in order, and the Indexer applies it in batches.
//
//	Push, Bookmark, Replace ──▶ DeltaFIFO ──▶ PopBatch ──▶ Indexer.Apply ──▶ changes
//	                                            own writes ──▶ Observe  ─┘
//
// A pure function in decide.go decides what a delta or an own write does to a
// key: a key never goes back to an older version, an own deletion stays, and
// after each batch a scope is in a state that the server had, or newer where
// there is an own write. A list that lacks an object deletes it (replace.go).
// Readers take a snapshot and walk it without a lock. The DeltaFIFO and the
// Indexer are safe for concurrent use.
package store
