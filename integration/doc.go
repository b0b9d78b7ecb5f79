// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package integration tests the whole path: a manager with controllers, on a real etcd and
// kube-apiserver.
//
//	writers ──▶ API server ──▶ informer ──▶ queue ──▶ Reconcile ──▶ client ──▶ API server
//	                │ killed, compacted, refusing, unaware of a kind
//
// It has only tests. Each package proves its promises by itself, in virtual time; these
// specs test all packages together: R1 and R4 from the first write to the last reconcile,
// the table of reads after own writes in hack/tools/bench/RESULTS.md, and what
// docs/bad-input.md says about servers, rights and functions that fail.
//
// # Testing
//
// The files are named after what goes wrong. Every spec stops the managers that it runs;
// they must leave no goroutine.
package integration
