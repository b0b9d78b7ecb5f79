// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// The last ten minutes are counted by ten seconds, with the longest queue of each.
func TestSnapshot_RecentHasTheLastTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fed, retried := make(chan reconcile.Key, 100), false
		c := reconcile.New("website", func(_ context.Context, key reconcile.Key) (reconcile.Result, error) {
			time.Sleep(time.Second)
			switch {
			case strings.HasPrefix(key.Name, "bad"):
				return reconcile.Result{}, reconcile.Terminal(errors.New("it is bad"))
			case key.Name == "again" && !retried:
				retried = true
				return reconcile.Result{Retry: true}, nil
			}
			return reconcile.Result{}, nil
		}, reconcile.Options{Workers: 1})
		c.Watch(source.Channel(fed, source.ChannelOptions{}))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()
		if got := c.Snapshot().Recent; len(got) != 0 {
			t.Errorf("before the first reconcile: %+v, want none", got)
		}

		time.Sleep(time.Until(time.Now().Truncate(10 * time.Second).Add(10 * time.Second)))
		began := time.Now()
		for _, name := range []string{"a", "b", "c", "bad", "bad-too"} {
			fed <- reconcile.Key{Name: name}
		}
		time.Sleep(8500 * time.Millisecond)
		want := reconcile.Interval{Began: began, Done: 3, Failed: 2, Ready: 4, Oldest: 3 * time.Second}
		if got := c.Snapshot().Recent; len(got) != 1 || !equal(got[0], want) {
			t.Errorf("Recent = %+v, want %+v", got, want)
		}

		time.Sleep(time.Until(began.Add(70 * time.Second)))
		fed <- reconcile.Key{Name: "again"}
		time.Sleep(1500 * time.Millisecond)
		got := c.Snapshot().Recent
		if len(got) != 2 || !equal(got[1], reconcile.Interval{Began: began.Add(70 * time.Second), Requeued: 1}) {
			t.Errorf("Recent = %+v, want also one requeued a minute later, and none between", got)
		}
		time.Sleep(time.Minute)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Until(began.Add(11 * time.Minute)))
		if got := c.Snapshot().Recent; len(got) != 1 {
			t.Errorf("Recent = %+v, want only what is not older than ten minutes", got)
		}
		time.Sleep(time.Hour)
		if got := c.Snapshot().Recent; got != nil {
			t.Errorf("Recent = %+v, want nil after ten minutes without a reconcile", got)
		}
	})
}

func equal(a, b reconcile.Interval) bool {
	same := a.Began.Equal(b.Began)
	a.Began, b.Began = time.Time{}, time.Time{}
	return same && a == b
}
