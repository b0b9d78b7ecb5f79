// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package instruments carries what observes and bounds reconciles from a manager to its
// controllers, in the context of their Run, as the logger is carried.
//
//	manager.Run ──With(ctx)──▶ Run(ctx) of whatever it runs ──Of(ctx)──▶ controller
//
// A Runnable that wraps a controller need not pass anything on but the context.
package instruments

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/trace"
)

// Instruments are what observes and bounds reconciles. Each may be nil.
type Instruments struct {
	// Witness hears of the begin and the end of each; see reconcile.Witness.
	Witness interface {
		Begin(who fmt.Stringer) (end func())
	}
	// TracerProvider of their spans.
	TracerProvider trace.TracerProvider
	// CutOff is closed when reconciles in flight must end, even during a drain.
	CutOff <-chan struct{}
}

type key struct{}

// With is ctx with i.
func With(ctx context.Context, i Instruments) context.Context {
	return context.WithValue(ctx, key{}, i)
}

// Of are the Instruments of ctx; zero if there are none.
func Of(ctx context.Context) Instruments {
	i, _ := ctx.Value(key{}).(Instruments)
	return i
}
