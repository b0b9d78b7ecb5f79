// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package observability

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/embedded"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/webhook"
)

// family is one metric as a manager exposes it.
type family struct {
	labels []string
	values map[string][]string // of labels, as far as the scrape has samples
	sample bool                // the scrape has one
}

// exposition is the set of metrics of a running manager.
type exposition struct {
	families map[string]*family
	spans    tracetest.SpanStubs
}

var runOnce = sync.OnceValues(runManager)

// exposed returns the metrics of a manager that has led, reconciled, recorded an event and
// answered a webhook's request.
func exposed(t *testing.T) exposition {
	t.Helper()
	e, err := runOnce()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func runManager() (e exposition, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err = embedded.Run(ctx, embedded.Options{}, func(ctx context.Context, c embedded.Cluster) error {
		spans := tracetest.NewInMemoryExporter()
		m, err := manager.New(manager.Options{
			Config: c.Config, Logger: logr.FromSlogHandler(slog.DiscardHandler),
			MetricsAddress: "127.0.0.1:0", HealthAddress: "0", TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)),
			LeaderElection: &manager.LeaderElection{ID: "website", Namespace: "default"},
			Webhooks:       webhook.Options{Address: "127.0.0.1:0", DrainDelay: -1, Managed: &webhook.Managed{Namespace: "default", Service: "hooks"}},
		})
		if err != nil {
			return err
		}
		reconciled, err := addController(m)
		if err != nil {
			return err
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		var running sync.WaitGroup
		var ended error
		running.Go(func() {
			defer stop()
			ended = m.Run(ctx)
		})
		if err = await(ctx, reconciled); err == nil {
			err = callWebhook(ctx, m.Webhooks())
		}
		if err == nil {
			e.families, err = scrape(ctx, m)
		}
		if err == nil {
			err = e.addSharing(c)
		}
		stop()
		running.Wait()
		e.spans = spans.GetSpans()
		return errors.Join(err, ended)
	})
	return e, err
}

// addSharing adds the metrics of a manager whose replicas share the work.
func (e *exposition) addSharing(c embedded.Cluster) error {
	m, err := manager.New(manager.Options{
		Config: c.Config, Logger: logr.FromSlogHandler(slog.DiscardHandler), MetricsAddress: "0", HealthAddress: "0",
		LeaderElection: &manager.LeaderElection{ID: "website", Namespace: "default"}, Sharding: &manager.Sharding{Shards: 8},
	})
	if err != nil {
		return err
	}
	for name, f := range described(m.Metrics()) {
		if e.families[name] == nil {
			e.families[name] = f
		}
	}
	return nil
}

// addController adds a controller that annotates a ConfigMap; the channel closes when it
// has.
func addController(m *manager.Manager) (<-chan struct{}, error) {
	webhook.Validate(m.Webhooks(), "", func(context.Context, *webhook.Request, *corev1.Pod, *corev1.Pod) error { return nil })
	maps := informer.For[*corev1.ConfigMap](m.Informers())
	recorder := m.Events("stamper")
	done := make(chan struct{})
	var once sync.Once
	c := reconcile.New("stamper", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		cm, err := maps.Lister().Get(key)
		if err != nil {
			return reconcile.Result{}, reconcile.IgnoreNotFound(err)
		}
		if cm.Name != "web" {
			return reconcile.Result{}, nil
		}
		if cm.Data["stamp"] == "" {
			cm = kube.Copy(cm)
			cm.Data = map[string]string{"stamp": "1"}
			recorder.Eventf(cm, nil, corev1.EventTypeNormal, "Stamped", "Stamp", "it is stamped")
			return reconcile.Result{}, m.Client().Update(ctx, cm)
		}
		once.Do(func() { close(done) })
		return reconcile.Result{}, nil
	}, reconcile.Options{})
	c.Watch(source.Kind(maps, source.Self))
	first := manager.RunnableFunc(func(ctx context.Context) error {
		return m.Client().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
	})
	return done, errors.Join(m.Add(c), m.Add(first))
}

func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the reconcile: %w", context.Cause(ctx))
	}
}

// callWebhook sends a webhook a request that it refuses.
func callWebhook(ctx context.Context, hooks *webhook.Server) error {
	if err := await(ctx, hooks.Started()); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	paths := hooks.Snapshot().Webhooks
	if len(paths) == 0 {
		return errors.New("there is no webhook")
	}
	// Until the server has its certificate, connections fail.
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+hooks.Addr()+paths[0].Path, strings.NewReader("{}"))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err == nil {
			return resp.Body.Close()
		}
		if ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// scrape reads /metrics as Prometheus does, and adds the metrics without samples from the
// registry.
func scrape(ctx context.Context, m *manager.Manager) (map[string]*family, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.MetricsAddr()+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	scraped, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return nil, err
	}
	all := described(m.Metrics())
	for name, f := range scraped {
		if all[name] == nil {
			return nil, fmt.Errorf("%s is scraped but not described", name)
		}
		for _, sample := range f.GetMetric() {
			all[name].sample = true
			for _, l := range sample.GetLabel() {
				all[name].note(l)
			}
		}
	}
	return all, nil
}

func (f *family) note(l *dto.LabelPair) {
	if !slices.Contains(f.labels, l.GetName()) {
		f.labels = append(f.labels, l.GetName())
	}
	if !slices.Contains(f.values[l.GetName()], l.GetValue()) {
		f.values[l.GetName()] = append(f.values[l.GetName()], l.GetValue())
	}
}

// described returns the metrics of a registry, including those without samples.
func described(registry prometheus.Collector) map[string]*family {
	form := regexp.MustCompile(`fqName: "([^"]+)".* variableLabels: \{(.*)\}\}$`)
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		registry.Describe(descs)
	}()
	all := map[string]*family{}
	for d := range descs {
		found := form.FindStringSubmatch(d.String())
		if found == nil {
			continue
		}
		f := &family{values: map[string][]string{}}
		for _, label := range strings.Split(found[2], ",") {
			if label != "" {
				f.labels = append(f.labels, label)
			}
		}
		all[found[1]] = f
	}
	return all
}
