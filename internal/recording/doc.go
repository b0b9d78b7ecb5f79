// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package recording writes down what a program did for a while, so that package kit can replay
// it: the state of its informers, the events that followed, and each reconcile with its requests,
// the answers, and the time and chance that it was given.
//
//	informers ──state, events──┐
//	reconciles ──begin, end────┼─▶ Window ──Write──▶ .tar.gz: bundle.json
//	transport ──requests───────┘   (a queue)                  log/000001.jsonl …
//	                                                          end.json
//	kit.Replay ◀──Read────────────────────────────────────────┘
//
// The order of entries is that in which the program saw them: an event is written before a
// reader can see it in the store, and a reconcile's begin before the user's function is called.
//
// # Promises
//
//	M28 values of Secrets, tokens and texts that look like a credential are not written, nor the
//	    fields that Options.Redact names, in whatever body, annotation or error; headers are not
//	    recorded at all
//	M29 a Window is bounded: its size by Options.Limit, what waits to be written by a fixed number
//	    of bytes; it ends early, and says why, rather than delay the program
//	M30 what was written until a program died can be read
//
// Without an open Window an informer's batch and a reconcile pay a comparison with nil.
//
// # Testing
//
// Objects and bodies are converted to JSON by the goroutine of Write, so that tests see in a bundle
// exactly what a reader gets.
package recording
