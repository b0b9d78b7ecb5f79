// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

func newQueue() *workqueue.Queue[string] {
	return workqueue.New(workqueue.Options[string]{Name: "test"})
}

func wantLen(t *testing.T, q *workqueue.Queue[string], want int, meaning string) {
	t.Helper()
	if got := q.Len(); got != want {
		t.Fatalf("Len() = %d, want %d: %s", got, want, meaning)
	}
}

func wantGet(t *testing.T, q *workqueue.Queue[string], want, meaning string) {
	t.Helper()
	if got, shutdown := q.Get(); got != want || shutdown {
		t.Fatalf("Get() = %q, %t, want %q: %s", got, shutdown, want, meaning)
	}
}

func TestQueue_DirtyKeyIsReadyOnce_W1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.Add("a")
		q.Add("a")
		wantLen(t, q, 1, "a key added twice is ready twice")
		q.AddAfter("a", time.Second)
		time.Sleep(2 * time.Second)
		wantLen(t, q, 1, "a key that falls due while ready is ready twice")
		wantGet(t, q, "a", "the key is lost")
		wantLen(t, q, 0, "a key is ready and held")
		q.Done("a")
		q.Done("a")
		wantLen(t, q, 0, "a key that was not added again is ready after Done")
	})
}

func TestQueue_OrderIsThatOfBecomingReady_W1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.Add("a")
		wantGet(t, q, "a", "the only key")
		q.Add("a")
		q.Add("b")
		q.Done("a")
		q.AddAfter("c", time.Second)
		time.Sleep(time.Minute)
		q.Add("d")
		for _, want := range []string{"b", "a", "c", "d"} {
			wantGet(t, q, want, "keys are handed out in another order than they became ready")
		}
	})
}

func TestQueue_OneWorkerHoldsAKey_W2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		defer q.ShutDown()
		var holders, most atomic.Int32
		var workers sync.WaitGroup
		for range 8 {
			workers.Go(func() {
				for range q.Keys() {
					most.Store(max(most.Load(), holders.Add(1)))
					time.Sleep(time.Second)
					holders.Add(-1)
				}
			})
		}
		for range 20 {
			q.Add("a")
			q.AddAfter("a", 50*time.Millisecond)
			time.Sleep(100 * time.Millisecond)
		}
		q.ShutDown()
		workers.Wait()
		if got := most.Load(); got != 1 {
			t.Errorf("%d workers held the key at once, want 1", got)
		}
	})
}

func TestQueue_KeyAddedWhileHeldRunsAgain_W3(t *testing.T) {
	for name, add := range map[string]func(q *workqueue.Queue[string]){
		"Add":            func(q *workqueue.Queue[string]) { q.Add("a") },
		"AddAfter":       func(q *workqueue.Queue[string]) { q.AddAfter("a", time.Millisecond) },
		"AddRateLimited": func(q *workqueue.Queue[string]) { q.AddRateLimited("a") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue()
				q.Add("a")
				wantGet(t, q, "a", "the only key")
				add(q)
				time.Sleep(time.Second)
				wantLen(t, q, 0, "a held key must not be ready")
				q.Done("a")
				wantLen(t, q, 1, "what was added while the key was held is lost")
			})
		})
	}
}

// All workers are parked, then each gets a key that it holds: every wake-up counts.
func TestQueue_EachReadyKeyWakesAWorker_W4(t *testing.T) {
	const n = 16
	for name, add := range map[string]func(q *workqueue.Queue[int], i int){
		"Add":      func(q *workqueue.Queue[int], i int) { q.Add(i) },
		"AddAfter": func(q *workqueue.Queue[int], i int) { q.AddAfter(i, time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New(workqueue.Options[int]{})
				var got atomic.Int32
				release := make(chan struct{})
				var workers sync.WaitGroup
				for range n {
					workers.Go(func() {
						for range q.Keys() {
							got.Add(1)
							<-release
						}
					})
				}
				synctest.Wait()
				for i := range n {
					add(q, i)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if got := got.Load(); got != n {
					t.Errorf("%d of %d idle workers got a key: a wake-up is lost", got, n)
				}
				close(release)
				q.ShutDown()
				workers.Wait()
			})
		})
	}
}

func TestQueue_NothingNewAfterShutDown_W5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.Add("held")
		q.Add("ready")
		q.AddAfter("delayed", time.Second)
		wantGet(t, q, "held", "first in the order")
		q.Add("held")
		q.ShutDown()
		q.ShutDown()
		q.Add("new")
		q.AddAfter("new", 0)
		q.AddAfter("new", time.Second)
		q.AddRateLimited("new")
		time.Sleep(time.Minute)
		if s := q.Stats(); s.Ready != 1 || s.Held != 1 || s.Dirty != 1 || s.Delayed != 0 || s.Keys != 2 || !q.ShuttingDown() {
			t.Errorf("after ShutDown: %d ready, %d held, %d dirty, %d delayed, %d keys, want 1, 1, 1, 0, 2: something new was taken",
				s.Ready, s.Held, s.Dirty, s.Delayed, s.Keys)
		}
		wantGet(t, q, "ready", "ready keys are still handed out")
		q.Done("ready")

		// The other worker must not leave while the held key will return.
		last := make(chan string)
		var worker sync.WaitGroup
		defer worker.Wait()
		worker.Go(func() {
			for key := range q.Keys() {
				last <- key
			}
			close(last)
		})
		synctest.Wait()
		q.Done("held")
		if key := <-last; key != "held" {
			t.Errorf("the last key is %q, want %q: it was added before ShutDown, while held", key, "held")
		}
		if _, more := <-last; more {
			t.Error("Keys goes on when nothing is left")
		}
		if key, shutdown := q.Get(); !shutdown {
			t.Errorf("Get() = %q, want shutdown", key)
		}
	})
}

func TestQueue_DrainWaitsForReadyAndHeldKeys_W5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.Add("held")
		q.Add("ready")
		wantGet(t, q, "held", "first in the order")
		var drained atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() { q.ShutDownWithDrain(); drained.Store(true) })
		for _, step := range []struct {
			do   func()
			left string
		}{
			{func() {}, "one held and one ready key"},
			{func() { q.Done("held") }, "one ready key"},
			{func() { wantGet(t, q, "ready", "still handed out") }, "one held key"},
		} {
			step.do()
			synctest.Wait()
			if drained.Load() {
				t.Fatalf("ShutDownWithDrain has returned with %s", step.left)
			}
		}
		q.Done("ready")
		wg.Wait()
	})
}

func TestQueue_ShutDownEndsADrain_W5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.Add("a")
		wantGet(t, q, "a", "the only key")
		var wg sync.WaitGroup
		wg.Go(q.ShutDownWithDrain)
		wg.Go(q.ShutDownWithDrain)
		synctest.Wait()
		q.ShutDown()
		wg.Wait()
	})
}

// Deadlines are dropped in batches, so a drain can begin during ShutDown.
func TestQueue_ShutDownWaitsForNoDrain_W5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[int]{})
		for i := range 200_000 {
			q.AddAfter(i, time.Duration(i)*time.Microsecond+time.Second)
		}
		q.Add(-1)
		held, _ := q.Get()
		var down atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() { q.ShutDown(); down.Store(true) })
		wg.Go(func() {
			for !q.ShuttingDown() {
				runtime.Gosched()
			}
			q.ShutDownWithDrain()
		})
		time.Sleep(time.Minute)
		if s := q.Stats(); !down.Load() || s.Delayed != 0 || s.Ready != 0 || s.Held != 1 {
			t.Errorf("ShutDown returned: %t; %d delayed, %d ready, %d held, want true, 0, 0, 1: it drops what is delayed and waits for nobody",
				down.Load(), s.Delayed, s.Ready, s.Held)
		}
		q.Done(held)
		q.ShutDown()
		wg.Wait()
	})
}

func TestQueue_DelayedKeyIsNeverEarly_W6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		start := time.Now()
		q.AddAfter("later loses", time.Minute)
		q.AddAfter("later loses", time.Hour)
		q.AddAfter("earlier wins", time.Hour)
		q.AddAfter("earlier wins", time.Second)
		q.AddAfter("at once", 0)
		q.AddAfter("at once too", math.MinInt64)
		q.AddAfter("never", math.MaxInt64)
		for _, want := range []struct {
			key string
			at  time.Duration
		}{{"at once", 0}, {"at once too", 0}, {"earlier wins", time.Second}, {"later loses", time.Minute}} {
			wantGet(t, q, want.key, "deadlines are kept in another order")
			if at := time.Since(start); at != want.at {
				t.Errorf("%q was handed out after %v, want %v", want.key, at, want.at)
			}
			q.Done(want.key)
		}
		time.Sleep(2 * time.Hour)
		wantLen(t, q, 0, "the later one of two deadlines was kept as well")
	})
}

func TestQueue_AddLeavesTheDeadline_W6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.AddAfter("a", time.Second)
		q.Add("a")
		wantGet(t, q, "a", "Add makes a delayed key ready at once")
		q.Done("a")
		time.Sleep(2 * time.Second)
		wantLen(t, q, 1, "the Add has taken the deadline away")

		q.AddAfter("b", time.Second)
		if !q.Withdraw("b") || q.Withdraw("b") || q.Withdraw("unknown") {
			t.Error("Withdraw reports true exactly when a deadline waits")
		}
		time.Sleep(2 * time.Second)
		wantLen(t, q, 1, "a withdrawn deadline has fired")
	})
}

func TestQueue_CancelRemovesWhatWaits_W13(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		for _, key := range []string{"a", "b", "c"} {
			q.Add(key)
		}
		q.AddWith("high", workqueue.AddOptions{Priority: 1})
		q.AddAfter("b", time.Second)
		q.AddAfter("later", time.Second)
		for _, key := range []string{"b", "high", "later"} {
			if !q.Cancel(key) || q.Cancel(key) {
				t.Errorf("Cancel(%q) reports true exactly when the key waits", key)
			}
		}
		wantGet(t, q, "a", "it was added first")
		q.Add("a")
		if q.Cancel("a") {
			t.Error("Cancel reports that it has removed a key that a worker holds")
		}
		wantGet(t, q, "c", "b is canceled")
		q.Done("a")
		wantGet(t, q, "a", "it was added while it was held, and Cancel leaves such a key as it is")
		time.Sleep(time.Minute)
		wantLen(t, q, 0, "a canceled deadline has fired")
	})
}

// TestQueue_CancelOfTheLastKeyEndsADrain_W13: nobody calls Done for what was canceled.
func TestQueue_CancelOfTheLastKeyEndsADrain_W13(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.Add("a")
		drained := false
		go func() {
			q.ShutDownWithDrain()
			drained = true
		}()
		synctest.Wait()
		q.Cancel("a")
		synctest.Wait()
		if !drained {
			t.Error("the drain waits for a key that was canceled")
			q.ShutDown()
		}
	})
}

func TestQueue_BackoffGrowsUntilForget_W7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{RateLimiter: workqueue.Exponential{Base: time.Second, Max: 5 * time.Second}})
		for i, want := range []time.Duration{1, 2, 4, 5, 5} {
			start := time.Now()
			q.AddRateLimited("a")
			wantGet(t, q, "a", "the only key")
			if got := time.Since(start); got != want*time.Second {
				t.Errorf("failure %d: a wait of %v, want %v", i+1, got, want*time.Second)
			}
			q.Done("a")
			if got := q.NumRequeues("a"); got != i+1 {
				t.Errorf("NumRequeues() = %d after %d failures", got, i+1)
			}
		}
		q.Forget("a")
		q.Forget("unknown")
		if got := q.NumRequeues("a"); got != 0 {
			t.Errorf("NumRequeues() = %d after Forget, want 0", got)
		}
		start := time.Now()
		q.AddRateLimited("a")
		wantGet(t, q, "a", "the only key")
		if got := time.Since(start); got != time.Second {
			t.Errorf("a wait of %v after Forget, want %v: the backoff goes on", got, time.Second)
		}
	})
}

func TestQueue_NoGoroutineStays_W9(t *testing.T) {
	before := runtime.NumGoroutine()
	queues := make([]*workqueue.Queue[int], 100)
	for i := range queues {
		queues[i] = workqueue.New(workqueue.Options[int]{})
		queues[i].AddAfter(1, time.Hour)
		queues[i].Add(2)
		queues[i].AddRateLimited(3)
		key, _ := queues[i].Get()
		queues[i].Done(key)
	}
	// Callbacks of timers that have just fired may still be running.
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	if got := runtime.NumGoroutine(); got >= before+len(queues)/2 {
		t.Errorf("%d goroutines with 100 queues in use, %d before: queues own goroutines", got, before)
	}
	runtime.KeepAlive(queues)
}

func TestQueue_MemoryReturnsAfterABurst_W9(t *testing.T) {
	const burst, left = 300_000, 100
	q := workqueue.New(workqueue.Options[int]{})
	before := liveHeap()
	for i := range burst {
		q.AddAfter(i, time.Hour)
	}
	full := liveHeap() - before
	for i := range burst - left {
		q.Withdraw(i)
	}
	if kept := liveHeap() - before; kept > full/20 {
		t.Errorf("%d of %d bytes are kept for %d of %d delayed keys", kept, full, left, burst)
	}
	for i := range burst {
		q.Add(i)
	}
	for range burst {
		key, _ := q.Get()
		q.Done(key)
	}
	if kept := liveHeap() - before; kept > full/20 {
		t.Errorf("%d of %d bytes are kept when %d ready keys are done", kept, full, burst)
	}
	if got := q.Stats().Keys; got != left {
		t.Errorf("the queue knows %d keys, want %d", got, left)
	}
}

func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestQueue_WarmQueueAllocatesNothing_W9(t *testing.T) {
	q := workqueue.New(workqueue.Options[int]{RateLimiter: workqueue.Exponential{Base: 1}})
	work := func() {
		for i := range 1000 {
			q.AddRateLimited(i)
		}
		for range 1000 {
			key, _ := q.Get()
			q.Forget(key)
			q.Done(key)
		}
	}
	work()
	if got := testing.AllocsPerRun(20, work); got >= 10 {
		t.Errorf("%v allocations per 1000 retried keys, want none but those of a timer's callback", got)
	}
}
