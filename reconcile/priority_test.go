// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// naming is a source whose keys and causes the test chooses.
type naming[K comparable] struct {
	first  func(add func(K, source.Cause)) // before it is synced
	named  chan func(add func(K, source.Cause))
	synced chan struct{}
}

func newNaming[K comparable](first func(add func(K, source.Cause))) *naming[K] {
	return &naming[K]{first: first, named: make(chan func(func(K, source.Cause))), synced: make(chan struct{})}
}

func (s *naming[K]) Run(ctx context.Context, add func(K, source.Cause)) error {
	if s.first != nil {
		s.first(add)
	}
	close(s.synced)
	for {
		select {
		case <-ctx.Done():
			return nil
		case name := <-s.named:
			name(add)
		}
	}
}
func (s *naming[K]) Synced() <-chan struct{} { return s.synced }
func (s *naming[K]) String() string          { return "naming" }

func (s *naming[K]) name(key K, cause source.Cause) {
	s.named <- func(add func(K, source.Cause)) { add(key, cause) }
}

func TestController_LiveKeysComeBeforeTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		s := newNaming(func(add func(string, source.Cause)) {
			for i := range 20 {
				add(fmt.Sprintf("first-%d", i), source.Cause{Initial: true})
			}
			add("again", source.Cause{Resync: true})
			for i := range 10 {
				add(fmt.Sprintf("live-%d", i), source.Cause{})
			}
			add("first-15", source.Cause{})
		})
		c := reconcile.New("test", func(_ context.Context, key string) (reconcile.Result, error) {
			j.note(key)
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{Workers: 1})
		c.Watch(s)
		start(t, c)
		got := strings.Fields(j.notes())
		want := []string{"live-0", "live-7", "first-0", "live-8", "live-9", "first-15", "first-1", "first-2", "first-3"}
		if len(got) != 31 || got[0] != want[0] || !slices.Equal(got[7:15], want[1:]) || got[30] != "again" {
			t.Errorf("reconciled %v, want live keys first, each ninth of the first list, then its rest", got)
		}
		if p := c.Snapshot().Queue.Priorities; len(p) != 2 || p[1].Priority != reconcile.LowPriority {
			t.Errorf("priorities %+v, want 0 and %d", p, reconcile.LowPriority)
		}
	})
}

// attempts runs a key that always fails, with a backoff of 1, 2, 4, … seconds, and
// returns when it ran, in seconds. At 10 seconds, after runs at 0, 1, 3 and 7, cause
// adds the key once more.
func attempts[K comparable](t *testing.T, key K, cause source.Cause) (at []int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := newNaming[K](nil)
		c := reconcile.New("test", func(context.Context, K) (reconcile.Result, error) {
			at = append(at, int(time.Since(begun)/time.Second))
			return reconcile.Result{}, errors.New("no")
		}, reconcile.KeyedOptions[K]{RateLimiter: workqueue.Exponential{Base: time.Second}})
		c.Watch(s)
		stop := start(t, c)
		s.name(key, source.Cause{})
		time.Sleep(10 * time.Second)
		s.name(key, cause)
		time.Sleep(12 * time.Second)
		_ = stop()
	})
	return at
}

func TestController_BackoffIsResetWhenSomethingElseIsWanted(t *testing.T) {
	key, other := reconcile.Key{Namespace: "prod", Name: "a"}, reconcile.Key{Namespace: "prod", Name: "b"}
	reset := []int{0, 1, 3, 7, 10, 11, 13, 17} // the delay until 15 is gone, too
	goesOn := []int{0, 1, 3, 7, 10}            // and at 26
	updated := source.Cause{Type: kube.Updated, Object: key, OldGeneration: 1, Generation: 1}
	with := func(change func(c *source.Cause)) source.Cause {
		c := updated
		change(&c)
		return c
	}
	for name, tc := range map[string]struct {
		cause source.Cause
		want  []int
	}{
		"another generation":          {with(func(c *source.Cause) { c.Generation = 2 }), reset},
		"a deletionTimestamp":         {with(func(c *source.Cause) { c.Deleting = true }), reset},
		"gone":                        {source.Cause{Type: kube.Deleted, Object: key}, reset},
		"new":                         {source.Cause{Type: kube.Added, Object: key, Generation: 1}, reset},
		"its status alone":            {updated, goesOn},
		"it has no generation":        {with(func(c *source.Cause) { c.OldGeneration, c.Generation = 0, 0 }), goesOn},
		"seen for the first time":     {source.Cause{Type: kube.Added, Object: key, Initial: true}, goesOn},
		"another object's generation": {with(func(c *source.Cause) { c.Object, c.Generation = other, 2 }), goesOn},
		"a tick":                      {source.Cause{Object: key}, goesOn},
	} {
		t.Run(name, func(t *testing.T) {
			if got := attempts(t, key, tc.cause); !slices.Equal(got, tc.want) {
				t.Errorf("ran at %v seconds, want %v", got, tc.want)
			}
		})
	}
	t.Run("of keys that are no Key", func(t *testing.T) {
		if got := attempts(t, "a", with(func(c *source.Cause) { c.Generation = 2 })); !slices.Equal(got, reset) {
			t.Errorf("ran at %v seconds, want %v: each object concerns them", got, reset)
		}
	})
}

func TestController_PrioritizeByDecidesOnTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		s := newNaming(func(add func(string, source.Cause)) {
			for _, key := range []string{"a", "panics", "urgent", "b"} {
				add(key, source.Cause{Initial: true})
			}
		})
		c := reconcile.New("test", func(_ context.Context, key string) (reconcile.Result, error) {
			j.note(key)
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{Workers: 1, Logger: j.logger(), PrioritizeBy: func(key string, cause source.Cause) int {
			switch key {
			case "urgent":
				return 50
			case "panics":
				panic("oh")
			}
			return reconcile.DefaultPriority(cause)
		}})
		c.Watch(s)
		start(t, c)
		if got := j.notes(); got != "urgent panics a b" {
			t.Errorf("reconciled %q, want urgent, panics with priority 0, then the rest", got)
		}
		if len(j.lines("gives priorities panicked", "oh")) != 1 {
			t.Errorf("no line tells of the panic: %q", j.lines(""))
		}
	})
}

func TestController_RetriesKeepTheirPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNaming(func(add func(string, source.Cause)) {
			for _, key := range []string{"fails", "waits", "raised", "lowered"} {
				add(key, source.Cause{Initial: true})
			}
		})
		c := reconcile.New("test", func(_ context.Context, key string) (reconcile.Result, error) {
			switch key {
			case "fails":
				return reconcile.Result{}, errors.New("no")
			case "raised":
				return reconcile.Result{Retry: true, Priority: new(10)}, nil
			case "lowered":
				return reconcile.Result{RequeueAfter: time.Hour, Priority: new(-101)}, nil
			}
			return reconcile.After(time.Hour, "later"), nil
		}, reconcile.KeyedOptions[string]{RateLimiter: workqueue.Exponential{Base: time.Hour}})
		c.Watch(s)
		start(t, c)
		got := map[string]int{}
		for _, k := range c.QueueSnapshot().Keys {
			if k.State != workqueue.Delayed {
				t.Errorf("%s is %s, want delayed", k.Key, k.State)
			}
			got[k.Key] = k.Priority
		}
		want := map[string]int{"fails": -100, "waits": -100, "raised": 10, "lowered": -101}
		for key, p := range want {
			if got[key] != p {
				t.Errorf("%s waits with priority %d, want %d", key, got[key], p)
			}
		}
	})
}

func TestController_FairByLetsNoNamespaceWaitForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		s := newNaming(func(add func(reconcile.Key, source.Cause)) {
			for i := range 100 {
				add(reconcile.Key{Namespace: "flood", Name: fmt.Sprint(i)}, source.Cause{})
			}
			add(reconcile.Key{Namespace: "calm", Name: "a"}, source.Cause{})
			add(reconcile.Key{Namespace: "bad", Name: "a"}, source.Cause{})
		})
		c := reconcile.New("test", func(_ context.Context, key reconcile.Key) (reconcile.Result, error) {
			j.note(key.String())
			return reconcile.Result{}, nil
		}, reconcile.Options{Workers: 1, Logger: j.logger(), FairBy: func(key reconcile.Key) string {
			if key.Namespace == "bad" {
				panic("oh")
			}
			return reconcile.ByNamespace(key)
		}})
		c.Watch(s)
		start(t, c)
		if got := j.notes(); !strings.HasPrefix(got, "flood/0 calm/a bad/a flood/1 ") || len(j.lines("names flows panicked")) == 0 {
			t.Errorf("reconciled %.60q, want the calm namespace second, and a line about the panic", got)
		}
	})
}

// An urgent source is not delayed by a debounced one of the same controller.
func TestController_UrgentSourceBypassesADebouncedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var at []time.Duration
		noisy, urgent := newNaming[string](nil), newNaming[string](nil)
		c := reconcile.New("test", func(context.Context, string) (reconcile.Result, error) {
			at = append(at, time.Since(begun))
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{})
		c.Watch(source.Debounce[string](noisy, time.Minute, 0))
		c.Watch(urgent)
		stop := start(t, c)
		noisy.name("a", source.Cause{})
		time.Sleep(time.Second)
		if w := c.Snapshot().Sources[0]; w.Waiting != 1 || !w.NextDue.Equal(begun.Add(time.Minute)) {
			t.Errorf("the debounced source is %+v, want one key that waits for a minute", w)
		}
		urgent.name("a", source.Cause{})
		time.Sleep(time.Hour)
		_ = stop()
		if want := []time.Duration{time.Second, time.Minute}; !slices.Equal(at, want) {
			t.Errorf("ran at %v, want %v: the urgent source's key at once", at, want)
		}
	})
}

// withoutOrder is a queue without priorities.
type withoutOrder struct{ reconcile.Queue[string] }

func TestController_OrderMisuseIsRemembered(t *testing.T) {
	plain := withoutOrder{workqueue.New(workqueue.Options[string]{})}
	flow := func(string) string { return "" }
	priority := func(string, source.Cause) int { return 0 }
	var none *workqueue.Queue[string]
	for want, opts := range map[string]reconcile.KeyedOptions[string]{
		"Options.Queue is a nil pointer":   {Queue: none},
		"Options.FairBy is for":            {Queue: plain, FairBy: flow},
		"Options.PrioritizeBy needs":       {Queue: plain, PrioritizeBy: priority},
		"Options.RateLimiter is for":       {Queue: plain, RateLimiter: workqueue.Exponential{}},
		"have Options.Queue order the flo": {Queue: workqueue.New(workqueue.Options[string]{}), PrioritizeBy: priority, FairBy: flow},
	} {
		c := reconcile.New("test", nothing, opts)
		if err := c.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Err is %v, want %q in it", err, want)
		}
	}
	if err := reconcile.New("test", nothing, reconcile.KeyedOptions[string]{FairBy: flow, PrioritizeBy: priority}).Err(); err != nil {
		t.Errorf("Err is %v for the controller's own queue, want nil", err)
	}
}

func TestController_QueueWithoutPrioritiesStillRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		s := newNaming(func(add func(string, source.Cause)) {
			add("first", source.Cause{Initial: true})
			add("live", source.Cause{})
		})
		c := reconcile.New("test", func(_ context.Context, key string) (reconcile.Result, error) {
			j.note(key)
			if strings.Count(j.notes(), key) > 1 {
				return reconcile.Result{}, nil
			}
			return reconcile.Result{Retry: true, Priority: new(5)}, nil
		}, reconcile.KeyedOptions[string]{Workers: 1, Queue: withoutOrder{workqueue.New(workqueue.Options[string]{})}})
		c.Watch(s)
		start(t, c)
		time.Sleep(time.Minute)
		if got := j.notes(); got != "first live first live" {
			t.Errorf("reconciled %q, want both twice, in their order", got)
		}
		if s := c.QueueSnapshot(); len(s.Keys) != 0 {
			t.Errorf("snapshot %+v of a queue that gives none", s)
		}
	})
}
