// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package delivery brings the changes of a store to handlers. Each handler has a Listener:
//
//	dispatch ── Push ──▶ backlog (merges per key)      ── 1 goroutine ──▶ handler
//	                  or event stream (every event)
//
// Push never blocks, so a slow handler delays no other. Events that several handlers receive are
// made once, by Share. A handler that panics loses that event alone.
package delivery
