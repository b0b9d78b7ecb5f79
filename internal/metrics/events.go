// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"
)

type eventCollector struct {
	told *prometheus.Desc
	read func() iter.Seq2[string, uint64]
}

func newEventCollector(read func() iter.Seq2[string, uint64]) eventCollector {
	return eventCollector{prometheus.NewDesc("flyball_events_total",
		"Events given to recorders, by result.", []string{"result"}, nil), read}
}

// Describe implements prometheus.Collector.
func (c eventCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.told }

// Collect implements prometheus.Collector.
func (c eventCollector) Collect(ch chan<- prometheus.Metric) {
	for result, told := range c.read() {
		send(ch, c.told, func() (prometheus.Metric, error) {
			return prometheus.NewConstMetric(c.told, prometheus.CounterValue, float64(told), result)
		})
	}
}
