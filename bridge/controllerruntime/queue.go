// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientqueue "k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flyball-dev/flyball/bridge/clientgo/queues"
	"github.com/flyball-dev/flyball/workqueue"
)

// gaugesEvery is the time between two updates of the gauges of work in progress, as in client-go.
const gaugesEvery = 500 * time.Millisecond

// NewQueue is for controller.Options.NewQueue: flyball's queue, with controller-runtime's rate limiter, priorities and
// metrics. No key starves: a low priority gets at least a ninth of the hand-outs.
func NewQueue[K comparable](name string, limiter clientqueue.TypedRateLimiter[K]) clientqueue.TypedRateLimitingInterface[K] {
	return recording(name, newQueue(name, limiter, nil))
}

// NewFairQueue returns a NewQueue whose flows take turns within a priority, so that many keys of one do not block others.
// flow returns the flow of a key, such as its namespace, as workqueue.Options.FairBy.
func NewFairQueue[K comparable](flow func(K) string) func(string, clientqueue.TypedRateLimiter[K]) clientqueue.TypedRateLimitingInterface[K] {
	return func(name string, limiter clientqueue.TypedRateLimiter[K]) clientqueue.TypedRateLimitingInterface[K] {
		return recording(name, newQueue(name, limiter, flow))
	}
}

// queue is our queue as controller-runtime's.
type queue[K comparable] struct {
	*queues.LimitedQueue[K]
}

var _ priorityqueue.PriorityQueue[string] = (*queue[string])(nil)

func newQueue[K comparable](name string, limiter clientqueue.TypedRateLimiter[K], flow func(K) string) *queue[K] {
	p := registeredProvider()
	q := &queue[K]{queues.NewLimitedQueue(limiter, workqueue.Options[K]{Name: name, Observer: queues.NewMetrics(p, name), FairBy: flow})}
	q.show(p.NewUnfinishedWorkSecondsMetric(name), p.NewLongestRunningProcessorSecondsMetric(name))
	return q
}

// show sets the gauges of work in progress now and then, until the queue has been shut down and all is done.
func (q *queue[K]) show(unfinished, longest clientqueue.SettableGaugeMetric) {
	stats := q.Stats()
	unfinished.Set(stats.Unfinished.Seconds())
	longest.Set(stats.OldestHeld.Seconds())
	if stats.Held == 0 && q.Len() == 0 && q.ShuttingDown() {
		return
	}
	time.AfterFunc(gaugesEvery, func() { q.show(unfinished, longest) })
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *queue[K]) AddWithOpts(o priorityqueue.AddOpts, keys ...K) {
	if q.ShuttingDown() {
		return // the limiter must not count
	}
	for _, key := range keys {
		q.AddWith(key, workqueue.AddOptions{Priority: ptr.Deref(o.Priority, 0), After: o.After, RateLimited: o.RateLimited})
	}
}

// provider makes the metrics of a queue.
type provider struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	latency, work              *prometheus.HistogramVec
}

var _ clientqueue.MetricsProvider = provider{}

// registeredProvider returns the metrics that controller-runtime has registered for its own queues. They are found by their
// descriptions, since it does not export them.
func registeredProvider() provider {
	labels := []string{"name", "controller"}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return registered(prometheus.NewGaugeVec(prometheus.GaugeOpts{Subsystem: metrics.WorkQueueSubsystem, Name: name, Help: help}, labels))
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return registered(prometheus.NewCounterVec(prometheus.CounterOpts{Subsystem: metrics.WorkQueueSubsystem, Name: name, Help: help}, labels))
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return registered(prometheus.NewHistogramVec(prometheus.HistogramOpts{Subsystem: metrics.WorkQueueSubsystem, Name: name, Help: help}, labels))
	}
	return provider{
		depth: gauge(metrics.DepthKey, "Current depth of workqueue by workqueue and priority", "name", "controller", "priority"),
		unfinished: gauge(metrics.UnfinishedWorkKey, "How many seconds of work has been done that "+
			"is in progress and hasn't been observed by work_duration. Large "+
			"values indicate stuck threads. One can deduce the number of stuck "+
			"threads by observing the rate at which this increases.", labels...),
		longest: gauge(metrics.LongestRunningProcessorKey, "How many seconds has the longest running "+
			"processor for workqueue been running.", labels...),
		adds:    counter(metrics.AddsKey, "Total number of adds handled by workqueue"),
		retries: counter(metrics.RetriesKey, "Total number of items added to the workqueue with a non-zero delay (rate-limited requeues, explicit RequeueAfter or AddAfter calls)"),
		latency: histogram(metrics.QueueLatencyKey, "How long in seconds an item stays in workqueue before being requested"),
		work:    histogram(metrics.WorkDurationKey, "How long in seconds processing an item from workqueue takes."),
	}
}

// registered returns the collector that is registered with the description of c. If none is, c is.
func registered[C prometheus.Collector](c C) C {
	err := metrics.Registry.Register(c)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if there, ok := already.ExistingCollector.(C); ok {
			return there
		}
	}
	return c
}

func (p provider) NewDepthMetric(name string) clientqueue.GaugeMetric {
	return p.depth.WithLabelValues(name, name, "") // of all priorities
}

func (p provider) NewAddsMetric(name string) clientqueue.CounterMetric {
	return p.adds.WithLabelValues(name, name)
}

func (p provider) NewLatencyMetric(name string) clientqueue.HistogramMetric {
	return p.latency.WithLabelValues(name, name)
}

func (p provider) NewWorkDurationMetric(name string) clientqueue.HistogramMetric {
	return p.work.WithLabelValues(name, name)
}

func (p provider) NewUnfinishedWorkSecondsMetric(name string) clientqueue.SettableGaugeMetric {
	return p.unfinished.WithLabelValues(name, name)
}

func (p provider) NewLongestRunningProcessorSecondsMetric(name string) clientqueue.SettableGaugeMetric {
	return p.longest.WithLabelValues(name, name)
}

func (p provider) NewRetriesMetric(name string) clientqueue.CounterMetric {
	return p.retries.WithLabelValues(name, name)
}
