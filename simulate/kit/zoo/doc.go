// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package zoo holds package kit against bugs that are known to be there. It has tests
// alone.
//
//	page    one ConfigMap for each Page, and a status         page_test.go
//	store   ordered members, each with a volume, and a bucket
//	        outside of the cluster, freed by a finalizer      store_test.go
//	pool    workers with generated names, each with a
//	        ticket that is made after it                      pool_test.go
//
// Each operator is right, and has switches by which a bug is planted, one at a time. Most
// are of kinds that studies of operators and their issue trackers tell of: stale reads,
// states that are never observed, steps between which a process ends, owners and UIDs
// that nobody looks at. An operator with a bug does without what would keep it from that:
// it writes by a client that no informer hears of, or reads as client-go's Reflector
// begins, from a cache that may lag.
//
// The seeds that it takes to find each are in docs/testing.md, as `make zoo` measures
// them.
package zoo
