// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/testing/logtest"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// transport is an API server with one answer.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTrace_RequestsOfAReconcileBelongToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var spans logtest.SpanRecorder
		server := &warner{}
		m := newManager(t, manager.Options{
			Config:         &rest.Config{Host: "http://api.test", Transport: server},
			TracerProvider: &spans, Propagator: propagation.TraceContext{},
		})
		c := reconcile.New("website", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
			return reconcile.Result{}, m.Client().Get(ctx, key, &corev1.ConfigMap{})
		}, reconcile.Options{})
		keys := make(chan reconcile.Key, 1)
		keys <- reconcile.Key{Namespace: "prod", Name: "web"}
		c.Watch(source.Channel(keys, source.ChannelOptions{}))
		must(t, m.Add(c))
		stop, wait := run(t, m)
		synctest.Wait()
		stop()
		must(t, wait())

		runs, requests := spans.Named("reconcile website"), spans.Named("GET configmaps")
		if len(runs) != 1 || len(requests) != 1 {
			t.Fatalf("%d reconciles, %d requests for the object, want one each", len(runs), len(requests))
		}
		request := requests[0]
		if !request.IsOf(runs[0]) || request.Kind != trace.SpanKindClient || request.Ended().IsZero() || request.Failure() != "" {
			t.Errorf("the request is %+v, want an ended child of the reconcile", request)
		}
		for key, want := range map[string]string{
			"http.request.method": "GET", "http.response.status_code": "200", "server.address": "api.test",
			"url.path": "/api/v1/namespaces/prod/configmaps/web", "flyball.resource": "configmaps",
		} {
			if got := request.Attribute(key); got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
		if got := server.last.Get("Traceparent"); !strings.Contains(got, request.SpanContext().TraceID().String()+"-"+request.SpanContext().SpanID().String()) {
			t.Errorf("the server was told of the span %q, want that of the request", got)
		}
	})
}

// A Runnable that wraps a controller passes on its context, and nothing else.
func TestTrace_ReachesAControllerThatIsWrapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var spans logtest.SpanRecorder
		m := newManager(t, manager.Options{TracerProvider: &spans})
		c := reconcile.New("website", func(context.Context, reconcile.Key) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		}, reconcile.Options{})
		keys := make(chan reconcile.Key, 1)
		keys <- reconcile.Key{Namespace: "prod", Name: "web"}
		c.Watch(source.Channel(keys, source.ChannelOptions{}))
		must(t, m.Add(manager.RunnableFunc(c.Run)))
		stop, wait := run(t, m)
		synctest.Wait()
		stop()
		must(t, wait())
		if runs := spans.Named("reconcile website"); len(runs) != 1 {
			t.Errorf("%d spans of reconciles, want one: the provider is in the context", len(runs))
		}
	})
}

func TestTrace_RequestsThatFailAndThoseOfNobody(t *testing.T) {
	var spans logtest.SpanRecorder
	fate := errors.New("the wire is cut")
	var header http.Header
	m := newManager(t, manager.Options{
		Config: &rest.Config{Host: "http://api.test", Transport: transport(func(r *http.Request) (*http.Response, error) {
			if header = r.Header; fate != nil {
				return nil, fate
			}
			return answer(r, http.StatusForbidden, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: 403}), nil
		})},
		TracerProvider: &spans,
	})
	get := func(ctx context.Context) {
		if err := m.Client().Get(ctx, kube.Key{Namespace: "prod", Name: "web"}, &corev1.ConfigMap{}); err == nil {
			t.Error("the server answered")
		}
	}
	get(t.Context())
	if n := len(spans.Spans()); n != 0 {
		t.Errorf("%d spans of requests that belong to none", n)
	}
	ctx, span := spans.Tracer("").Start(t.Context(), "mine")
	get(ctx)
	fate = nil
	get(ctx)
	span.End()
	asked := spans.Named("GET")
	if len(asked) != 2 || asked[0].Failure() != "the wire is cut" || asked[1].Failure() != "Forbidden" || asked[1].Attribute("http.response.status_code") != "403" {
		t.Errorf("there are %d spans of requests, want one cut and one forbidden", len(asked))
	}
	for _, s := range asked {
		if !s.IsOf(spans.Named("mine")[0]) || s.Ended().IsZero() {
			t.Errorf("%s is no child of its caller's span, or has not ended", s.Name)
		}
	}
	if header.Get("Traceparent") != "" {
		t.Error("a header was written though no propagator was given")
	}
}

func TestTrace_ResourceOfAPath(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/namespaces/prod/configmaps/web":              "configmaps",
		"/api/v1/namespaces/prod/pods/web/eviction":           "pods/eviction",
		"/api/v1/namespaces":                                  "namespaces",
		"/api/v1/namespaces/prod":                             "namespaces",
		"/api/v1/namespaces/prod/status":                      "namespaces/status",
		"/api/v1/nodes/a/status":                              "nodes/status",
		"/apis/apps/v1/namespaces/prod/deployments":           "deployments.apps",
		"/apis/apps/v1/namespaces/prod/deployments/web/scale": "deployments.apps/scale",
		"/k8s/clusters/c-1/apis/example.dev/v1/websites/web":  "websites.example.dev",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/":    "clusterroles.rbac.authorization.k8s.io",
		"/api/v1": "", "/apis/apps/v1": "", "/apis": "", "/version": "", "/": "", "": "",
	} {
		if got := manager.ResourceOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestTrace_WithoutAProviderNothingStandsInTheWay(t *testing.T) {
	transports := func(m *manager.Manager) (names int) {
		cfg := m.Config()
		inner := transport(nil)
		for rt := cfg.WrapTransport(inner); ; names++ {
			w, ok := rt.(interface{ WrappedRoundTripper() http.RoundTripper })
			if !ok {
				return names
			}
			rt = w.WrappedRoundTripper()
		}
	}
	without := transports(newManager(t, manager.Options{TracerProvider: (*logtest.SpanRecorder)(nil), Propagator: propagation.TraceContext{}}))
	with := transports(newManager(t, manager.Options{TracerProvider: &logtest.SpanRecorder{}}))
	if without != 4 || with != 5 {
		t.Errorf("%d transports without a provider and %d with one, want 4, which bound answers, count and record requests and observe writes, and 5", without, with)
	}
}
