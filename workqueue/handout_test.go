// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// workers are the two forms of a worker's loop.
var workers = map[string]func(q *Queue[int], work func(int)){
	"Get": func(q *Queue[int], work func(int)) {
		for key, shutdown := q.Get(); !shutdown; key, shutdown = q.Get() {
			work(key)
			q.Done(key)
		}
	},
	"Keys": func(q *Queue[int], work func(int)) {
		for key := range q.Keys() {
			work(key)
		}
	},
}

type addedCounter struct{ added atomic.Int64 }

func (c *addedCounter) Added()                  { c.added.Add(1) }
func (c *addedCounter) Retried()                {}
func (c *addedCounter) HandedOut(time.Duration) {}
func (c *addedCounter) Done(time.Duration)      {}

// TestQueue_WorkersMoveDueKeys_W11 stops the timer, as if a busy machine had no processor for its callback.
func TestQueue_WorkersMoveDueKeys_W11(t *testing.T) {
	for form, work := range workers {
		for _, observed := range []bool{false, true} {
			name := form
			var counter addedCounter
			opts := Options[int]{}
			if observed {
				name += " with an Observer"
				opts.Observer = &counter
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q := New(opts)
					for key := range 3 {
						q.AddAfter(key, time.Duration(key+1)*time.Second)
					}
					q.mu.Lock()
					q.mu.timer.Stop()
					q.mu.Unlock()
					time.Sleep(4 * time.Second)

					var got []int
					go work(q, func(key int) { got = append(got, key) })
					synctest.Wait()
					if want := []int{0, 1, 2}; !slices.Equal(got, want) {
						t.Errorf("W11: the worker got %v, want %v: it waits for the timer while keys are due", got, want)
					}
					if observed && counter.added.Load() != 3 {
						t.Errorf("W11: the Observer was called %d times for 3 due keys", counter.added.Load())
					}
					q.ShutDown()
				})
			})
		}
	}
}

// TestQueue_ObserverSeesDueHeldKey_W11: the deadline of a held key makes nothing ready, and the worker that moves it waits.
func TestQueue_ObserverSeesDueHeldKey_W11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var counter addedCounter
		q := New(Options[int]{Observer: &counter})
		q.Add(1)
		key, _ := q.Get()
		q.AddAfter(key, time.Second)
		q.mu.Lock()
		q.mu.timer.Stop()
		q.mu.Unlock()
		time.Sleep(2 * time.Second)
		go q.Get()
		synctest.Wait()
		if got := counter.added.Load(); got != 2 {
			t.Errorf("W11: the Observer was called %d times, want 2: for the Add and for the deadline", got)
		}
		q.Done(key) // the waiting worker takes the key
	})
}
