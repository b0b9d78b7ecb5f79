// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package headroom lets the lists of one factory take turns under one memory
// budget, so that a start neither exceeds it nor fails without a reason.
//
//	Claim ──▶ Enter: blocks until the list may begin
//	      ──▶ Grow: what the list holds and will hold; *NoRoomError: stop it
//	      ──▶ Done
//
// What counts is what the factory knows of: the objects in its stores and in
// the lists that are being read. A list that does not fit beside the others
// stops, drops what it has read, and begins again when there is room. One that
// does not fit by itself is tried again at a falling rate. Default finds the
// budget of a process. All is decided by a pure function of the claims and the
// time (state.go). A Budget is safe for concurrent use.
package headroom
