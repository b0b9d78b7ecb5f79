// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package contextvalues has the values that the contexts of controllers and reconciles carry.
//
//	manager.Run ──WithInstruments──▶ Run(ctx) of whatever it runs ──InstrumentsOf──▶ controller
//	reconcile: its context answers TaskKey ──▶ a request in that context ──TaskOf──▶ its Task
//
// A Runnable that wraps a controller need not pass anything on but the context. A reconcile
// that has a ledger of its own writes is an ownevents.Run too.
package contextvalues

import (
	"context"
	"fmt"
)

// Instruments are what observes and bounds reconciles. Each may be nil. The manager passes them to
// its controllers, as the logger is passed.
type Instruments struct {
	// Witness hears of the begin and the end of each; see reconcile.Witness.
	Witness interface {
		Begin(who fmt.Stringer) (end func())
	}
	// TracerProvider of their spans, a trace.TracerProvider. Its type is not named here: whatever
	// uses a Task would link OpenTelemetry.
	TracerProvider any
	// CutOff is closed when reconciles in flight must end, even during a drain.
	CutOff <-chan struct{}
	// Shards are those of the process. Nil: the process works on all keys.
	Shards Shards
}

type instrumentsKey struct{}

// WithInstruments is ctx with i.
func WithInstruments(ctx context.Context, i Instruments) context.Context {
	return context.WithValue(ctx, instrumentsKey{}, i)
}

// InstrumentsOf are the Instruments of ctx; zero if there are none.
func InstrumentsOf(ctx context.Context) Instruments {
	i, _ := ctx.Value(instrumentsKey{}).(Instruments)
	return i
}
