// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// Leader is the election as this process sees it.
type Leader struct {
	Lease   string // its name
	Leading bool
	Refused uint64 // writes refused or aborted because the lease was not trusted
}

// leaderCollector exposes the leader under the name that dashboards expect.
type leaderCollector struct {
	status, refused *prometheus.Desc
	read            func() Leader
}

func newLeaderCollector(read func() Leader) leaderCollector {
	of := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, []string{"name"}, nil) }
	return leaderCollector{
		status:  of("leader_election_master_status", "1 if this process holds the lease of that name, 0 if it stands by."),
		refused: of("flyball_leader_refused_writes_total", "Writes of controllers that were refused or cancelled because the lease could not be trusted."),
		read:    read,
	}
}

// Describe implements prometheus.Collector.
func (c leaderCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.status
	ch <- c.refused
}

// Collect implements prometheus.Collector.
func (c leaderCollector) Collect(ch chan<- prometheus.Metric) {
	now := c.read()
	send(ch, c.status, func() (prometheus.Metric, error) {
		return prometheus.NewConstMetric(c.status, prometheus.GaugeValue, oneIf(now.Leading), now.Lease)
	})
	send(ch, c.refused, func() (prometheus.Metric, error) {
		return prometheus.NewConstMetric(c.refused, prometheus.CounterValue, float64(now.Refused), now.Lease)
	})
}
