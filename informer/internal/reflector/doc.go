// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package reflector lists and watches one scope of a kind and puts what changes
// into a sink, until its Run ends.
//
//	steps.Next ──▶ ask the server ──▶ page or stream ──▶ sink: Push, Bookmark, Replace
//	     ▲                                 │                └─ tee: taps of metadata
//	     └────────── Outcome ──────────────┘
//
// It does no more than to carry out the decisions of package steps, to measure
// deadlines, and to show its state with a reason. A stream is abandoned when it
// is silent, overdue or demanded to end. A tap feeds a scope of metadata from
// the watch of the full objects.
package reflector
