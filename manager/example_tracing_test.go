// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"fmt"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/flyball-dev/flyball/manager"
)

func newTracedManager(provider trace.TracerProvider) (*manager.Manager, error) {
	return manager.New(manager.Options{
		TracerProvider: provider,
		Propagator:     propagation.TraceContext{},
	})
}

// The provider comes from OpenTelemetry's SDK; this one drops every span.
func ExampleOptions_tracing() {
	mgr, err := newTracedManager(noop.NewTracerProvider())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := mgr.Run(manager.SignalContext()); err != nil {
		fmt.Println(err)
	}
}
