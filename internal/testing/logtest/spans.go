// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package logtest

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"
)

// SpanRecorder is a TracerProvider. The zero value is ready to use. Safe for
// concurrent use.
type SpanRecorder struct {
	embedded.TracerProvider
	// Unsampled excludes spans by name.
	Unsampled func(name string) bool

	mu struct {
		sync.Mutex
		spans []*Span
	}
}

// Tracer implements trace.TracerProvider.
func (r *SpanRecorder) Tracer(string, ...trace.TracerOption) trace.Tracer {
	return spanTracer{recorder: r}
}

// Spans returns the started spans in order.
func (r *SpanRecorder) Spans() []*Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.mu.spans)
}

// Named returns the spans whose names begin with prefix.
func (r *SpanRecorder) Named(prefix string) []*Span {
	return slices.DeleteFunc(r.Spans(), func(s *Span) bool { return !strings.HasPrefix(s.Name, prefix) })
}

type spanTracer struct {
	embedded.Tracer
	recorder *SpanRecorder
}

// Start implements trace.Tracer.
func (t spanTracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	config := trace.NewSpanStartConfig(opts...)
	s := &Span{Name: name, Kind: config.SpanKind(), Links: config.Links(), Start: config.Timestamp()}
	if s.Start.IsZero() {
		s.Start = time.Now()
	}
	if !config.NewRoot() {
		s.Parent = trace.SpanContextFromContext(ctx)
	}
	s.mu.attributes = attribute.NewSet(config.Attributes()...)
	r := t.recorder
	unsampled := r.Unsampled != nil && r.Unsampled(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.spans = append(r.mu.spans, s)
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], uint64(len(r.mu.spans)))
	own := trace.SpanContextConfig{SpanID: id, TraceID: trace.TraceID{15: id[7], 14: id[6]}, TraceFlags: trace.FlagsSampled}
	if s.Parent.IsValid() {
		own.TraceID = s.Parent.TraceID()
	}
	if unsampled {
		own.TraceFlags = 0
	}
	s.context = trace.NewSpanContext(own)
	return trace.ContextWithSpan(ctx, s), s
}

type Span struct {
	noop.Span // for methods not needed in tests
	Name      string
	Kind      trace.SpanKind
	Parent    trace.SpanContext
	Links     []trace.Link
	Start     time.Time
	context   trace.SpanContext

	mu struct {
		sync.Mutex
		end         time.Time
		attributes  attribute.Set
		status      codes.Code
		description string
	}
}

// SpanContext implements trace.Span.
func (s *Span) SpanContext() trace.SpanContext { return s.context }

// End implements trace.Span.
func (s *Span) End(opts ...trace.SpanEndOption) {
	config := trace.NewSpanEndConfig(opts...)
	at := config.Timestamp()
	if at.IsZero() {
		at = time.Now()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.end.IsZero() {
		s.mu.end = at
	}
}

// SetAttributes implements trace.Span.
func (s *Span) SetAttributes(more ...attribute.KeyValue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.attributes = attribute.NewSet(append(s.mu.attributes.ToSlice(), more...)...)
}

// SetStatus implements trace.Span.
func (s *Span) SetStatus(code codes.Code, description string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.status, s.mu.description = code, description
}

// Ended returns when the span ended; zero: it has not.
func (s *Span) Ended() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.end
}

// Attribute returns the attribute of that key as text, empty if there is none.
func (s *Span) Attribute(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, _ := s.mu.attributes.Value(attribute.Key(key))
	return value.String()
}

// Failure returns the description of an error status, empty if there is none.
func (s *Span) Failure() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.status != codes.Error {
		return ""
	}
	return s.mu.description
}

// IsOf reports whether s is a child of parent.
func (s *Span) IsOf(parent *Span) bool { return s.Parent.SpanID() == parent.context.SpanID() }

// LinksTo reports whether s has a link to other.
func (s *Span) LinksTo(other *Span) bool {
	return slices.ContainsFunc(s.Links, func(l trace.Link) bool { return l.SpanContext.SpanID() == other.context.SpanID() })
}
