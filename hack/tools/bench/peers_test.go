// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clientgo "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/flyball-dev/flyball/workqueue"
)

type key = types.NamespacedName

type queue = clientgo.TypedRateLimitingInterface[key]

// firstRetry is so short that a retried key is due at the next Get: the benchmark measures
// the queue, not the wait.
const firstRetry = time.Nanosecond

// A peer is measured as a controller runs it: with a name, and so with metrics. The peers'
// metrics go to sinks that do nothing; our queue always counts its own.
type peer struct {
	name string
	make func() queue
}

func peers() []peer {
	return []peer{
		{"flyball", func() queue { return newFlyball() }},
		{"client-go", func() queue {
			return clientgo.NewTypedRateLimitingQueueWithConfig(
				clientgo.NewTypedItemExponentialFailureRateLimiter[key](firstRetry, time.Second),
				clientgo.TypedRateLimitingQueueConfig[key]{Name: "bench", MetricsProvider: sinks{}},
			)
		}},
		{"controller-runtime", func() queue {
			return priorityqueue.New("bench", func(o *priorityqueue.Opts[key]) {
				o.RateLimiter = clientgo.NewTypedItemExponentialFailureRateLimiter[key](firstRetry, time.Second)
				o.MetricProvider = sinks{}
			})
		}},
	}
}

func newFlyball() *workqueue.Queue[key] { return newFairFlyball(nil) }

func newFairFlyball(flow func(key) string) *workqueue.Queue[key] {
	return workqueue.New(workqueue.Options[key]{
		FairBy:      flow,
		Name:        "bench",
		RateLimiter: workqueue.Exponential{Base: firstRetry, Max: time.Second},
	})
}

// forEach runs f as a sub-benchmark per peer, each with its own queue.
func forEach(b *testing.B, f func(b *testing.B, q queue)) {
	for _, p := range peers() {
		b.Run(p.name, func(b *testing.B) {
			q := p.make()
			defer q.ShutDown()
			b.ReportAllocs()
			f(b, q)
		})
	}
}

// newKeys returns n different keys in 200 namespaces. A key's name is its position.
func newKeys(n int) []key {
	namespaces := make([]string, 200)
	for i := range namespaces {
		namespaces[i] = "namespace-" + strconv.Itoa(i)
	}
	keys := make([]key, n)
	for i := range keys {
		keys[i] = key{Namespace: namespaces[i%len(namespaces)], Name: strconv.Itoa(i)}
	}
	return keys
}

type sink struct{}

func (sink) Inc()            {}
func (sink) Dec()            {}
func (sink) Set(float64)     {}
func (sink) Observe(float64) {}

type sinks struct{}

func (sinks) NewDepthMetric(string) clientgo.GaugeMetric                         { return sink{} }
func (sinks) NewAddsMetric(string) clientgo.CounterMetric                        { return sink{} }
func (sinks) NewLatencyMetric(string) clientgo.HistogramMetric                   { return sink{} }
func (sinks) NewWorkDurationMetric(string) clientgo.HistogramMetric              { return sink{} }
func (sinks) NewUnfinishedWorkSecondsMetric(string) clientgo.SettableGaugeMetric { return sink{} }
func (sinks) NewLongestRunningProcessorSecondsMetric(string) clientgo.SettableGaugeMetric {
	return sink{}
}
func (sinks) NewRetriesMetric(string) clientgo.CounterMetric { return sink{} }
