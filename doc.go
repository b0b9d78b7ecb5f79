// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package flyball is the tour of a framework for Kubernetes controllers.
//
// A controller watches objects, compares what is wanted with what is, acts,
// and watches again. The packages are the stations that an object passes on
// its way from the API server to the function that acts:
//
//	API server
//	   │  list, watch
//	   ▼
//	informer     keeps every object of a kind, in its newest version
//	   │  Event
//	   ▼
//	source       decides which keys an event concerns
//	   │  Key
//	   ▼
//	workqueue    holds each key once, for one worker at a time
//	   │  Key
//	   ▼
//	reconcile    calls your function; its answer says when to call again
//	   │
//	   ▼
//	client       writes to the API server, and shows the informer each write
//
// Start with [github.com/flyball-dev/flyball/reconcile], whose Func is what an
// operator consists of. Then, in the order of the drawing:
//
//   - [github.com/flyball-dev/flyball/informer]: one watch per kind and scope
//     for the whole process, its Lister for reads, its states for questions.
//   - [github.com/flyball-dev/flyball/source]: events of a kind, of owned
//     objects, from a channel or a ticker, with predicates and mappers.
//   - [github.com/flyball-dev/flyball/workqueue]: the queue with delays and
//     rate limits. It stands alone and knows nothing of Kubernetes.
//   - [github.com/flyball-dev/flyball/client]: typed reads and writes.
//   - [github.com/flyball-dev/flyball/manager]: starts all of it in order and
//     stops it in reverse; health, readiness and metrics.
//   - [github.com/flyball-dev/flyball/envtest]: a real etcd and kube-apiserver
//     for tests.
//
// What lives has three shapes throughout. Run(ctx) error blocks and returns
// when everything it started has ended. Synced() is a channel, closed once.
// Snapshot() is a plain copy of the state, for metrics, pages and tests. No
// constructor starts a goroutine, and no package has state of its own, so any
// number of managers live in one process.
//
// Each package comment lists its promises by number, and each promise has a
// test that carries the number in its name.
package flyball
