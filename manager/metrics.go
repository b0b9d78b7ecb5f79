// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// observe registers all that the manager knows with its own registry.
func (m *Manager) observe(opts Options) error {
	var failed []error
	if m.elector != nil {
		failed = append(failed, m.registry.Register(newLeaderCollector(m.elector.lease)))
	}
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.requests.total,
		newEventCollector(m.mail),
		controllerCollector{newControllerMetrics(), m.allControllers},
		informerCollector{newInformerMetrics(), m.allInformers, opts.MetricsScopes},
		newWebhookCollector(m.webhookServer),
	} {
		failed = append(failed, m.registry.Register(c))
	}
	return errors.Join(failed...)
}

// metricsHandler answers on the port of the metrics.
func (m *Manager) metricsHandler(as Serving) (http.Handler, error) {
	mux := http.NewServeMux()
	// What cannot be gathered is left out, and the rest is shown.
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
		ErrorLog:      scrapeLog{m},
	}))
	if as.Profiling {
		serveProfiles(mux)
	}
	if !as.Guard {
		return mux, nil
	}
	return newGuard(m.standby, m.log.WithValues("server", "metrics"), mux)
}

// scrapeLog is where promhttp says what could not be gathered.
type scrapeLog struct{ m *Manager }

func (l scrapeLog) Println(v ...any) {
	l.m.log.Error(errors.Join(errorsIn(v)...), "metrics are incomplete")
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

// samples gathers the values of one scrape. Two of the same metric and labels
// become one, since Prometheus refuses twins: two informers of a kind, two
// sources of a name.
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

// add adds v to the metric's value.
func (s *samples) add(desc *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
	s.at(desc, kind, labels).value += v
}

// peak raises the metric's value to v.
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

// send sends the metric, or in its place the error that it could not be made.
func send(ch chan<- prometheus.Metric, desc *prometheus.Desc, make func() (prometheus.Metric, error)) {
	metric, err := make()
	if err != nil {
		metric = prometheus.NewInvalidMetric(desc, err)
	}
	ch <- metric
}

// clean makes labels the UTF-8 that Prometheus asks for.
func clean(labels []string) []string {
	out := make([]string, len(labels))
	for i, l := range labels {
		out[i] = strings.ToValidUTF8(l, "?")
	}
	return out
}
