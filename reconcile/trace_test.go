// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/testing/logtest"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// tracing runs a controller with one worker that calls f, and passes test a function
// that adds keys.
func tracing(t *testing.T, f reconcile.Func[string], test func(t *testing.T, spans *logtest.SpanRecorder, log *journal, say func(key string))) {
	synctest.Test(t, func(t *testing.T) {
		var spans logtest.SpanRecorder
		var log journal
		c := reconcile.New("website", f, reconcile.KeyedOptions[string]{Workers: 1, Logger: log.logger(), TracerProvider: &spans})
		keys := make(chan string)
		c.Watch(source.Channel(keys, source.ChannelOptions{Name: "hooks"}))
		start(t, c)
		test(t, &spans, &log, func(key string) {
			keys <- key
			synctest.Wait()
		})
		for _, s := range spans.Spans() {
			if s.Ended().Before(s.Start) {
				t.Errorf("span %q has not ended, or before its start", s.Name)
			}
		}
	})
}

func TestTrace_EventQueueAndReconcileAreOneTrace(t *testing.T) {
	var seen []trace.SpanContext
	tracing(t, func(ctx context.Context, key string) (reconcile.Result, error) {
		seen = append(seen, trace.SpanContextFromContext(ctx))
		time.Sleep(3 * time.Second)
		return reconcile.Result{}, nil
	}, func(t *testing.T, spans *logtest.SpanRecorder, log *journal, say func(string)) {
		say("a")
		say("b") // waits for the one worker
		time.Sleep(time.Minute)
		synctest.Wait()
		events, queues, runs := spans.Named("event channel hooks"), spans.Named("queue website"), spans.Named("reconcile website")
		if len(events) != 2 || len(queues) != 2 || len(runs) != 2 {
			t.Fatalf("there are %d events, %d queues, %d reconciles, want two of each", len(events), len(queues), len(runs))
		}
		for i, run := range runs {
			if !run.IsOf(events[i]) || !queues[i].IsOf(events[i]) || events[i].Parent.IsValid() {
				t.Errorf("%s: the event is not what reconcile and queue belong to", run.Attribute("flyball.key"))
			}
			if seen[i].SpanID() != run.SpanContext().SpanID() {
				t.Errorf("the reconcile's context has span %s, want its own, %s", seen[i].SpanID(), run.SpanContext().SpanID())
			}
			if took := run.Ended().Sub(run.Start); took != 3*time.Second {
				t.Errorf("the reconcile's span took %v, want 3s", took)
			}
		}
		if waited := queues[1].Ended().Sub(queues[1].Start); waited != 3*time.Second {
			t.Errorf("b waited %v, want the 3s of a", waited)
		}
		for key, want := range map[string]string{
			"flyball.controller": "website", "flyball.key": "b", "flyball.attempt": "1", "flyball.events": "1",
			"flyball.priority": "0", "flyball.outcome": "done",
		} {
			if got := runs[1].Attribute(key); got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
	})
}

func TestTrace_MergedEventsAreLinked(t *testing.T) {
	tracing(t, func(ctx context.Context, key string) (reconcile.Result, error) {
		time.Sleep(time.Second)
		return reconcile.Result{}, nil
	}, func(t *testing.T, spans *logtest.SpanRecorder, log *journal, say func(string)) {
		spans.Unsampled = func(string) bool { return len(spans.Named("event")) == 2 } // the third
		for range 30 {
			say("a")
		}
		time.Sleep(time.Minute)
		events, runs := spans.Named("event"), spans.Named("reconcile")
		if len(runs) != 2 || len(runs[0].Links) != 0 || runs[1].Attribute("flyball.events") != "29" {
			t.Fatalf("%d reconciles, the last of %s events; want 2, of 1 event and of the 29 that came meanwhile", len(runs), runs[len(runs)-1].Attribute("flyball.events"))
		}
		if second := runs[1]; !second.IsOf(events[1]) || second.LinksTo(events[1]) || second.LinksTo(events[2]) || !second.LinksTo(events[3]) || len(second.Links) != 16 {
			t.Errorf("the second has %d links; want it to belong to the first event after the other, and to link to 16 more that are recorded", len(second.Links))
		}
	})
}

func TestTrace_RunsWithoutAnEventLinkToTheRunBefore(t *testing.T) {
	n := 0
	tracing(t, func(ctx context.Context, key string) (reconcile.Result, error) {
		n++
		switch n {
		case 1:
			return reconcile.Result{}, errors.New("no")
		case 2:
			seven := 7
			return reconcile.Result{RequeueAfter: time.Hour, Priority: &seven}, nil
		case 3:
			panic("boom")
		case 4:
			return reconcile.Result{}, reconcile.Terminal(errors.New("never"))
		}
		return reconcile.Result{}, nil
	}, func(t *testing.T, spans *logtest.SpanRecorder, log *journal, say func(string)) {
		say("a")
		time.Sleep(2 * time.Hour)
		say("a")
		time.Sleep(time.Minute)
		runs := spans.Named("reconcile")
		var got []string
		for i, run := range runs {
			linked := i > 0 && len(run.Links) == 1 && run.LinksTo(runs[i-1])
			got = append(got, fmt.Sprint(run.Attribute("flyball.outcome"), " attempt ", run.Attribute("flyball.attempt"),
				" priority ", run.Attribute("flyball.priority"), " of an event ", run.Parent.IsValid(), " linked ", linked, " ", strings.SplitN(run.Failure(), "\n", 2)[0]))
		}
		want := []string{
			"error attempt 1 priority 0 of an event true linked false no",
			"after attempt 2 priority 0 of an event false linked true ",
			"panic attempt 1 priority 7 of an event false linked true reconcile panicked: boom",
			"terminal attempt 2 priority 7 of an event false linked true never",
			"done attempt 1 priority 0 of an event true linked false ",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if len(spans.Named("queue")) != 2 {
			t.Errorf("%d spans of the queue, want those of the two events: backoff is no waiting for a worker", len(spans.Named("queue")))
		}
		if lines := log.lines("traceID", runs[2].SpanContext().TraceID().String()); len(lines) != 1 {
			t.Errorf("%d log lines have the traceID of the panic, want its one", len(lines))
		}
	})
}

// A reconcile does not belong to the span in which the program called Run.
func TestTrace_RunsDoNotBelongToTheProgramsSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var spans logtest.SpanRecorder
		n := 0
		c := reconcile.New("website", func(ctx context.Context, key string) (reconcile.Result, error) {
			if n++; n == 1 {
				return reconcile.After(time.Second, ""), nil
			}
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{TracerProvider: &spans})
		keys := make(chan string, 1)
		keys <- "a"
		c.Watch(source.Channel(keys, source.ChannelOptions{}))
		ctx, program := spans.Tracer("").Start(t.Context(), "program")
		ctx, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		if err := c.Run(ctx); err != nil {
			t.Fatal(err)
		}
		for _, s := range spans.Spans() {
			if s.SpanContext().TraceID() == program.SpanContext().TraceID() && s.Name != "program" {
				t.Errorf("%s belongs to the program's trace, which never ends", s.Name)
			}
		}
	})
}

func TestTrace_NilProviderIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran int
		f := func(ctx context.Context, key string) (reconcile.Result, error) {
			ran++
			if trace.SpanContextFromContext(ctx).IsValid() {
				t.Error("there is a span without a provider")
			}
			return reconcile.Result{}, nil
		}
		c := reconcile.New("website", f, reconcile.KeyedOptions[string]{TracerProvider: (*logtest.SpanRecorder)(nil)})
		keys := make(chan string, 1)
		keys <- "a"
		c.Watch(source.Channel(keys, source.ChannelOptions{}))
		start(t, c)
		synctest.Wait()
		if ran != 1 {
			t.Errorf("reconcile ran %d times for one key, want once", ran)
		}
	})
}

// Without a provider an empty reconcile costs three allocations, as without tracing:
// its run, and the context with its cancel function.
func TestTrace_CostsNothingWithoutAProvider(t *testing.T) {
	const keys = 1000
	var done sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := reconcile.New("website", func(context.Context, string) (reconcile.Result, error) {
		done.Done()
		return reconcile.Result{}, nil
	}, reconcile.KeyedOptions[string]{Logger: logr.Discard(), RecordRuns: -1})
	fed := make(chan string, keys)
	c.Watch(source.Channel(fed, source.ChannelOptions{}))
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	each := testing.AllocsPerRun(20, func() {
		done.Add(keys)
		for _, name := range names {
			fed <- name
		}
		done.Wait()
	}) / keys
	stop()
	running.Wait()
	if each > 3.5 {
		t.Errorf("a reconcile costs %.1f allocations, want 3", each)
	}
}

// An object that names the trace for which it was written makes its reconciles belong to that.
func TestTrace_OfTheObjectIsTheParent(t *testing.T) {
	const trace128, span64 = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for annotation, want := range map[string]string{
		`{"traceparent":"00-` + trace128 + `-` + span64 + `-01","baggage":"x=y"}`: span64,
		`{"traceparent":"nonsense"}`: "",
		`["traceparent"]`:            "",
		`{"traceparent":"00-` + trace128 + `-` + span64 + `-01","more":"` + strings.Repeat("x", 4096) + `"}`: "",
	} {
		synctest.Test(t, func(t *testing.T) {
			var spans logtest.SpanRecorder
			var inside string
			s := newNaming(func(func(string, source.Cause)) {})
			c := reconcile.New("website", func(ctx context.Context, key string) (reconcile.Result, error) {
				inside = contextvalues.TraceContextOf(ctx)
				return reconcile.Result{}, nil
			}, reconcile.KeyedOptions[string]{TracerProvider: &spans})
			c.Watch(s)
			start(t, c)
			synctest.Wait()
			s.name("a", source.Cause{Source: "kind Website", Type: kube.Added, TraceContext: annotation})
			synctest.Wait()
			events, runs := spans.Named("event kind Website"), spans.Named("reconcile website")
			if len(events) != 1 || len(runs) != 1 || !runs[0].IsOf(events[0]) {
				t.Fatalf("%d events, %d reconciles; want one of each, in one trace", len(events), len(runs))
			}
			parent := events[0].Parent
			if got := parent.IsValid(); got != (want != "") || got && (parent.SpanID().String() != want || !parent.IsRemote()) {
				t.Errorf("the parent of the event is %s for %s", parent.SpanID(), annotation)
			}
			if id := runs[0].SpanContext().SpanID().String(); !strings.Contains(inside, id) {
				t.Errorf("the reconcile with the span %s writes %s", id, inside)
			}
		})
	}
}
