// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package zoo tests package kit with known bugs. It has only tests.
//
//	page    one ConfigMap for each Page, and a status         page_test.go
//	store   ordered members, each with a volume, and a bucket
//	        outside of the cluster, freed by a finalizer      store_test.go
//	pool    workers with generated names, each with a
//	        ticket that is made after it                      pool_test.go
//
// Each operator is correct, and has switches that plant one bug at a time. Most are of
// kinds that studies of operators and their issue trackers report: stale reads, states
// that are never observed, crashes between two steps, unchecked owners and UIDs. An
// operator with a bug lacks the protection against it: it writes with a client that no
// informer observes, or reads as client-go's Reflector begins, from a cache that may
// lag.
//
// README.md has the number of seeds that it takes to find each, as measured by `make zoo`.
// Package doctor examines them without a check; docs/doctor-bugs.md has what it finds.
package zoo
