// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package adopt runs single pieces that are written for controller-runtime under flyball's manager.
//
//	their source.Source ─────────────────────────────▶ Source ──┐
//	their EventHandler, Predicates ─ our informer ──▶ Handler ──┤ keys
//	                                                            ▼
//	                                      reconcile.New(name, Reconciler(theirs), …) ──▶ mgr.Add
//	                                                            │ reads, writes, events
//	                                                            ▼
//	                              NewClient(mgr), Recorders(mgr): our informers and our client's rules
//
// The other way around, bridge.Options runs a whole manager of controller-runtime on flyball's informers, and bridge.CacheOf
// shares those of one process.
//
// # Promises
//
//   - A Reconciler's results and errors have the meaning that they have in controller-runtime, terminal errors among them.
//   - A Handler gets the events that controller-runtime's source.Kind would give it, and the same predicates decide. Each
//     key that it adds, also later by AddAfter, is reconciled, unless the controller ends before.
//   - A client of NewClient reads what the manager's informers have, each own write included, and its writes pass the manager's
//     leader election.
//   - After the Run of a source has returned, it adds nothing.
//
// # Concurrency
//
// All of it is safe for concurrent use. Nothing starts before the manager runs.
//
// # Testing
//
// The tests run pieces of controller-runtime under a manager, on a simulated server.
package adopt
