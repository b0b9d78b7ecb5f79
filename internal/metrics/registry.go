// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"iter"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/webhook"
)

// Sources are read at each scrape.
type Sources struct {
	Controllers func() []reconcile.Snapshot
	Informers   func() []state.Informer
	// Scopes of a kind with their own series, see Options.MetricsScopes of package
	// manager.
	Scopes   int
	Webhooks func() *webhook.Server // nil: not requested
	Events   func() iter.Seq2[string, uint64]
	Requests *Requests
	Leader   func() Leader  // nil: there is no election
	Sharing  func() Sharing // nil: replicas do not share the work
}

// Register registers collectors of all metrics.
func (from Sources) Register(registry *prometheus.Registry) error {
	var failed []error
	if from.Sharing != nil {
		failed = append(failed, registry.Register(newSharingCollector(from.Sharing)))
	}
	if from.Leader != nil {
		failed = append(failed, registry.Register(newLeaderCollector(from.Leader)))
	}
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		from.Requests.total,
		newEventCollector(from.Events),
		controllerCollector{newControllerMetrics(), from.Controllers},
		informerCollector{newInformerMetrics(), from.Informers, from.Scopes},
		newWebhookCollector(from.Webhooks),
	} {
		failed = append(failed, registry.Register(c))
	}
	return errors.Join(failed...)
}

// Scrapes serves the metrics that can be gathered; it omits and logs the rest.
func Scrapes(registry *prometheus.Registry, log logr.Logger) http.Handler {
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
		ErrorLog:      scrapeLog{log},
	})
}

type scrapeLog struct{ log logr.Logger }

func (l scrapeLog) Println(v ...any) {
	l.log.Error(errors.Join(errorsIn(v)...), "Metrics are incomplete")
}

func errorsIn(v []any) []error {
	var out []error
	for _, x := range v {
		if err, ok := x.(error); ok {
			out = append(out, err)
		}
	}
	return out
}

// samples collects the values of one scrape. It merges samples with the same metric and
// labels, because Prometheus rejects duplicates: two informers of a kind, two sources
// of a name.
type samples struct {
	values map[sampleKey]*sample
	order  []*sample
}

type sampleKey struct {
	desc   *prometheus.Desc
	labels string
}

type sample struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	value  float64
	labels []string
}

func (s *samples) add(desc *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
	s.at(desc, kind, labels).value += v
}

func (s *samples) peak(desc *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
	x := s.at(desc, kind, labels)
	x.value = max(x.value, v)
}

func (s *samples) at(desc *prometheus.Desc, kind prometheus.ValueType, labels []string) *sample {
	key := sampleKey{desc, strings.Join(labels, "\xff")}
	if x, ok := s.values[key]; ok {
		return x
	}
	x := &sample{desc: desc, kind: kind, labels: labels}
	if s.values == nil {
		s.values = map[sampleKey]*sample{}
	}
	s.values[key] = x
	s.order = append(s.order, x)
	return x
}

func (s *samples) send(ch chan<- prometheus.Metric) {
	for _, x := range s.order {
		send(ch, x.desc, func() (prometheus.Metric, error) {
			return prometheus.NewConstMetric(x.desc, x.kind, x.value, clean(x.labels)...)
		})
	}
}

// send sends the metric, or the error of creating it.
func send(ch chan<- prometheus.Metric, desc *prometheus.Desc, make func() (prometheus.Metric, error)) {
	metric, err := make()
	if err != nil {
		metric = prometheus.NewInvalidMetric(desc, err)
	}
	ch <- metric
}

// clean makes labels valid UTF-8, as Prometheus requires.
func clean(labels []string) []string {
	out := make([]string, len(labels))
	for i, l := range labels {
		out[i] = strings.ToValidUTF8(l, "?")
	}
	return out
}
