// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reporter is a sender of requests that reports the effects of its writes by itself.
type Reporter interface {
	// ReportsTo returns the receiver of the effects; nil: there is none.
	ReportsTo() any
	// Kind returns the kind of the objects that the requests are for.
	Kind() schema.GroupVersionKind
}

type reporterKey struct{}

// WithReporter returns a context for the requests of r.
func WithReporter(ctx context.Context, r Reporter) context.Context {
	return context.WithValue(ctx, reporterKey{}, r)
}

// ReporterOf returns the sender of the requests with ctx; nil: none is known.
func ReporterOf(ctx context.Context) Reporter {
	r, _ := ctx.Value(reporterKey{}).(Reporter)
	return r
}

// ReportedTo returns what the sender of the requests with ctx reports to; nil: nothing.
func ReportedTo(ctx context.Context) any {
	if r := ReporterOf(ctx); r != nil {
		return r.ReportsTo()
	}
	return nil
}
