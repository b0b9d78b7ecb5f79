// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package observer shows the writes of any client to the informers: clientsets, dynamic
// and metadata clients, generated ones, controller-runtime's.
//
//	any client ──▶ transport ──────────────────────────────▶ API server
//	                  │ method, path.go: a write of a watched resource?
//	                  │
//	any client ◀── answer.go ◀───────────────────────────── answer
//	                  │ a copy of the bytes that the client reads
//	                  ▼
//	           internal/effects ──▶ kube.Written ──▶ informers
//
// # Promises
//
//   - R14 The write of a watched kind is with the informers before the client sees the end
//     of the answer: as the object if the answer shows it, else as a key whose state is
//     not known. A write that has certainly not been carried out, and a dry run, is not.
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
// Paths are read by a pure function, with a table and a model. The rest is tested with the
// clients of client-go against scripted answers, a simulated server and a real one.
package observer
