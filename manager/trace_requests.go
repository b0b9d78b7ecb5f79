// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"io"
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// requestTracer creates spans for requests whose context has a span, such as those of a
// reconcile, but not for the watches of informers, which have none and never end.
type requestTracer struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator // nil: none
}

func newRequestTracer(provider trace.TracerProvider, propagator propagation.TextMapPropagator) requestTracer {
	return requestTracer{provider.Tracer("github.com/flyball-dev/flyball/manager"), propagator}
}

func (t requestTracer) wrap(next http.RoundTripper) http.RoundTripper { return traced{next, t} }

type traced struct {
	next http.RoundTripper
	requestTracer
}

// RoundTrip implements http.RoundTripper. The span ends when the answer has been read.
func (t traced) RoundTrip(req *http.Request) (*http.Response, error) {
	if !trace.SpanContextFromContext(req.Context()).IsValid() {
		return t.next.RoundTrip(req)
	}
	resource := resourceOf(req.URL.Path)
	ctx, span := t.tracer.Start(req.Context(), strings.TrimSpace(req.Method+" "+resource), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("http.request.method", req.Method),
		attribute.String("server.address", req.URL.Hostname()),
		attribute.String("url.path", req.URL.Path),
		attribute.String("flyball.resource", resource),
	))
	req = req.Clone(ctx)
	if t.propagator != nil {
		t.propagator.Inject(ctx, propagation.HeaderCarrier(req.Header))
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
		span.End()
		return resp, err
	}
	span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	if resp.StatusCode >= http.StatusBadRequest {
		span.SetStatus(codes.Error, http.StatusText(resp.StatusCode))
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		span.End() // the connection is upgraded
		return resp, nil
	}
	resp.Body = tracedBody{resp.Body, span}
	return resp, nil
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (t traced) WrappedRoundTripper() http.RoundTripper { return t.next }

// resourceOf returns the resource in an API path, without names, such as
// "deployments.apps/status". Empty: none.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	// A proxy may add a prefix.
	i := slices.IndexFunc(parts, func(part string) bool { return part == "api" || part == "apis" })
	if i < 0 {
		return ""
	}
	group, rest := "", parts[i+1:]
	if parts[i] == "apis" && len(rest) > 0 {
		group, rest = "."+rest[0], rest[1:]
	}
	if len(rest) < 2 {
		return ""
	}
	rest = rest[1:] // after the version
	if len(rest) > 2 && rest[0] == "namespaces" && rest[2] != "status" && rest[2] != "finalize" {
		rest = rest[2:]
	}
	if len(rest) < 3 {
		return rest[0] + group
	}
	return rest[0] + group + "/" + rest[2]
}

// tracedBody is the body of an answer; closing it ends the span.
type tracedBody struct {
	io.ReadCloser
	span trace.Span
}

// Close implements io.Closer.
func (b tracedBody) Close() error {
	defer b.span.End()
	return b.ReadCloser.Close()
}
