// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// namespaceOf returns the part of a key before its slash.
func namespaceOf(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}

// wantOrder takes and completes all ready keys.
func wantOrder(t *testing.T, q *workqueue.Queue[string], want []string, meaning string) {
	t.Helper()
	var got []string
	for range q.Len() {
		key, _ := q.Get()
		got = append(got, key)
		q.Done(key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("handed out %v, want %v: %s", got, want, meaning)
	}
}

func TestQueue_HigherPriorityComesFirst(t *testing.T) {
	q := newQueue()
	q.AddWith("low", workqueue.AddOptions{Priority: -100})
	q.Add("a")
	q.AddWith("least", workqueue.AddOptions{Priority: -1000}) // beyond the range
	q.AddWith("high", workqueue.AddOptions{Priority: 100})
	q.AddWith("raised", workqueue.AddOptions{Priority: -100})
	q.Add("b")
	q.Add("raised")
	q.AddWith("a", workqueue.AddOptions{Priority: -100}) // keeps the higher
	if got := q.Stats().Priorities; len(got) != 4 || got[1] != (workqueue.PriorityStats{Priority: 0, Ready: 3}) || got[3].Priority != -128 {
		t.Errorf("Priorities are %+v, want 100, 0 with three ready keys, -100 and -128", got)
	}
	wantOrder(t, q, []string{"high", "a", "b", "raised", "low", "least"},
		"higher first, of equals the one that came to its priority first")
}

func TestQueue_PriorityOfAHandOutIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that no time passes, and no failed key comes back
		q := newQueue()
		q.AddWith("low", workqueue.AddOptions{Priority: -100})
		q.AddWith("high", workqueue.AddOptions{Priority: 5})
		q.Add("plain")
		for _, want := range []int{5, 0, -100} {
			key, priority, shutdown := q.GetWithPriority()
			if priority != want || shutdown {
				t.Errorf("%s is handed out with priority %d, want %d", key, priority, want)
			}
			q.AddRateLimited(key) // keeps it
			q.Done(key)
		}
		q.ShutDown()
		if key, _, shutdown := q.GetWithPriority(); !shutdown {
			t.Errorf("%s is handed out after the shutdown, want the end", key)
		}
	})
}

func TestQueue_FloodOfUrgentKeysLetsOthersThrough_W8(t *testing.T) {
	q := newQueue()
	for i := range 3 {
		q.AddWith("low "+strconv.Itoa(i), workqueue.AddOptions{Priority: -100})
	}
	seen := map[string]int{}
	for i := range 100 {
		q.Add("urgent " + strconv.Itoa(i))
		q.Add("urgent again " + strconv.Itoa(i))
		key, _ := q.Get()
		q.Done(key)
		if strings.HasPrefix(key, "low") {
			seen[key] = i
		}
	}
	for i := range 3 {
		// With one flow and two priorities the p-th key is among the next p*(8+2).
		if at, ok := seen["low "+strconv.Itoa(i)]; !ok || at >= (i+1)*10 {
			t.Errorf("low key %d is hand-out %d (%t), want one of the first %d", i, at, ok, (i+1)*10)
		}
	}
}

func newFairQueue() *workqueue.Queue[string] {
	return workqueue.New(workqueue.Options[string]{Name: "test", FairBy: namespaceOf})
}

func TestQueue_NoFlowWaitsForAFlood_W8(t *testing.T) {
	q := newFairQueue()
	for i := range 1000 {
		q.Add("flood/" + strconv.Itoa(i))
	}
	q.Add("calm/a")
	q.Add("calm/b")
	q.Add("third/a")
	var got []string
	for range 6 {
		key, _ := q.Get()
		got = append(got, key)
	}
	if want := []string{"flood/0", "calm/a", "third/a", "flood/1", "calm/b", "flood/2"}; !slices.Equal(got, want) {
		t.Errorf("handed out %v, want %v: each flow has its turn", got, want)
	}
	s := q.Snapshot()
	if q.Stats().Flows != 3 || len(s.Flows) != 3 || s.Flows[0].Flow != "flood" || s.Flows[0].Ready != 997 || s.Flows[0].Held != 3 || s.Flows[1].Flow != "calm" || s.Flows[1].Held != 2 {
		t.Errorf("%d flows, %+v, want flood with 997 ready and 3 held keys, then calm with 2 and third with 1", q.Stats().Flows, s.Flows)
	}
}

func TestQueue_WorkerKeepsThePriorityOfItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, again := range map[string]func(q *workqueue.Queue[string], key string){
			"AddAfter":       func(q *workqueue.Queue[string], key string) { q.AddAfter(key, time.Millisecond) },
			"AddAfter 0":     func(q *workqueue.Queue[string], key string) { q.AddAfter(key, 0) },
			"AddRateLimited": func(q *workqueue.Queue[string], key string) { q.AddRateLimited(key) },
		} {
			q := newQueue()
			q.AddWith("low", workqueue.AddOptions{Priority: -100})
			wantGet(t, q, "low", "the only key")
			again(q, "low")
			q.Done("low")
			time.Sleep(time.Second)
			if got := q.Snapshot().Keys[0]; got.Priority != -100 || got.State != workqueue.Ready {
				t.Errorf("%s: the key is %s with priority %d, want ready with that it was handed out with, -100", name, got.State, got.Priority)
			}
			q.Add("live")
			wantOrder(t, q, []string{"live", "low"}, name+" has changed the priority")
			q.Forget("low")
			again(q, "low") // no worker holds it any more
			time.Sleep(time.Second)
			if got := q.Snapshot().Keys[0].Priority; got != 0 {
				t.Errorf("%s: priority %d for a key that nobody holds, want 0", name, got)
			}
		}
	})
}

func TestQueue_KeyAddedWhileHeldComesBackWithItsPriority(t *testing.T) {
	q := newQueue()
	q.AddWith("key", workqueue.AddOptions{Priority: 100})
	wantGet(t, q, "key", "the only key")
	q.AddWith("key", workqueue.AddOptions{Priority: -100})
	q.AddWith("key", workqueue.AddOptions{Priority: -50})
	q.AddWith("key", workqueue.AddOptions{Priority: -100})
	if got := q.Stats().Priorities; len(got) != 4 || got[2] != (workqueue.PriorityStats{Priority: -50, Dirty: 1}) || got[2].Depth() != 1 {
		t.Errorf("Priorities are %+v, want one held and dirty key at -50", got)
	}
	q.Add("other")
	q.Done("key")
	wantOrder(t, q, []string{"other", "key"}, "the highest priority asked for while it was held counts, not the one before")
}

func TestQueue_AddWithWaits_W6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		q := workqueue.New(workqueue.Options[string]{RateLimiter: workqueue.Exponential{Base: time.Minute}})
		q.AddWith("after", workqueue.AddOptions{After: time.Second, Priority: 1})
		q.AddWith("limited", workqueue.AddOptions{RateLimited: true})
		q.AddWith("sooner", workqueue.AddOptions{RateLimited: true, After: 2 * time.Second})
		q.AddWith("at once", workqueue.AddOptions{After: -1})
		if s := q.Stats(); s.Retries != 3 || s.Adds != 1 || q.NumRequeues("sooner") != 1 {
			t.Errorf("%d retries and %d adds, want 3 and 1: what asks for no wait is no retry", s.Retries, s.Adds)
		}
		for _, want := range []struct {
			key string
			at  time.Duration
		}{{"at once", 0}, {"after", time.Second}, {"sooner", 2 * time.Second}, {"limited", time.Minute}} {
			wantGet(t, q, want.key, "another wait than asked for")
			if got := time.Since(start); got != want.at {
				t.Errorf("%q was handed out after %v, want %v", want.key, got, want.at)
			}
		}
		q.ShutDown()
		q.AddWith("new", workqueue.AddOptions{Priority: 5})
		q.AddWith("new", workqueue.AddOptions{RateLimited: true})
		if got := q.Stats(); got.Ready+got.Delayed > 0 {
			t.Errorf("a queue that is shut down has taken %+v", got)
		}
	})
}

func TestSnapshot_ShowsPriorityFlowAndOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFairQueue()
		q.AddWith("a/1", workqueue.AddOptions{Priority: -100})
		for i := range 12 {
			q.Add("b/" + strconv.Itoa(i))
		}
		q.Add("c/1")
		q.AddWith("d/1", workqueue.AddOptions{Priority: 7, After: time.Hour})
		time.Sleep(time.Second)
		s := q.Snapshot()
		if d := s.Keys[14]; d.Flow != "d" || d.Priority != 7 || d.State != workqueue.Delayed || s.Keys[1].Flow != "c" {
			t.Errorf("key %+v, want d/1 of flow d, delayed with priority 7", d)
		}
		if f := s.Flows; len(f) != 4 || f[0].Oldest != time.Second || f[3] != (workqueue.FlowState{Flow: "d", Delayed: 1}) {
			t.Errorf("flows %+v, want b first, ready for a second, and d last with a delayed key", f)
		}
		var order []string
		for _, k := range s.Keys[:14] {
			order = append(order, k.Key)
		}
		if i := slices.Index(order, "a/1"); i != 8 {
			t.Errorf("the key of low priority is shown at place %d, want 8", i)
		}
		wantOrder(t, q, order, "Snapshot shows another order")
	})
}

// Producers of all priorities and flows run against workers: nothing is lost, and the queue runs empty.
func TestQueue_PrioritiesAndFlowsUnderLoad_W4(t *testing.T) {
	const producers, rounds = 4, 2000
	q := newFairQueue()
	var producing, working sync.WaitGroup
	for p := range producers {
		producing.Go(func() {
			for i := range rounds {
				key := strconv.Itoa(i%7) + "/" + strconv.Itoa((i*13+p)%50)
				q.AddWith(key, workqueue.AddOptions{Priority: i%5 - 2, After: time.Duration(i%3-1) * time.Microsecond})
			}
		})
		working.Go(func() {
			for key := range q.Keys() {
				if len(key)%2 == 0 {
					q.Add(key[:1] + "/x")
				}
			}
		})
	}
	producing.Wait()
	for s := q.Stats(); s.Delayed > 0; s = q.Stats() {
		runtime.Gosched()
	}
	q.ShutDownWithDrain()
	working.Wait()
	if s := q.Stats(); s.Keys != 0 || s.Flows != 0 || s.Depth() != 0 {
		t.Errorf("%+v after the drain, want no key and no flow", s)
	}
	for _, p := range q.Stats().Priorities {
		if p.Depth() != 0 {
			t.Errorf("priority %+v after the drain, want it empty", p)
		}
	}
}
