// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"encoding/json"
	"math"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/flyball-dev/flyball/source"
)

// maxLinks bounds the links of a reconcile's span, besides its parent.
const maxLinks = 16

// traces creates the spans of a controller. It remembers why each waiting key was
// added.
type traces[K comparable] struct {
	controller string
	tracer     trace.Tracer

	mu struct {
		sync.Mutex
		origins map[K]origin
	}
}

// origin is why a key runs.
type origin struct {
	event    trace.SpanContext // the first event; invalid: none
	since    time.Time         // of the event
	links    []trace.Link
	events   int
	priority int8 // as in the queue
}

func newTraces[K comparable](controller string, provider trace.TracerProvider) *traces[K] {
	t := &traces[K]{controller: controller, tracer: provider.Tracer("github.com/flyball-dev/flyball/reconcile")}
	t.mu.origins = make(map[K]origin)
	return t
}

// recordEvent creates the span of an event. It is called before the key is added, so that the
// run finds it.
func (t *traces[K]) recordEvent(key K, cause source.Cause, priority int) {
	if key != key { // a NaN could not be found again
		return
	}
	now, prio := time.Now(), inQueue(priority)
	parent, first := parentIn(cause.TraceContext)
	_, span := t.tracer.Start(parent, "event "+cause.Source, first, trace.WithTimestamp(now), trace.WithAttributes(
		attribute.String("flyball.controller", t.controller),
		attribute.String("flyball.key", keyText(key)),
		attribute.String("flyball.event", cause.Type.String()),
		attribute.String("flyball.object", keyText(cause.Object)),
		attribute.Int64("flyball.generation", cause.Generation),
		attribute.Bool("flyball.initial", cause.Initial),
	))
	span.End(trace.WithTimestamp(now))

	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.mu.origins[key]
	if o.events == 0 {
		o.event, o.since, o.priority = span.SpanContext(), now, prio
	} else {
		o.link(span.SpanContext(), "event")
	}
	o.events++
	o.priority = max(o.priority, prio)
	t.mu.origins[key] = o
}

// mostTraceContext bounds the annotation that is read, in bytes. tracestate has up to 512.
const mostTraceContext = 2048

// parentIn returns the context of the span that a kube.TraceContextAnnotation names, or an empty
// one for a new trace, and the option that goes with it.
func parentIn(annotation string) (context.Context, trace.SpanStartOption) {
	ctx := context.Background()
	var headers propagation.MapCarrier
	if annotation == "" || len(annotation) > mostTraceContext || json.Unmarshal([]byte(annotation), &headers) != nil {
		return ctx, trace.WithNewRoot()
	}
	ctx = propagation.TraceContext{}.Extract(ctx, headers)
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, trace.WithNewRoot()
	}
	return ctx, trace.WithSpanKind(trace.SpanKindInternal)
}

// spanIn returns the span of ctx for a kube.TraceContextAnnotation. Empty: there is none.
func spanIn(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, headers)
	text, _ := json.Marshal(headers) // a map of strings
	return string(text)
}

// inQueue converts a priority to the range of the queue.
func inQueue(p int) int8 { return int8(min(max(p, math.MinInt8), math.MaxInt8)) }

// link adds a link to another span, if that is sampled.
func (o *origin) link(to trace.SpanContext, what string) {
	if to.IsSampled() && len(o.links) < maxLinks {
		o.links = append(o.links, trace.Link{SpanContext: to, Attributes: []attribute.KeyValue{attribute.String("flyball.link", what)}})
	}
}

// take returns the origin of key, and removes it.
func (t *traces[K]) take(key K) origin {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.mu.origins[key]
	delete(t.mu.origins, key)
	return o
}

// begin starts the span of a run of key that began at since, and returns a context with
// it. attempt is 1 without earlier failures. The priority is for end.
func (t *traces[K]) begin(ctx context.Context, key K, id string, since time.Time, attempt int, why Causes) (traced context.Context, priority int8) {
	o := t.take(key)
	parent, first := ctx, trace.WithNewRoot()
	if o.event.IsValid() {
		parent, first = trace.ContextWithSpanContext(ctx, o.event), trace.WithSpanKind(trace.SpanKindInternal)
		_, queue := t.tracer.Start(parent, "queue "+t.controller, trace.WithTimestamp(o.since))
		queue.End(trace.WithTimestamp(since))
	}
	traced, _ = t.tracer.Start(parent, "reconcile "+t.controller, first, trace.WithTimestamp(since), trace.WithLinks(o.links...), trace.WithAttributes(
		attribute.String("flyball.controller", t.controller),
		attribute.String("flyball.key", keyText(key)),
		attribute.String("flyball.reconcile_id", id),
		attribute.Int("flyball.priority", int(o.priority)),
		attribute.Int("flyball.attempt", attempt),
		attribute.Int("flyball.events", o.events),
		attribute.String("flyball.cause", why.String()),
	))
	return traced, o.priority
}

// end ends the span of begin, and makes the next run link to it.
func (t *traces[K]) end(traced context.Context, key K, priority int8, a action, err error) {
	span := trace.SpanFromContext(traced)
	span.SetAttributes(attribute.String("flyball.outcome", string(a.outcome)))
	if a.after > 0 {
		span.SetAttributes(attribute.Float64("flyball.after_seconds", a.after.Seconds()))
	}
	if a.outcome.verbosity() == 0 { // outcomes that need attention
		_ = guarded(func() { // a method of the error may panic
			span.SetStatus(codes.Error, err.Error())
			span.RecordError(err)
		})
	}
	span.End()
	if a.after == 0 && !a.backoff || key != key {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.mu.origins[key]
	o.link(span.SpanContext(), "run before")
	if o.events == 0 {
		if o.priority = priority; a.priority != nil {
			o.priority = inQueue(*a.priority)
		}
	}
	t.mu.origins[key] = o
}
