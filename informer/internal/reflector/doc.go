// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package reflector lists and watches one scope of a kind and writes the
// changes into a sink, until its Run ends.
//
//	steps.Next ──▶ ask the server ──▶ page or stream ──▶ sink: Push, Bookmark, Replace
//	     ▲                                 │                └─ tee: taps of metadata
//	     └────────── Outcome ──────────────┘
//
// It only executes the decisions of package steps, measures deadlines, and
// reports its state with a reason. It ends a stream that is silent, overdue or
// replaced by a demanded list. A tap feeds a metadata scope from the watch of
// the full objects.
package reflector
