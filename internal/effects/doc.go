// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package effects reads the answers of the API server to writes and judges what each
// means for a cache of the objects.
//
//	bytes ──▶ Open ──▶ Answer ──▶ Changed, Deleted, DeletedAll, TouchedBy ──▶ kube.Written
//	                  (answer.go, page.go)  (effects.go)
//
//	status code, error ──▶ OutcomeOf ──▶ carried out, refused or unknown
//
// These functions are pure: they have no clock, no lock and send nothing.
//
// An Observer does this for the writes of any client: clientsets, dynamic and metadata
// clients, generated ones, controller-runtime's.
//
//	any client ──▶ transport ──────────────────────────────▶ API server
//	                  │ method, path.go: a write of a watched resource?
//	                  │
//	any client ◀── exchange.go ◀─────────────────────────── answer
//	                  │ a copy of the bytes that the client reads
//	                  ▼
//	               Open … kube.Written ──▶ informers
//
// # Promises
//
//   - R4 An effect is Removed only if the object is certainly gone, and Stored only with
//     the object as the server stored it. Whatever an answer leaves open is Touched.
//   - R14 A write is Refused only if the server has certainly not carried it out. The write
//     of a watched kind is with the informers before the client sees the end of the answer:
//     as the object if the answer shows it, else as a key whose state is not known. A
//     refused write, and a dry run, is not.
//   - M12 Reads, writes of kinds without an informer, and writes of a client with the same
//     Observer pass without an allocation.
//
// The transport changes neither requests nor answers, and sends nothing.
//
// # Concurrency
//
// A transport is safe for concurrent use. It starts no goroutines.
//
// # Testing
//
// Tables of answers. The tests of package client check the same on whole requests. Paths are
// read by a pure function, with a table and a model. The Observer is tested with the clients of
// client-go against scripted answers, a simulated server and a real one.
package effects
