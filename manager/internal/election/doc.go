// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package election takes part in the election of a manager, and refuses the writes of a
// process that does not hold the Lease.
//
//	Elector ─── client-go's elector ─── lease ─── requests for the Lease
//	   │                                  │
//	   └── informer of the Lease ────────►│ open, shut
//	                                      ▼
//	            clients of controllers ─ gate ─ API server
//
// The lease decides: a renewal that succeeded opens the gate for the rest of the term,
// counted from before the renewal was sent; a Lease with another's name, or none, shuts
// it. The gate stands in the transport of each client and holds M3 and M8 of package
// manager. When the Elector's context ends it waits for the writes under way (M11), and
// then gives the Lease back.
//
// The gate is tested in a [testing/synctest] bubble, against a transport; the elector
// by the tests of package manager.
package election
