// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import "github.com/prometheus/client_golang/prometheus"

// eventCollector counts the events that were told.
type eventCollector struct {
	told *prometheus.Desc
	mail *eventMail
}

func newEventCollector(mail *eventMail) eventCollector {
	return eventCollector{prometheus.NewDesc("flyball_events_total",
		"Events that recorders were told, by what became of them.", []string{"result"}, nil), mail}
}

// Describe implements prometheus.Collector.
func (c eventCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.told }

// Collect implements prometheus.Collector.
func (c eventCollector) Collect(ch chan<- prometheus.Metric) {
	counts := c.mail.counts()
	for _, result := range []eventResult{eventAccepted, eventCounted, eventMerged, eventLimited, eventOverflow} {
		send(ch, c.told, func() (prometheus.Metric, error) {
			return prometheus.NewConstMetric(c.told, prometheus.CounterValue, float64(counts[result]), string(result))
		})
	}
}
