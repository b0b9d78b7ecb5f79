// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"context"
	"time"

	clientgo "k8s.io/client-go/util/workqueue"

	"github.com/flyball-dev/flyball/workqueue"
)

// interval is the time between two readings of the work in progress, as in client-go.
const interval = 500 * time.Millisecond

// Metrics passes a queue's metrics to a client-go provider. Set it as [workqueue.Options.Observer] of one queue.
type Metrics struct {
	depth         clientgo.GaugeMetric
	adds, retries clientgo.CounterMetric
	latency, work clientgo.HistogramMetric
	unfinished    clientgo.SettableGaugeMetric
	longest       clientgo.SettableGaugeMetric
}

var _ workqueue.Observer = (*Metrics)(nil)

// NewMetrics creates the metrics of the queue called name.
func NewMetrics(provider clientgo.MetricsProvider, name string) *Metrics {
	return &Metrics{
		depth:      provider.NewDepthMetric(name),
		adds:       provider.NewAddsMetric(name),
		retries:    provider.NewRetriesMetric(name),
		latency:    provider.NewLatencyMetric(name),
		work:       provider.NewWorkDurationMetric(name),
		unfinished: provider.NewUnfinishedWorkSecondsMetric(name),
		longest:    provider.NewLongestRunningProcessorSecondsMetric(name),
	}
}

// Added implements [workqueue.Observer].
func (m *Metrics) Added() {
	m.adds.Inc()
	m.depth.Inc()
}

// Retried implements [workqueue.Observer].
func (m *Metrics) Retried() { m.retries.Inc() }

// HandedOut implements [workqueue.Observer].
func (m *Metrics) HandedOut(waited time.Duration) {
	m.depth.Dec()
	m.latency.Observe(waited.Seconds())
}

// Canceled implements [workqueue.CancelObserver].
func (m *Metrics) Canceled() { m.depth.Dec() }

// Done implements [workqueue.Observer].
func (m *Metrics) Done(worked time.Duration) { m.work.Observe(worked.Seconds()) }

// Run sets the two gauges of work in progress twice a second until ctx ends. queue is the [workqueue.Queue] that m observes.
// It always returns nil.
func (m *Metrics) Run(ctx context.Context, queue interface{ Stats() workqueue.Stats }) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		stats := queue.Stats()
		m.unfinished.Set(stats.Unfinished.Seconds())
		m.longest.Set(stats.OldestHeld.Seconds())
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
