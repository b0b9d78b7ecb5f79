// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package compact makes informers hold their objects compressed, with zstd.
//
//	pods := informer.For[*corev1.Pod](factory)
//	err := pods.Compact(compact.New(compact.Options{}))
//
//	wire bytes ──▶ compress, with a dictionary of the kind's own objects ──▶ store
//	                          store ──▶ expand, decode ──▶ Lister, handlers
//
// Use it for kinds with many objects of which few are read at a time. Each read
// of an object that was not read recently decodes it: Get takes microseconds,
// and a list of everything decodes everything. Selectors on labels, indexes and
// namespaces open only what they select.
//
// Only programs that import this package link the compression.
//
// # Promises
//
//	D5 a compact informer gives the same reads and events as another: objects,
//	   old and new states, indexes, selectors, quarantine, own writes, errors
//
// The exceptions are of Go, not of Kubernetes: an object that is read twice may
// be another pointer, and in an object of a built-in kind that a transform or an
// own write made, empty lists and maps may become nil.
//
// # Concurrency
//
// Everything is safe for concurrent use.
//
// # Testing
//
// A reconciler's test needs nothing: it sees the same objects. To run it over
// compact informers, set informer.Options.Compact.
package compact
