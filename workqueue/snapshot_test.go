// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

func TestSnapshot_ShowsEveryKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{Name: "pods", RateLimiter: workqueue.FastSlow{Slow: time.Hour}})
		q.Add("dirty")
		q.Add("held")
		wantGet(t, q, "dirty", "first")
		time.Sleep(time.Second)
		wantGet(t, q, "held", "second")
		q.Add("dirty")
		q.AddAfter("held", 10*time.Second)
		q.AddAfter("late", time.Minute)
		q.AddRateLimited("retried")
		q.Add("retried")
		q.AddRateLimited("counted")
		q.Withdraw("counted")
		time.Sleep(time.Second)
		q.AddAfter("soon", 5*time.Second)
		q.Add("ready")
		time.Sleep(time.Second)

		now := time.Now()
		want := []workqueue.KeyState[string]{
			{Key: "retried", State: workqueue.Ready, Age: 2 * time.Second, Attempts: 1, Due: now.Add(time.Hour - 2*time.Second)},
			{Key: "ready", State: workqueue.Ready, Age: time.Second},
			{Key: "dirty", State: workqueue.HeldDirty, Age: 3 * time.Second},
			{Key: "held", State: workqueue.Held, Age: 2 * time.Second, Due: now.Add(8 * time.Second)},
			{Key: "soon", State: workqueue.Delayed, Age: time.Second, Due: now.Add(4 * time.Second)},
			{Key: "late", State: workqueue.Delayed, Age: 2 * time.Second, Due: now.Add(58 * time.Second)},
			{Key: "counted", State: workqueue.Counted, Attempts: 1},
		}
		got := q.Snapshot()
		if got.Name != "pods" || !got.Taken.Equal(now) || got.ShuttingDown || len(got.Keys) != len(want) {
			t.Fatalf("Snapshot() = %+v, want %d keys of %q at %v", got, len(want), "pods", now)
		}
		for i := range want {
			g, w := got.Keys[i], want[i]
			if g.Key != w.Key || g.State != w.State || g.Age != w.Age || g.Attempts != w.Attempts || !g.Due.Equal(w.Due) {
				t.Errorf("Keys[%d] = %+v, want %+v", i, g, w)
			}
		}
	})
}

func TestWaiting_HasTheLongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, opts := range map[string]workqueue.Options[string]{
			"one line": {}, "flows": {FairBy: func(key string) string { return key }},
		} {
			q := workqueue.New(opts)
			want := func(ready int, oldest time.Duration) {
				t.Helper()
				if n, age := q.Waiting(); n != ready || age != oldest {
					t.Errorf("%s: Waiting() = %d, %v, want %d, %v", name, n, age, ready, oldest)
				}
			}
			want(0, 0)
			q.Add("a")
			time.Sleep(time.Second)
			q.Add("b")
			q.AddAfter("later", time.Hour)
			time.Sleep(time.Second)
			want(2, 2*time.Second)
			wantGet(t, q, "a", "it has waited longest")
			want(1, time.Second)
			q.ShutDown()
		}
	})
}

func TestStats_AnAddIsAnsweredByTheFirstHoldAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		before := workqueue.Histogram{}
		wantAnswered := func(count uint64, sum time.Duration, why string) {
			t.Helper()
			now := q.Stats().Answered
			if now.Count-before.Count != count || now.Sum-before.Sum != sum {
				t.Errorf("answered %d in %v, want %d in %v: %s", now.Count-before.Count, now.Sum-before.Sum, count, sum, why)
			}
			before = now
		}
		q.Add("a")
		time.Sleep(2 * time.Second)
		q.Add("a")
		wantGet(t, q, "a", "first")
		time.Sleep(3 * time.Second)
		q.Add("a")
		time.Sleep(time.Second)
		q.Add("a")
		wantAnswered(0, 0, "the hold goes on")
		q.Done("a")
		wantAnswered(1, 6*time.Second, "the first Add waited two and was worked on for four")
		time.Sleep(time.Second)
		wantGet(t, q, "a", "added while held")
		time.Sleep(time.Second)
		q.Done("a")
		wantAnswered(1, 3*time.Second, "the third Add came a second before the first hold ended")

		q.AddAfter("b", time.Second)
		q.AddRateLimited("c")
		q.AddAfter("d", 0)
		time.Sleep(time.Second)
		for range 3 {
			key, _ := q.Get()
			q.Done(key)
		}
		wantAnswered(0, 0, "nobody asked for a retry")
		q.AddAfter("b", time.Second)
		time.Sleep(2 * time.Second)
		q.Add("b")
		time.Sleep(time.Second)
		wantGet(t, q, "b", "asked while it was ready by its deadline")
		q.AddAfter("b", time.Second)
		time.Sleep(2 * time.Second)
		if q.AddWith("b", workqueue.AddOptions{Priority: 1}); q.Stats().Dirty != 1 {
			t.Error("b is not dirty")
		}
		time.Sleep(time.Second)
		q.Done("b")
		wantAnswered(1, 4*time.Second, "the Add came after the deadline had made it ready")
		wantGet(t, q, "b", "asked while it was held and dirty by its deadline")
		q.Done("b")
		wantAnswered(1, time.Second, "the second Add waited for a second")
	})
}

func TestStats_CountsAndMeasures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{Name: "pods"})
		for _, key := range []string{"a", "a", "b", "c"} {
			q.Add(key)
		}
		time.Sleep(2 * time.Second)
		wantGet(t, q, "a", "first")
		time.Sleep(3 * time.Second)
		wantGet(t, q, "b", "second")
		q.Add("a")
		q.AddAfter("d", time.Minute)
		q.AddAfter("e", -1)
		time.Sleep(time.Second)

		s := q.Stats()
		if s.Name != "pods" || s.Ready != 2 || s.Held != 2 || s.Dirty != 1 || s.Delayed != 1 || s.Keys != 5 || s.Depth() != 3 {
			t.Errorf("Stats() = %+v, want ready 2, held 2, dirty 1, delayed 1, keys 5, depth 3", s)
		}
		if s.Adds != 5 || s.Retries != 2 {
			t.Errorf("Adds %d, Retries %d, want 5 and 2: a, b, c, a again and e; d and e", s.Adds, s.Retries)
		}
		if s.Latency.Count != 2 || s.Latency.Sum != 7*time.Second {
			t.Errorf("Latency: %d in %v, want 2 in 7s", s.Latency.Count, s.Latency.Sum)
		}
		if s.Unfinished != 5*time.Second || s.OldestHeld != 4*time.Second {
			t.Errorf("Unfinished %v, OldestHeld %v, want 5s and 4s", s.Unfinished, s.OldestHeld)
		}
		q.Done("a")
		q.Done("b")
		time.Sleep(time.Second)
		wantGet(t, q, "c", "third")
		wantGet(t, q, "e", "added at once")
		wantGet(t, q, "a", "added while held")
		s = q.Stats()
		if s.Work.Count != 2 || s.Work.Sum != 5*time.Second {
			t.Errorf("Work: %d in %v, want 2 in 5s", s.Work.Count, s.Work.Sum)
		}
		if s.Latency.Count != 5 || s.Latency.Sum != 17*time.Second {
			t.Errorf("Latency: %d in %v, want 5 in 17s: 7, then c 7, e 2 and a 1, which was not ready while held",
				s.Latency.Count, s.Latency.Sum)
		}
	})
}

func TestQueue_HeldDirty(t *testing.T) {
	q := workqueue.New(workqueue.Options[string]{})
	q.Add("a")
	if q.HeldDirty("a") || q.HeldDirty("b") {
		t.Error("a ready key, or an unknown one, is held and dirty")
	}
	key, _ := q.Get()
	before := q.HeldDirty(key)
	q.Add(key)
	if during := q.HeldDirty(key); before || !during {
		t.Errorf("held: %v, and added meanwhile: %v; want false and true", before, during)
	}
	q.Done(key)
	if q.HeldDirty(key) {
		t.Error("it is held and dirty after Done")
	}
}

// Of the keys that are next in their lines, the oldest is that which has been ready for longest.
func TestQueue_OldestIsReadyForLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{FairBy: namespaceOf})
		if k, ok := q.Oldest(); ok {
			t.Errorf("an empty queue has %+v waiting", k)
		}
		plain := newQueue()
		if plain.Add("a"); true {
			if k, ok := plain.Oldest(); ok {
				t.Errorf("%+v can be passed over in a queue without an order", k)
			}
		}
		q.AddAfter("shop/delayed", time.Hour)
		time.Sleep(time.Second)
		q.AddWith("shop/low", workqueue.AddOptions{Priority: -100})
		time.Sleep(time.Second)
		q.Add("blog/a")
		q.Add("shop/a")
		for range 2 {
			if k, ok := q.Oldest(); !ok || k.Key != "shop/low" || k.Age != time.Second || k.Priority != -100 || k.Flow != "shop" || k.State != workqueue.Ready {
				t.Errorf("Oldest() = %+v, %v, want shop/low of priority -100 and flow shop, a second old", k, ok)
			}
			key, _ := q.Get()
			q.Done(key)
		}
		key, _ := q.Get()
		if k, ok := q.Oldest(); ok || key != "shop/low" {
			t.Errorf("with %s held, Oldest() = %+v; no key is ready", key, k)
		}
		q.Done(key)
	})
}
