// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package integration holds the tests of the whole path: a manager with
// controllers, on a real etcd and kube-apiserver.
//
//	writers ──▶ API server ──▶ informer ──▶ queue ──▶ Reconcile ──▶ client ──▶ API server
//	                │ killed, compacted, refusing, unaware of a kind
//
// It has no code of its own. Each package proves its promises by itself, in
// virtual time; here they are asked of all packages together: R1 and R4 from
// the first write to the last reconcile, and what docs/bad-input.md says of
// servers, rights and functions that fail.
//
// # Testing
//
// The files are named after what goes wrong. Every manager that a spec runs is
// stopped by it, and must leave no goroutine.
package integration
