// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"
)

type eventCollector struct {
	events *prometheus.Desc
	read   func() iter.Seq2[string, uint64]
}

func newEventCollector(read func() iter.Seq2[string, uint64]) eventCollector {
	return eventCollector{prometheus.NewDesc("flyball_events_total",
		"Events given to recorders, by result.", []string{"result"}, nil), read}
}

// Describe implements prometheus.Collector.
func (c eventCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.events }

// Collect implements prometheus.Collector.
func (c eventCollector) Collect(ch chan<- prometheus.Metric) {
	for result, count := range c.read() {
		send(ch, c.events, func() (prometheus.Metric, error) {
			return prometheus.NewConstMetric(c.events, prometheus.CounterValue, float64(count), result)
		})
	}
}
