// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package actions does what people want of a running program: it runs a key now, drops its backoff,
// pauses and resumes keys and controllers, and takes profiles.
//
//	POST ──guard──same origin──▶ Actor ─┬─▶ run, reset-backoff: the controller's queue
//	                               │    └─▶ pause, resume: annotation of the Lease
//	                               ▼                        │ each replica reads it
//	                        log line, Event                 ▼
//	                                              Pauses ──▶ SetPauses of each controller
//
// # Promises
//
//   - M27 An action is taken only where Serving.Actions allows it, for a user who may post to its path,
//     and not from a page of another origin. It is logged, and recorded as an Event, with its user. A
//     pause is in effect when the controllers of a new leader start, and after a restart of all
//     replicas; of two at once the last one wins.
//
// # Concurrency
//
// Every method is safe for concurrent use. Act waits for the API server.
//
// # Testing
//
// The annotation is pure. Managers are paused on a server with a Lease, in a bubble.
package actions
