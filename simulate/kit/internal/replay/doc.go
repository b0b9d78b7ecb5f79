// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package replay runs a program against a recording of it, in virtual time.
//
//	Bundle ──entries, in order, each at its time──▶ player
//	                                                 ├─ state, events ──▶ lists and watches of informers
//	                                                 ├─ begin ──▶ simhook.Replay: a worker reconciles the key
//	                                                 ├─ request: the reconcile must have sent an equal one
//	                                                 └─ answer ──▶ the reconcile
//	everything else that the program asks for ──▶ a simulated server with the recorded kinds
//
// Between two entries the bubble comes to rest, so that what an event leads to has happened before
// the next entry. The queue decides nothing: a reconcile begins where the recording has its begin.
// Of time and chance a reconcile gets what was recorded.
//
// The first request that differs ends the replay; so does a reconcile that ends otherwise.
package replay
