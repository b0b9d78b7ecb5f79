// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package writegate refuses the writes of a process that may not lead.
//
//	renewal of a Lease ──▶ Open ──▶ gate ◀── Shut ◀── another holds the Lease, or none
//	                                 │
//	   clients of controllers ──────▶┴──▶ API server
//
// A successful renewal opens the gate for the rest of its term, counted from before the
// renewal was sent. The gate is in the transport of each client of a configuration, and
// keeps M3 and M8 of package manager. Who takes part in the election, and opens and
// shuts it, is elsewhere: the elector of package manager, and the bridge's Fence.
//
// The tests use a [testing/synctest] bubble, against a transport.
package writegate
