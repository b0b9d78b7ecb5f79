// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import "time"

// HandlerOptions of one handler. The zero value suits a level-triggered
// handler: it is told of states, merged per key while it is busy.
type HandlerOptions struct {
	// Name in logs, metrics and Snapshot. Empty: "handler N".
	Name string
	// Resync gives every object again this often. 0: the factory's default for
	// the kind. Negative: never.
	Resync time.Duration
	// EveryEvent gives each event in the order of the stream instead of merging
	// per key; the backlog of a slow handler then grows with the events.
	EveryEvent bool
}

// HandlerSnapshot says how far one handler is.
type HandlerSnapshot struct {
	Name      string
	Synced    bool
	Backlog   int    // keys (EveryEvent: events) waiting
	Delivered uint64 // events given to the handler
	Panics    uint64 // calls that panicked
}
