// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package queues_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clientqueue "k8s.io/client-go/util/workqueue"

	"github.com/flyball-dev/flyball/bridge/clientgo/queues"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

var _ reconcile.Queue[string] = (*queues.Queue[string])(nil)

// theirs returns client-go's queue with a backoff that starts at a second and doubles.
func theirs() clientqueue.TypedRateLimitingInterface[string] {
	return clientqueue.NewTypedRateLimitingQueue(clientqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Hour))
}

// onTheirs runs a controller on client-go's queue, fed by the channel.
func onTheirs(t *testing.T, f reconcile.Func[string]) (feed chan string, c *reconcile.Controller[string], stop func()) {
	t.Helper()
	feed = make(chan string)
	c = reconcile.New("test", f, reconcile.KeyedOptions[string]{Workers: 2, Queue: queues.NewQueue("test", theirs())})
	c.Watch(source.Channel(feed, source.ChannelOptions{Name: "feed"}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	synctest.Wait()
	return feed, c, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	}
}

func TestQueue_ControllerRunsOnClientGosQueue_G8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := map[string]int{}, 0
		begun, runs := time.Now(), map[string][]time.Duration{}
		feed, c, stop := onTheirs(t, func(_ context.Context, key string) (reconcile.Result, error) {
			mu.Lock()
			running[key]++
			most = max(most, running[key])
			runs[key] = append(runs[key], time.Since(begun))
			n := len(runs[key])
			mu.Unlock()
			time.Sleep(100 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			running[key]--
			if key == "broken" && n < 3 {
				return reconcile.Result{}, errors.New("not yet")
			}
			if key == "panics" && n == 1 {
				panic("once")
			}
			return reconcile.Result{}, nil
		})
		feed <- "busy"
		synctest.Wait()
		feed <- "busy" // while it is held
		synctest.Wait()
		if s := c.Snapshot().Queue; s.Name != "test" || s.Held != 1 {
			t.Errorf("the queue's numbers are %+v, want one held key", s)
		}
		feed <- "broken"
		feed <- "panics"
		time.Sleep(time.Minute)
		stop()
		want := map[string]int{"busy": 2, "broken": 3, "panics": 2}
		for key, n := range want {
			if len(runs[key]) != n {
				t.Errorf("%s ran at %v, want %d runs", key, runs[key], n)
			}
		}
		if most != 1 {
			t.Errorf("%d workers had one key at the same time", most)
		}
		if at := runs["broken"]; len(at) == 3 && (at[1]-at[0] < time.Second || at[2]-at[1] < 2*time.Second) {
			t.Errorf("the broken key ran at %v: client-go's backoff of 1 s, then 2 s, was not heeded", at)
		}
	})
}

// What the documentation says is lost, is lost.
func TestQueue_WaitIsNotTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		runs := 0
		feed, _, stop := onTheirs(t, func(context.Context, string) (reconcile.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			if runs++; runs == 1 {
				return reconcile.After(time.Hour, "later"), nil
			}
			return reconcile.Result{}, nil
		})
		feed <- "a"
		synctest.Wait()
		feed <- "a"
		time.Sleep(2 * time.Hour)
		stop()
		if runs != 3 {
			t.Errorf("%d runs, want 3: the event's, and the wait's after it", runs)
		}
	})
}

func TestQueue_MisuseIsRemembered(t *testing.T) {
	nothing := func(context.Context, string) (reconcile.Result, error) { return reconcile.Result{}, nil }
	own := workqueue.New(workqueue.Options[string]{})
	for want, opts := range map[string]reconcile.KeyedOptions[string]{
		"is a nil pointer":     {Queue: queues.NewQueue[string]("test", nil)},
		"Options.RateLimiter":  {Queue: own, RateLimiter: workqueue.Exponential{}},
		"Options.FairBy":       {Queue: own, FairBy: func(string) string { return "" }},
		"Options.PrioritizeBy": {Queue: queues.NewQueue("test", theirs()), PrioritizeBy: func(string, source.Cause) int { return 0 }},
	} {
		c := reconcile.New("test", nothing, opts)
		if err := c.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
