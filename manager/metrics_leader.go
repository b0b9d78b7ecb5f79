// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import "github.com/prometheus/client_golang/prometheus"

// leaderCollector shows who leads, under the name that dashboards expect.
type leaderCollector struct {
	status, refused *prometheus.Desc
	lease           *lease
}

func newLeaderCollector(l *lease) leaderCollector {
	of := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, []string{"name"}, nil) }
	return leaderCollector{
		status:  of("leader_election_master_status", "1 if this process holds the lease of that name, 0 if it stands by."),
		refused: of("flyball_leader_refused_writes_total", "Writes of controllers that were refused or given up because the lease could not be trusted."),
		lease:   l,
	}
}

// Describe implements prometheus.Collector.
func (c leaderCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.status
	ch <- c.refused
}

// Collect implements prometheus.Collector.
func (c leaderCollector) Collect(ch chan<- prometheus.Metric) {
	value := 0.0
	if c.lease.snapshot().Leading {
		value = 1
	}
	send(ch, c.status, func() (prometheus.Metric, error) {
		return prometheus.NewConstMetric(c.status, prometheus.GaugeValue, value, c.lease.key.Name)
	})
	send(ch, c.refused, func() (prometheus.Metric, error) {
		return prometheus.NewConstMetric(c.refused, prometheus.CounterValue, float64(c.lease.gate.refused.Load()), c.lease.key.Name)
	})
}
