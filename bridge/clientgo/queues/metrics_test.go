// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package queues_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clientgo "k8s.io/client-go/util/workqueue"

	"github.com/flyball-dev/flyball/bridge/clientgo/queues"
	"github.com/flyball-dev/flyball/workqueue"
)

var (
	_ clientgo.TypedInterface[string]             = (*workqueue.Queue[string])(nil)
	_ clientgo.TypedDelayingInterface[string]     = (*workqueue.Queue[string])(nil)
	_ clientgo.TypedRateLimitingInterface[string] = (*workqueue.Queue[string])(nil)
)

// provider stores every metric as a number, a histogram as its count and sum.
type provider struct {
	mu     sync.Mutex
	values map[string]float64
	counts map[string]int
}

type metric struct {
	p    *provider
	name string
}

func (m metric) change(f func()) {
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	f()
}
func (m metric) Inc()          { m.change(func() { m.p.values[m.name]++ }) }
func (m metric) Dec()          { m.change(func() { m.p.values[m.name]-- }) }
func (m metric) Set(v float64) { m.change(func() { m.p.values[m.name] = v }) }
func (m metric) Observe(v float64) {
	m.change(func() { m.p.values[m.name] += v; m.p.counts[m.name]++ })
}

func (p *provider) of(kind, name string) metric { return metric{p, name + "/" + kind} }

func (p *provider) NewDepthMetric(n string) clientgo.GaugeMetric       { return p.of("depth", n) }
func (p *provider) NewAddsMetric(n string) clientgo.CounterMetric      { return p.of("adds", n) }
func (p *provider) NewLatencyMetric(n string) clientgo.HistogramMetric { return p.of("latency", n) }
func (p *provider) NewRetriesMetric(n string) clientgo.CounterMetric   { return p.of("retries", n) }
func (p *provider) NewWorkDurationMetric(n string) clientgo.HistogramMetric {
	return p.of("work", n)
}
func (p *provider) NewUnfinishedWorkSecondsMetric(n string) clientgo.SettableGaugeMetric {
	return p.of("unfinished", n)
}
func (p *provider) NewLongestRunningProcessorSecondsMetric(n string) clientgo.SettableGaugeMetric {
	return p.of("longest", n)
}

func (p *provider) value(name string) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.values[name]
}

// TestMetrics_EachChangeReachesTheProvider runs one scenario on our queue and on client-go's, and compares the metrics.
func TestMetrics_EachChangeReachesTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{values: map[string]float64{}, counts: map[string]int{}}
		metrics := queues.NewMetrics(p, "ours")
		ours := workqueue.New(workqueue.Options[string]{Name: "ours", Observer: metrics})
		theirs := clientgo.NewTypedRateLimitingQueueWithConfig(
			clientgo.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, time.Minute),
			clientgo.TypedRateLimitingQueueConfig[string]{Name: "theirs", MetricsProvider: p},
		)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = metrics.Run(ctx, ours) })

		for _, q := range []clientgo.TypedRateLimitingInterface[string]{ours, theirs} {
			q.Add("a")
			q.Add("a")
			q.Add("b")
			time.Sleep(2 * time.Second)
			key, _ := q.Get()
			time.Sleep(3 * time.Second)
			q.AddRateLimited(key)
			q.Done(key)
			time.Sleep(time.Second)
			key, _ = q.Get()
			q.AddAfter("c", 0)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			q.Forget(key)
		}
		for _, kind := range []string{"depth", "adds", "retries", "latency", "work", "longest", "unfinished"} {
			// The gauges of our queue have advanced during the scenario of the other.
			ours, theirs := p.value("ours/"+kind), p.value("theirs/"+kind)
			if kind == "longest" || kind == "unfinished" {
				ours -= 8
			}
			if diff := ours - theirs; diff > 0.51 || diff < -0.51 {
				t.Errorf("%s = %v, client-go's own queue says %v: dashboards would show something else", kind, ours, theirs)
			}
		}
		if p.counts["ours/latency"] != 2 || p.counts["ours/work"] != 1 {
			t.Errorf("observed %d latencies and %d works, want 2 and 1: one per hand-out, one per Done",
				p.counts["ours/latency"], p.counts["ours/work"])
		}
		cancel()
		wg.Wait()
		theirs.ShutDown()
	})
}

// TestMetrics_KeysObservesEachHold checks that the loop, which merges Done and Get, has the same metrics.
func TestMetrics_CanceledKeysDoNotCount_W13(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{values: map[string]float64{}, counts: map[string]int{}}
		q := workqueue.New(workqueue.Options[string]{Observer: queues.NewMetrics(p, "ours")})
		q.AddAfter("b", time.Minute)
		q.Cancel("b")
		if got := p.value("ours/depth"); got != 0 {
			t.Errorf("a depth of %v after a delayed key was canceled, want 0", got)
		}
		q.Add("a")
		q.Cancel("a")
		if got := p.value("ours/depth"); got != 0 {
			t.Errorf("a depth of %v after a ready key was canceled, want 0", got)
		}
	})
}

func TestMetrics_KeysObservesEachHold(t *testing.T) {
	p := &provider{values: map[string]float64{}, counts: map[string]int{}}
	q := workqueue.New(workqueue.Options[int]{Observer: queues.NewMetrics(p, "q")})
	for i := range 5 {
		q.Add(i)
	}
	q.ShutDown()
	for range q.Keys() {
	}
	if p.counts["q/latency"] != 5 || p.counts["q/work"] != 5 || p.value("q/depth") != 0 {
		t.Errorf("latencies %d, works %d, depth %v, want 5, 5, 0: each key is handed out and done once",
			p.counts["q/latency"], p.counts["q/work"], p.value("q/depth"))
	}
}
