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

// explained runs a controller with one worker that calls f, and test with a function that adds
// keys. It returns the causes of each reconcile.
func explained(t *testing.T, f reconcile.Func[string], test func(add func(key string, cause source.Cause))) (seen []reconcile.Causes, log *journal) {
	log = new(journal)
	synctest.Test(t, func(t *testing.T) {
		s := newNaming(func(func(string, source.Cause)) {})
		c := reconcile.New("website", func(ctx context.Context, key string) (reconcile.Result, error) {
			seen = append(seen, reconcile.CausesOf(ctx))
			return f(ctx, key)
		}, reconcile.KeyedOptions[string]{Workers: 1, Logger: log.logger()})
		c.Watch(s)
		start(t, c)
		synctest.Wait()
		test(s.name)
	})
	return seen, log
}

func idle(context.Context, string) (reconcile.Result, error) { return reconcile.Result{}, nil }

var (
	website = source.Cause{Source: "kind Website", Type: kube.Updated, Object: source.Key{Namespace: "shop", Name: "a"}, OldGeneration: 3, Generation: 4}
	config  = source.Cause{Source: "kind ConfigMap", Type: kube.Deleted, Object: source.Key{Namespace: "shop", Name: "c"}}
)

// What is added while a key waits is merged: the first, the last, and how many of each source.
func TestCauses_AreMergedWhileTheKeyWaits_R28(t *testing.T) {
	seen, _ := explained(t, func(ctx context.Context, key string) (reconcile.Result, error) {
		time.Sleep(time.Minute)
		return reconcile.Result{}, nil
	}, func(add func(string, source.Cause)) {
		add("other", website)
		synctest.Wait() // the worker has it
		for range 3 {
			add("a", website)
		}
		add("a", config)
		add("b", config)
		time.Sleep(10 * time.Second)
		add("b", config)
		add("other", config) // while it runs
		time.Sleep(time.Hour)
	})
	if len(seen) != 4 {
		t.Fatalf("%d reconciles, want 4", len(seen))
	}
	if one := seen[0]; one.First != website || one.Last != website || one.Count != 1 || one.Sources != nil {
		t.Errorf("the causes of one are %+v", one)
	}
	if a := seen[1]; a.First != website || a.Last != config || a.Count != 4 || !slices.Equal(a.Sources, []reconcile.SourceCount{{Source: "kind Website", Count: 3}, {Source: "kind ConfigMap", Count: 1}}) {
		t.Errorf("the causes of four are %+v", a)
	}
	if b := seen[2]; b.Count != 2 || b.Sources != nil || b.Last != config || time.Since(b.Since) < 0 {
		t.Errorf("the causes of two of one source are %+v", b)
	}
	if again := seen[3]; again.Count != 1 || again.First != config {
		t.Errorf("what was added during a reconcile is %+v", again)
	}
	if got, want := seen[1].String(), "updated shop/a (generation 3 to 4), and 3 more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A retry and a timer name what they are for, unless an event comes first.
func TestCauses_NameRetriesAndTimers_R28(t *testing.T) {
	results := []struct {
		res reconcile.Result
		err error
	}{
		{err: errors.New("connection refused")},
		{res: reconcile.After(time.Hour, "the certificate ends")},
		{res: reconcile.Retry("no address")},
		{res: reconcile.After(time.Hour, "unused")},
		{err: errors.New(strings.Repeat("ä", 1000))},
		{},
	}
	n := 0
	seen, log := explained(t, func(ctx context.Context, key string) (reconcile.Result, error) {
		n++
		return results[n-1].res, results[n-1].err
	}, func(add func(string, source.Cause)) {
		add("a", website)
		time.Sleep(90 * time.Minute)
		add("a", config) // before the timer
		time.Sleep(24 * time.Hour)
	})
	var got []string
	for _, c := range seen {
		got = append(got, c.String())
	}
	want := []string{
		"updated shop/a (generation 3 to 4)", "retry: connection refused", "timer: the certificate ends",
		"retry: no address", "deleted shop/c", "retry: " + strings.Repeat("ä", 128) + "…",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if len(log.lines("Reconcile failed", "connection refused", "updated shop/a (generation 3 to 4)")) != 1 {
		t.Errorf("the line of the failure does not name the cause:\n%s", log.notes())
	}
}

// The memory of causes is bounded: keys beyond it run, with a cause that is not recorded.
func TestCauses_AreBounded_R28(t *testing.T) {
	const keys = 10_000
	seen, _ := explained(t, idle, func(add func(string, source.Cause)) {
		for n := range keys {
			add(fmt.Sprint(n), website)
		}
		time.Sleep(time.Minute)
		add("later", config)
		time.Sleep(time.Minute)
	})
	if len(seen) != keys+1 {
		t.Fatalf("%d reconciles, want %d", len(seen), keys+1)
	}
	if last := seen[keys]; last.Count != 1 || last.First != config {
		t.Errorf("after a burst, the causes are %+v", last)
	}
}

// Keys that wait for a timer for hours leave room for the causes of events.
func TestCauses_TimersLeaveRoomForEvents_R28(t *testing.T) {
	const keys = 10_000
	seen, _ := explained(t, func(context.Context, string) (reconcile.Result, error) {
		return reconcile.After(24*time.Hour, "the daily look"), nil
	}, func(add func(string, source.Cause)) {
		for n := range keys {
			add(fmt.Sprint(n), website)
		}
		time.Sleep(time.Minute)
		add("new", config)
		add("9999", config) // which waits
		time.Sleep(time.Minute)
	})
	for _, c := range seen[keys:] {
		if c.Count != 1 || c.First != config {
			t.Errorf("while %d keys wait for a timer, the causes of an event are %+v", keys, c)
		}
	}
}

// lateQueue is a queue whose Add waits for a moment in which the key can be taken.
type lateQueue struct {
	*workqueue.Queue[string]
	late func() // nil: it does not wait
}

func (q *lateQueue) Add(key string) {
	if q.late != nil {
		q.late()
	}
	q.Queue.Add(key)
}

// A worker may take a key between the record of a cause and the addition that it is for. It
// then runs once more, for that cause.
func TestCauses_AddedAsTheKeyIsTaken_R28(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []reconcile.Causes
		queue := &lateQueue{Queue: workqueue.New(workqueue.Options[string]{})}
		s := newNaming(func(func(string, source.Cause)) {})
		c := reconcile.New("website", func(ctx context.Context, key string) (reconcile.Result, error) {
			seen = append(seen, reconcile.CausesOf(ctx))
			time.Sleep(time.Minute)
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{Workers: 1, Queue: queue})
		c.Watch(s)
		start(t, c)
		synctest.Wait()
		s.name("other", website)
		synctest.Wait() // the worker has it
		s.name("a", website)
		synctest.Wait()
		queue.late = func() { time.Sleep(90 * time.Second) } // the worker takes a after 60
		s.name("a", config)
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(seen) != 3 {
			t.Fatalf("%d reconciles, want 3", len(seen))
		}
		if run := seen[1]; run.Count != 2 || run.First != website || run.Last != config {
			t.Errorf("the run that has taken the key names %+v", run)
		}
		if run := seen[2]; run.Count != 1 || run.First != config {
			t.Errorf("the run of the late addition names %+v", run)
		}
	})
}

func TestCausesOf_OutsideOfAReconcile(t *testing.T) {
	if c := reconcile.CausesOf(t.Context()); c.Count != 0 || c.String() != "not recorded" {
		t.Errorf("got %+v", c)
	}
}
