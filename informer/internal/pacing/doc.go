// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package pacing decides when a request may be sent to an API server: watches
// before relists before first lists, few lists at a time, and at a slow pace
// when the server refuses. A refused kind delays no other, unless the server
// names a priority level, several kinds are refused and none is served, or
// there is no connection.
//
//	Ask ──▶ Wait ──▶ Pass: Begin, Received, Replied, Done
//	           └─ decided by state.go, waiting.go and turns.go, pure functions of the time
//
// A Pacer is safe for concurrent use. Wait blocks until the request may be sent
// or its context ends.
package pacing
