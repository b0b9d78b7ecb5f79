// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package election takes part in the leader election of a manager, and refuses the
// writes of a process that does not hold the Lease.
//
//	Elector ────── candidate ────── lease ─── requests for the Lease
//	   │                              │
//	   └── informer of the Lease ────►│ open, shut
//	                                  ▼
//	        clients of controllers ─ gate ─ API server
//
// A successful renewal opens the gate for the rest of the term, counted from before the
// renewal was sent; a Lease with another identity, or none, shuts it. The gate is in
// the transport of each client and keeps M3 and M8 of package manager. When the
// Elector's context ends, it waits for the writes in flight (M11), and then releases
// the Lease.
//
// # What the predecessor wrote
//
// A Handover makes a new leader know what its predecessor wrote last before its controllers
// start (M13 to M15).
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
// Replicas that share objects ask it once themselves then (FillGaps), so that the next shard
// that moves need not.
// A Recorder is safe for concurrent use. It starts no goroutines.
//
// # Testing
//
// The gate is tested in a [testing/synctest] bubble, against a transport; the elector by the
// tests of package manager; the Handover with managers on a simulated server whose watches are
// late. The record, its encoding and the plan are pure.
package election
