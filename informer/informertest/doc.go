// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package informertest has an in-memory server of one kind for tests. An
// informer made by informer.New lists and watches it.
//
//	your test ── Write, Delete ──▶ Server ── list, watch ──▶ informer.New(server, …)
//	          ── Hold, Cut, Compact, Fail ──▶ faults
//
// Like a real server it keeps revisions, UIDs, finalizers and the history of
// watches. It has no selectors and no validation. It starts no goroutine and
// works in a synctest bubble. Safe for concurrent use.
//
// # Testing
//
// The tests of packages informer, source and reconcile run on it, and fail
// where it differs from a real server.
package informertest
