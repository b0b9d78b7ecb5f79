// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package handover makes a new leader know what its predecessor wrote last before its
// controllers start.
//
//	the leader                                         the next one
//
//	writes ─▶ Recorder ─▶ annotation of the Lease ─▶ plan ─▶ informer.CatchUp
//	          newest version    each renewal,         what each kind     events, lists
//	          of each kind      the release           must have passed      │
//	             ▲                                                          ▼
//	             └───────────── what was passed is inherited ───────── Handover has started
//
// A kind is in the record if each guarded write to it since the lease was won was answered
// with its version, or was refused. Any other write, such as a deletion, removes the kind
// from the record until the next leader: for what is not in the record, the server is asked.
//
// # Promises
//
// M13 to M15 of package manager.
//
// # Concurrency
//
// A Recorder is safe for concurrent use. It starts no goroutines.
//
// # Testing
//
// The record, its encoding and the plan are pure. The rest is tested with managers on a
// simulated server whose watches are late.
package handover
