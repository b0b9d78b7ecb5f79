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
// The gate is tested in a [testing/synctest] bubble, against a transport; the elector
// by the tests of package manager.
package election
