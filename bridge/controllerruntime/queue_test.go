// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	clientqueue "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The options of a controller take both.
var _ = []controller.Options{
	{NewQueue: NewQueue[reconcile.Request]},
	{NewQueue: NewFairQueue(func(r reconcile.Request) string { return r.Namespace })},
}

// taken returns the keys in the order in which they are handed out, with their priorities.
func taken(q priorityqueue.PriorityQueue[string]) (out []string) {
	for q.Len() > 0 {
		key, priority, _ := q.GetWithPriority()
		out = append(out, fmt.Sprint(key, " ", priority))
		q.Done(key)
	}
	return out
}

func TestQueue_PrioritiesAreControllerRuntimes(t *testing.T) {
	q := NewQueue[string]("priorities", nil).(priorityqueue.PriorityQueue[string])
	defer q.ShutDown()
	q.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, "low", "raised")
	q.Add("plain")
	q.AddWithOpts(priorityqueue.AddOpts{Priority: new(7)}, "high")
	q.AddWithOpts(priorityqueue.AddOpts{}, "raised")
	if got, want := taken(q), []string{"high 7", "plain 0", "raised 0", "low -100"}; !slices.Equal(got, want) {
		t.Errorf("handed out %q, want %q", got, want)
	}
}

// controller-runtime's own queue hands out a low priority only when nothing else is ready.
func TestQueue_LowPriorityDoesNotStarve(t *testing.T) {
	q := NewQueue[string]("starving", nil).(priorityqueue.PriorityQueue[string])
	defer q.ShutDown()
	q.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, "low")
	for n := range 100 {
		q.Add(fmt.Sprint("live ", n))
	}
	if at := slices.Index(taken(q), "low -100"); at > 8 {
		t.Errorf("%d keys pass the one of low priority, want 8 at most", at)
	}
}

func TestQueue_FlowsTakeTurns(t *testing.T) {
	q := NewFairQueue(func(key string) string { return key[:1] })("fair", nil).(priorityqueue.PriorityQueue[string])
	defer q.ShutDown()
	q.AddWithOpts(priorityqueue.AddOpts{}, "a1", "a2", "a3", "b1")
	if got := taken(q); slices.Index(got, "b1 0") > 1 {
		t.Errorf("handed out %q, want b1 second at the latest", got)
	}
}

func TestQueue_LimiterDecidesTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := clientqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute)
		q := NewQueue("limited", limiter).(priorityqueue.PriorityQueue[string])
		for _, c := range []struct {
			opts priorityqueue.AddOpts
			want time.Duration
		}{
			{priorityqueue.AddOpts{RateLimited: true, Priority: new(3)}, time.Second},
			{priorityqueue.AddOpts{RateLimited: true, Priority: new(3)}, 2 * time.Second},
			{priorityqueue.AddOpts{RateLimited: true, Priority: new(3), After: time.Second}, time.Second},
			{priorityqueue.AddOpts{Priority: new(3), After: time.Hour}, time.Hour},
		} {
			began := time.Now()
			q.AddWithOpts(c.opts, "a")
			key, priority, _ := q.GetWithPriority()
			if waited := time.Since(began); waited != c.want || priority != 3 {
				t.Errorf("%+v waits %s at priority %d, want %s at 3", c.opts, waited, priority, c.want)
			}
			q.Done(key)
		}
		q.Forget("a")
		q.ShutDown()
		q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, "a")
		if n := limiter.NumRequeues("a"); n != 0 {
			t.Errorf("the limiter counts %d failures after the shutdown, want none", n)
		}
	})
}

// The metrics are in controller-runtime's registry, under its names, each once.
func TestQueue_MetricsAreWhereDashboardsExpectThem(t *testing.T) {
	name := fmt.Sprint("shown ", time.Now().UnixNano()) // the registry is the process's
	q := NewQueue(name, clientqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Hour, time.Hour))
	defer q.ShutDown()
	q.Add("a")
	q.Add("b")
	key, _ := q.Get()
	q.AddRateLimited(key)
	q.Done(key)
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "controller" && l.GetValue() == name {
					got[f.GetName()] += m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
				}
			}
		}
	}
	for series, want := range map[string]float64{
		"workqueue_adds_total": 2, "workqueue_retries_total": 1, "workqueue_queue_duration_seconds": 1, "workqueue_work_duration_seconds": 1,
		"workqueue_depth": 1, "workqueue_unfinished_work_seconds": 0, "workqueue_longest_running_processor_seconds": 0,
	} {
		if value, ok := got[series]; !ok || value != want {
			t.Errorf("%s is %v (shown: %v), want %v", series, value, ok, want)
		}
	}
}
