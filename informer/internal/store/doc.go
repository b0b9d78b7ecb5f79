// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package store keeps the objects of one kind: the DeltaFIFO collects what lists
// and watches bring, in order, and the Indexer applies it batch by batch.
//
//	Push, Bookmark, Replace ──▶ DeltaFIFO ──▶ PopBatch ──▶ Indexer.Apply ──▶ changes
//	                                            own writes ──▶ Observe  ─┘
//
// What a delta or an own write does to a key is decided in decide.go by a pure
// function: a key never goes back to an older version, an own deletion stays,
// and after each batch a scope is a state that the server had, or newer where an
// own write is. A list that lacks an object deletes it (replace.go). Readers take
// a snapshot and hold no lock while they walk it. The DeltaFIFO and the Indexer
// are safe for concurrent use.
package store
