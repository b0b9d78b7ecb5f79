// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package habits has reconcilers as they are written for controller-runtime: each makes one
// step, returns, and counts on the event of that step to be called for the next. Tests run them
// through every entry point, on simulated and real servers; docs/migration.md lists them.
//
//	Seed ──▶ server: a Deployment per habit ──▶ controller ──▶ Reconcile, by the object's name
//	                                                              │ one step
//	Unfinished ◀── server ◀───────────── Client ◀─────────────────┘
//
// # Concurrency
//
// Everything is safe for concurrent use. Only calls of the Client and the server block.
//
// # Testing
//
// The habits are tests: in simulate/simtest, integration and bridge/controllerruntime.
package habits
