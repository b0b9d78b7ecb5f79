// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Sharing is how replicas share the work, as this process sees it.
type Sharing struct {
	Lease    string
	Replicas int
	Waits    bool
	Unheld   int               // shards that no process holds
	Shards   map[string]int    // of this process, by stage
	Requests map[string]uint64 // by purpose
	Refused  uint64
}

type sharingCollector struct {
	replicas, waits, unheld, shards, requests, refused *prometheus.Desc
	read                                               func() Sharing
}

func newSharingCollector(read func() Sharing) sharingCollector {
	of := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"name"}, more...), nil)
	}
	return sharingCollector{
		replicas: of("flyball_replicas", "Replicas that share the work, as this one sees it."),
		waits:    of("flyball_replica_waiting", "1 if this replica takes no shards, such as beside replicas with another number of them."),
		unheld:   of("flyball_unheld_shards", "Shards that no replica holds, as this one sees it."),
		shards:   of("flyball_replica_shards", "Shards of this replica: claimed (its informers catch up), held, or draining (reconciles end before it moves).", "stage"),
		requests: of("flyball_replica_lease_requests_total", "Requests of this replica for Leases, by purpose.", "purpose"),
		refused:  of("flyball_replica_refused_writes_total", "Writes of controllers that were refused or cancelled because this replica could not trust that it holds the shard."),
		read:     read,
	}
}

// Describe implements prometheus.Collector.
func (c sharingCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.replicas, c.waits, c.unheld, c.shards, c.requests, c.refused} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c sharingCollector) Collect(ch chan<- prometheus.Metric) {
	now := c.read()
	give := func(d *prometheus.Desc, as prometheus.ValueType, value float64, labels ...string) {
		send(ch, d, func() (prometheus.Metric, error) {
			return prometheus.NewConstMetric(d, as, value, append([]string{now.Lease}, labels...)...)
		})
	}
	give(c.replicas, prometheus.GaugeValue, float64(now.Replicas))
	give(c.waits, prometheus.GaugeValue, oneIf(now.Waits))
	give(c.unheld, prometheus.GaugeValue, float64(now.Unheld))
	for _, stage := range []string{"claimed", "held", "draining"} {
		give(c.shards, prometheus.GaugeValue, float64(now.Shards[stage]), stage)
	}
	for _, purpose := range slices.Sorted(maps.Keys(now.Requests)) {
		give(c.requests, prometheus.CounterValue, float64(now.Requests[purpose]), purpose)
	}
	give(c.refused, prometheus.CounterValue, float64(now.Refused))
}
