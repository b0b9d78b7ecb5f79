// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/flyball-dev/flyball/manager"
)

// traceTo makes the manager append its spans to a file, one JSON object per line; "-" is
// standard error. Call finish after the manager has ended to flush. To send spans to a
// collector, give the provider an exporter of otlptracehttp instead.
func traceTo(opts *manager.Options, name string) (finish func() error, err error) {
	out := os.Stderr
	closeFile := func() error { return nil }
	if name != "-" {
		if out, err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return nil, fmt.Errorf("trace: %w", err)
		}
		closeFile = out.Close
	}
	exporter, err := stdouttrace.New(stdouttrace.WithWriter(out))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("trace: %w", err), closeFile())
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "website"))))
	opts.TracerProvider, opts.Propagator = provider, propagation.TraceContext{}
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) // the manager's context has ended
		defer cancel()
		return errors.Join(provider.Shutdown(ctx), closeFile())
	}, nil
}
