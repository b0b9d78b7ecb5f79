// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package lifesign lets what a piece of work calls report that the work moves.
//
//	reconcile: its context answers Key with a Taker ─▶ a request in that context ─▶ Of(ctx).Moved()
package lifesign

import "context"

// Key is the key by which the context of a piece of work answers with its Taker.
type Key struct{}

// Taker takes signs of life. It is safe for concurrent use and does not block.
type Taker interface{ Moved() }

// Moved reports to the Taker of ctx, if there is one, that the work moves.
func Moved(ctx context.Context) {
	if t, ok := ctx.Value(Key{}).(Taker); ok {
		t.Moved()
	}
}
