// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/webhook"
)

// webhookCollector exposes the metrics of webhooks, if there are any.
type webhookCollector struct {
	inFlight, latency, codes, requests, panics, expiry *prometheus.Desc

	server func() *webhook.Server // nil: not requested
}

func newWebhookCollector(server func() *webhook.Server) webhookCollector {
	of := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return webhookCollector{
		inFlight: of("controller_runtime_webhook_requests_in_flight", "Requests of the API server that are being answered.", "webhook"),
		latency:  of("controller_runtime_webhook_latency_seconds", "How long answers to the API server took.", "webhook"),
		codes:    of("controller_runtime_webhook_requests_total", "Requests of the API server by the HTTP status of the answer.", "webhook", "code"),
		requests: of("flyball_webhook_requests_total", "Requests of the API server by how they ended: passed, denied or failed.", "webhook", "outcome"),
		panics:   of("flyball_webhook_panics_total", "Calls of a webhook's function that panicked.", "webhook"),
		expiry:   of("flyball_webhook_certificate_expiry_timestamp_seconds", "When the certificate that is served expires, in Unix time."),
		server:   server,
	}
}

// Describe implements prometheus.Collector.
func (c webhookCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.inFlight, c.latency, c.codes, c.requests, c.panics, c.expiry} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (c webhookCollector) Collect(ch chan<- prometheus.Metric) {
	server := c.server()
	if server == nil {
		return
	}
	snap := server.Snapshot()
	var out samples
	for _, w := range snap.Webhooks {
		out.add(c.inFlight, prometheus.GaugeValue, float64(w.InFlight), w.Path)
		out.add(c.panics, prometheus.CounterValue, float64(w.Panics), w.Path)
		for code, n := range w.Codes {
			out.add(c.codes, prometheus.CounterValue, float64(n), w.Path, strconv.Itoa(code))
		}
		out.add(c.requests, prometheus.CounterValue, float64(w.Passed), w.Path, "passed")
		out.add(c.requests, prometheus.CounterValue, float64(w.Denied), w.Path, "denied")
		out.add(c.requests, prometheus.CounterValue, float64(w.Failed), w.Path, "failed")
		sendHistogram(ch, c.latency, w.Latency, w.Path)
	}
	if !snap.NotAfter.IsZero() {
		out.add(c.expiry, prometheus.GaugeValue, float64(snap.NotAfter.Unix()))
	}
	out.send(ch)
}
