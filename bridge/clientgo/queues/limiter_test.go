// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package queues_test

import (
	"testing"
	"testing/synctest"
	"time"

	clientqueue "k8s.io/client-go/util/workqueue"

	"github.com/flyball-dev/flyball/bridge/clientgo/queues"
	"github.com/flyball-dev/flyball/workqueue"
)

func TestLimitedQueue_BackoffIsThatOfTheLimiter_G14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := clientqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute)
		q := queues.NewLimitedQueue(limiter, workqueue.Options[string]{})
		defer q.ShutDown()
		waited := func(add func()) time.Duration {
			began := time.Now()
			add()
			key, shutdown := q.Get()
			if key != "a" || shutdown {
				t.Fatalf("got %q, %v, want a", key, shutdown)
			}
			q.Done(key)
			return time.Since(began)
		}
		again := func() { q.AddRateLimited("a") }
		for n, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			if got := waited(again); got != want || q.NumRequeues("a") != n+1 {
				t.Errorf("failure %d waits %s with %d counted, want %s as the limiter has it", n+1, got, q.NumRequeues("a"), want)
			}
		}
		with := func() { q.AddWith("a", workqueue.AddOptions{RateLimited: true}) }
		if got := waited(with); got != 8*time.Second {
			t.Errorf("AddWith waits %s, want 8s", got)
		}
		most := func() { q.AddWith("a", workqueue.AddOptions{RateLimited: true, After: time.Second}) }
		if got := waited(most); got != time.Second {
			t.Errorf("AddWith of at most a second waits %s", got)
		}
		q.Forget("a")
		if got := waited(again); got != time.Second || limiter.NumRequeues("a") != 1 {
			t.Errorf("after Forget a failure waits %s with %d counted, want a second", got, limiter.NumRequeues("a"))
		}
	})
}

func TestLimitedQueue_WithoutALimiterHasClientGosDefault_G14(t *testing.T) {
	q := queues.NewLimitedQueue(nil, workqueue.Options[string]{})
	defer q.ShutDown()
	q.AddRateLimited("a")
	if key, _ := q.Get(); key != "a" || q.NumRequeues("a") != 1 {
		t.Errorf("got %q with %d failures, want a with one", key, q.NumRequeues("a"))
	}
}
