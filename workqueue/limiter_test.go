// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

func TestExponential_DoublesUpToMax_W7(t *testing.T) {
	const s = time.Second
	huge := workqueue.Exponential{Base: s, Max: math.MaxInt64}
	small := workqueue.Exponential{Base: 3 * s, Max: 10 * s}
	jittered := workqueue.Exponential{Base: 8 * s, Max: 16 * s, Jitter: 0.5, Rand: func() float64 { return 0.5 }}
	for _, c := range []struct {
		name     string
		limiter  workqueue.Exponential
		failures int
		want     time.Duration
	}{
		{"zero value", workqueue.Exponential{}, 1, 5 * time.Millisecond},
		{"zero value", workqueue.Exponential{}, 2, 10 * time.Millisecond},
		{"zero value", workqueue.Exponential{}, 18, 131072 * 5 * time.Millisecond},
		{"zero value", workqueue.Exponential{}, 19, 1000 * s},
		{"negative", workqueue.Exponential{Base: -1, Max: -1}, 1, 5 * time.Millisecond},
		{"small", small, -1, 3 * s},
		{"small", small, 0, 3 * s},
		{"small", small, 2, 6 * s},
		{"small", small, 3, 10 * s},
		{"small", small, math.MaxInt, 10 * s},
		{"base above max", workqueue.Exponential{Base: s, Max: 1}, 1, 1},
		{"huge", huge, 34, s << 33},
		{"huge", huge, 35, math.MaxInt64},
		{"huge", huge, 63, math.MaxInt64},
		{"huge", huge, 64, math.MaxInt64},
		{"huge", huge, 65, math.MaxInt64},
		{"huge", huge, math.MaxInt, math.MaxInt64},
		{"jitter", jittered, 1, 6 * s},
		{"jitter at max", jittered, 9, 12 * s},
		{"more jitter than all", workqueue.Exponential{Base: s, Jitter: 7, Rand: func() float64 { return 1 }}, 1, 0},
	} {
		if got := c.limiter.Delay(time.Time{}, c.failures); got != c.want {
			t.Errorf("%s: Delay after %d failures = %v, want %v", c.name, c.failures, got, c.want)
		}
	}
	for range 1000 {
		if got := (workqueue.Exponential{Base: s, Jitter: 0.2}).Delay(time.Time{}, 1); got < 800*time.Millisecond || got > s {
			t.Fatalf("Delay with a jitter of 0.2 = %v, want 800ms to 1s", got)
		}
	}
}

func TestFastSlow_SlowAfterFastTries_W7(t *testing.T) {
	limiter := workqueue.FastSlow{Fast: 1, Slow: 2, FastTries: 3}
	for failures, want := range map[int]time.Duration{0: 1, 1: 1, 3: 1, 4: 2, math.MaxInt: 2} {
		if got := limiter.Delay(time.Time{}, failures); got != want {
			t.Errorf("Delay after %d failures = %v, want %v", failures, got, want)
		}
	}
}

func TestTokenBucket_LetsRatePerSecondPass_W7(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	const ms = time.Millisecond
	for _, c := range []struct {
		name    string
		limiter *workqueue.TokenBucket
		calls   []time.Time
		want    []time.Duration
	}{
		{
			"burst, then in advance", workqueue.NewTokenBucket(10, 2),
			[]time.Time{at(0), at(0), at(0), at(0), at(50 * ms)},
			[]time.Duration{0, 0, 100 * ms, 200 * ms, 250 * ms},
		},
		{
			"fills up to burst", workqueue.NewTokenBucket(10, 2),
			[]time.Time{at(0), at(0), at(time.Hour), at(time.Hour), at(time.Hour)},
			[]time.Duration{0, 0, 0, 0, 100 * ms},
		},
		{
			"time runs back", workqueue.NewTokenBucket(10, 1),
			[]time.Time{at(0), at(-time.Hour), at(0)},
			[]time.Duration{0, 100 * ms, 200 * ms},
		},
		{
			"no rate", workqueue.NewTokenBucket(0, 0),
			[]time.Time{at(0), at(0), at(time.Hour)},
			[]time.Duration{0, math.MaxInt64, math.MaxInt64},
		},
		{
			"not a number", workqueue.NewTokenBucket(math.NaN(), -5),
			[]time.Time{at(0), at(0)},
			[]time.Duration{0, math.MaxInt64},
		},
		{
			"hardly any rate", workqueue.NewTokenBucket(1e-300, 1),
			[]time.Time{at(0), at(0)},
			[]time.Duration{0, math.MaxInt64},
		},
		{
			"no limit", workqueue.NewTokenBucket(math.Inf(1), 1),
			[]time.Time{at(0), at(0), at(0)},
			[]time.Duration{0, 0, 0},
		},
	} {
		for i, now := range c.calls {
			if got := c.limiter.Delay(now, 1); got != c.want[i] {
				t.Errorf("%s: call %d: Delay = %v, want %v", c.name, i, got, c.want[i])
			}
		}
	}
}

func TestLongest_WaitsForTheMostPatient_W7(t *testing.T) {
	bucket := workqueue.NewTokenBucket(1, 2)
	limiter := workqueue.MaxOf{workqueue.Exponential{Base: time.Minute}, bucket}
	for i := range 2 {
		if got := limiter.Delay(time.Unix(0, 0), 1); got != time.Minute {
			t.Errorf("call %d: Delay = %v, want the exponential's minute", i, got)
		}
	}
	if got := bucket.Delay(time.Unix(0, 0), 1); got != time.Second {
		t.Errorf("the bucket's third Delay = %v, want 1s: it must have been asked although another limiter is more patient", got)
	}
	if got := (workqueue.MaxOf{}).Delay(time.Time{}, 1); got != 0 {
		t.Errorf("Delay of no limiters = %v, want 0", got)
	}
}

// A limiter may use its queue: it is called outside the lock.
func TestQueue_LimiterIsCalledOutsideTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &nosy{}
		l.queue = workqueue.New(workqueue.Options[string]{RateLimiter: l})
		l.queue.AddRateLimited("a")
		wantGet(t, l.queue, "a", "the only key")
		if l.seen != 1 || !l.at.Equal(time.Now()) {
			t.Errorf("the limiter saw %d failures at %v, want 1 at %v", l.seen, l.at, time.Now())
		}
	})
}

type nosy struct {
	queue *workqueue.Queue[string]
	seen  int
	at    time.Time
}

func (l *nosy) Delay(now time.Time, failures int) time.Duration {
	l.seen, l.at = l.queue.NumRequeues("a"), now
	return -time.Second
}
