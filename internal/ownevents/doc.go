// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package ownevents tells events that only report a reconcile's own writes from all others.
//
//	client, before the informers learn of a write ──▶ Ledger.Wrote(key, Write)
//	source, for each key of an event              ──▶ Ledger.Classify(key, Write): add it, leave
//	                                                  it, or decide when its reconcile ends
//
// A Write is a step of an object from one version to the next one that the server had, with
// none in between: the request named the version that it was based on, or the server said
// that it created the object. An event leads from the version that a handler was last given
// to the present one. It is an own event of a key if a chain of steps leads from the one to the
// other, all made by reconciles of that key. So a foreign write is never part of an own event:
// each is between two versions of which one event, of each handler, has the first before and
// the second after it, and no chain bridges it.
//
// A Ledger also finds reconciles that stop before their work is done: see Unfinished. That the
// next reconcile of a key writes again proves it only if nothing but its own writes has changed
// since. An event of others is never a proof, whatever it reports, since the reconcile may
// depend on it: the second of two Deployments may be meant to wait for the first.
//
// # Concurrency
//
// A Ledger is safe for concurrent use. Nothing blocks.
//
// # Testing
//
// Tables, and a fuzz target against a model with two writers.
package ownevents
