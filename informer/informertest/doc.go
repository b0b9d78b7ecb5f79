// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package informertest has a server of one kind, in memory, that an informer
// made by informer.New lists and watches, for tests of what stands on
// informers.
//
//	your test ── Write, Delete ──▶ Server ── list, watch ──▶ informer.New(server, …)
//	          ── Hold, Cut, Compact, Fail ──▶ faults
//
// It keeps revisions, UIDs, finalizers and the history of watches as a real
// server does, and knows no selectors and no validation. It starts no
// goroutine and works in a synctest bubble. Safe for concurrent use.
//
// # Testing
//
// The tests of packages informer, source and reconcile run on it, and fail
// where it does not do as a server does.
package informertest
