// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package console shows a running program to a person with a browser: what is wrong now, the path
// of its data, and why each key was reconciled and what that changed. docs/console.md describes it.
//
//	manager.Options{MetricsServing: manager.Serving{Console: console.Handler}}
//
//	Program ──package inspect──▶ views ──write.go──▶ page ◀── events of the server: the page again,
//	                                                          if it has changed
//
// A program that does not import this package has none of it. Pages are rendered by the server and
// work without scripts; a script of 40 lines replaces their content as it changes, by idiomorph,
// whose licence is beside it in assets.
//
// # Promises
//
//   - M25 No page has a value of a Secret. Whatever an object's names, labels or errors are, they
//     are text; a Content-Security-Policy allows no other origin and no inline script.
//   - M26 A page takes the operator's time only while somebody looks, and at most 16 are open at
//     once: the next one gets 503.
//
// # Concurrency
//
// The handler is safe for concurrent use. It starts no goroutine of its own.
//
// # Testing
//
// Pages are rendered from programs in tables, with hostile text in each field.
package console
