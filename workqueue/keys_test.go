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

func TestKeys_BodyIsTheHold_W2(t *testing.T) {
	for name, end := range map[string]func(q *workqueue.Queue[string]){
		"break": func(q *workqueue.Queue[string]) {
			for range q.Keys() {
				break
			}
		},
		"panic": func(q *workqueue.Queue[string]) {
			defer func() { _ = recover() }()
			for range q.Keys() {
				panic("in the body")
			}
		},
		"goexit": func(q *workqueue.Queue[string]) {
			var wg sync.WaitGroup
			wg.Go(func() {
				for range q.Keys() {
					runtime.Goexit()
				}
			})
			wg.Wait()
		},
		"next": func(q *workqueue.Queue[string]) {
			n := 0
			for range q.Keys() {
				if n++; n == 2 {
					break
				}
				q.Add("b")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue()
				q.Add("a")
				end(q)
				if s := q.Stats(); s.Held != 0 || s.Keys != 0 {
					t.Errorf("%d keys are held and %d known after the loop, want none: the hold outlives the body", s.Held, s.Keys)
				}
			})
		})
	}
}

// If a body calls Done itself it ends its hold; the loop must not end the hold of another worker.
func TestKeys_EndsOnlyItsOwnHold_W2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.Add("a")
		for range q.Keys() {
			q.Done("a")
			q.Add("a")
			time.Sleep(time.Second)
			wantGet(t, q, "a", "Done by hand has made the key free")
			break
		}
		if got := q.Stats().Held; got != 1 {
			t.Errorf("%d keys are held, want 1: the loop has ended another worker's hold", got)
		}
	})
}

func TestQueue_KeyUnequalToItselfDoesNoHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[float64]{})
		nan := math.NaN()
		q.Add(nan)
		q.Add(1)
		q.AddAfter(nan, time.Second)
		q.AddRateLimited(nan)
		q.Forget(nan)
		q.Withdraw(nan)
		q.Done(nan)
		time.Sleep(time.Minute)
		for range 4 {
			key, _ := q.Get()
			q.Done(key)
		}
		if s := q.Stats(); s.Keys != 0 {
			t.Errorf("the queue still knows %d keys, want 0: NaNs leak", s.Keys)
		}
		q.Add(nan)
		var drain sync.WaitGroup
		drain.Go(q.ShutDownWithDrain)
		synctest.Wait()
		for range q.Keys() {
		}
		drain.Wait()
	})
}

func TestQueue_UncomparableKeyLeavesTheQueueUsable(t *testing.T) {
	q := workqueue.New(workqueue.Options[any]{})
	q.Add("a")
	for name, call := range map[string]func(key any){
		"Add": q.Add, "Done": q.Done, "Forget": q.Forget, "AddRateLimited": q.AddRateLimited,
		"AddAfter": func(key any) { q.AddAfter(key, time.Hour) },
	} {
		func() {
			defer func() { _ = recover() }() // a map too panics with such a key
			call([]int{1})
		}()
		if got := q.Len(); got != 1 {
			t.Errorf("Len() = %d after %s of a slice, want 1", got, name)
		}
	}
}

func TestQueue_StrayDoneIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.Done("unknown")
		q.Add("a")
		q.Done("a")
		wantLen(t, q, 1, "Done of a key that is ready takes it away")
		q.AddAfter("b", time.Second)
		q.Done("b")
		time.Sleep(2 * time.Second)
		wantLen(t, q, 2, "Done of a key that is delayed takes its deadline away")
		for range 20 { // more held keys than Done compares before it hashes
			q.Add("c")
		}
		for i := range 20 {
			q.Add(string(rune('d' + i)))
		}
		for range q.Len() {
			_, _ = q.Get()
		}
		q.Done("a")
		q.Done("unknown")
		if got := q.Stats().Held; got != 22 {
			t.Errorf("%d keys are held, want 22: one of 23 has been done", got)
		}
	})
}

// Producers increase a key's version and then add it; workers record the version they see. At the end every key must have
// been seen at its last version, and never by two workers at once.
func TestQueue_NothingIsLostUnderLoad_W4(t *testing.T) {
	const keys, producers, workers, rounds = 64, 8, 8, 3000
	q := workqueue.New(workqueue.Options[int]{RateLimiter: workqueue.Exponential{Base: time.Microsecond, Max: time.Millisecond}})
	var version, seen [keys]atomic.Int64
	var held [keys]atomic.Int32
	var twice atomic.Int32
	work := func(key int) {
		if held[key].Add(1) != 1 {
			twice.Add(1)
		}
		v := version[key].Load()
		if v%16 == 3 {
			q.AddRateLimited(key)
		} else {
			q.Forget(key)
		}
		seen[key].Store(v)
		held[key].Add(-1)
	}
	var producing, working sync.WaitGroup
	for p := range producers {
		producing.Go(func() {
			for i := range rounds {
				key := (i*7 + p*13) % keys
				version[key].Add(1)
				switch i % 5 {
				case 0:
					q.AddAfter(key, time.Duration(i%3)*time.Microsecond)
				case 1:
					q.AddRateLimited(key)
				default:
					q.Add(key)
				}
			}
		})
	}
	for w := range workers {
		working.Go(func() {
			if w%2 == 0 {
				for key := range q.Keys() {
					work(key)
				}
				return
			}
			for key, shutdown := q.Get(); !shutdown; key, shutdown = q.Get() {
				work(key)
				q.Done(key)
			}
		})
	}
	producing.Wait()
	for s := q.Stats(); s.Delayed > 0; s = q.Stats() {
		runtime.Gosched()
	}
	q.ShutDownWithDrain()
	working.Wait()
	for key := range keys {
		if got, want := seen[key].Load(), version[key].Load(); got != want {
			t.Errorf("key %d was last seen at version %d, want %d: an Add is lost", key, got, want)
		}
	}
	if n := twice.Load(); n > 0 {
		t.Errorf("a key was in two workers' hands %d times", n)
	}
}
