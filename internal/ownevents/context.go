// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownevents

import (
	"context"

	"github.com/flyball-dev/flyball/internal/contextvalues"
)

// Run is a contextvalues.Task whose controller keeps a Ledger.
type Run interface {
	// Wrote records a write of the reconcile.
	Wrote(w Write)
}

// RunOf returns the reconcile that ctx belongs to; nil: none, or one without a Ledger.
func RunOf(ctx context.Context) Run {
	r, _ := ctx.Value(contextvalues.TaskKey{}).(Run)
	return r
}

// Filter decides for a source which keys it need not add. Nil fields decide nothing.
type Filter[K comparable] struct {
	// Ledger of the controller's writes.
	Ledger *Ledger[K]
	// Absent reports whether a reconcile of key would find no object and do nothing.
	Absent func(key K) bool
	// Explain: causes are to say which fields have changed.
	Explain bool
}

type filterKey struct{}

// WithFilter returns a context for the Run of a source.
func WithFilter[K comparable](ctx context.Context, f Filter[K]) context.Context {
	return context.WithValue(ctx, filterKey{}, f)
}

// FilterOf returns the filter for a source of such keys that runs with ctx.
func FilterOf[K comparable](ctx context.Context) Filter[K] {
	f, _ := ctx.Value(filterKey{}).(Filter[K])
	return f
}
