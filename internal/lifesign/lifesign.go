// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package lifesign lets called code report that the work of its caller makes
// progress.
//
//	reconcile: its context answers Key with a Taker ─▶ a request in that context ─▶ Of(ctx).Moved()
package lifesign

import "context"

// Key is the context key of a Taker.
type Key struct{}

// Taker receives signs of life. It is safe for concurrent use and does not
// block.
type Taker interface{ Moved() }

// Moved reports progress to the Taker of ctx, if there is one.
func Moved(ctx context.Context) {
	if t, ok := ctx.Value(Key{}).(Taker); ok {
		t.Moved()
	}
}
