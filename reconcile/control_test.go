// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

func keyPause(names ...string) reconcile.Pauses {
	p := reconcile.Pauses{Keys: map[string]reconcile.Pause{}}
	for _, name := range names {
		p.Keys[name] = reconcile.Pause{By: "alice", At: time.Now()}
	}
	return p
}

func pauseAll() reconcile.Pauses {
	return reconcile.Pauses{All: &reconcile.Pause{By: "alice", At: time.Now()}}
}

// noting is a controller that notes what it reconciles, and which fails for keys that begin with
// "bad".
func noting(t *testing.T, j *journal, opts reconcile.KeyedOptions[string]) (*reconcile.Controller[string], keys) {
	t.Helper()
	fed := make(keys, 100)
	opts.Logger = j.logger()
	c := reconcile.New("test", func(_ context.Context, key string) (reconcile.Result, error) {
		j.note(key)
		switch {
		case strings.HasPrefix(key, "bad"):
			return reconcile.Result{}, errors.New("no")
		case strings.HasPrefix(key, "later"):
			return reconcile.After(time.Minute, "poll"), nil
		}
		return reconcile.Result{}, nil
	}, opts)
	c.Watch(fed.source())
	return c, fed
}

func TestController_PausedKeyRunsOnceWhenResumed_R31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		c, fed := noting(t, &j, reconcile.KeyedOptions[string]{})
		c.SetPauses(keyPause("a")) // before Run
		stop := start(t, c)
		for _, key := range []string{"a", "b", "a", "a"} {
			fed <- key
			synctest.Wait()
		}
		if got := j.notes(); got != "b" {
			t.Errorf("reconciled %q, want b alone: a is paused", got)
		}
		s := c.Snapshot()
		if s.Woken != 1 || s.Pauses.Keys["a"].By != "alice" || s.Queue.Ready != 0 || s.Queue.Held != 0 {
			t.Errorf("the snapshot has %d woken keys, pauses %+v, %d ready and %d held; want one key of alice, out of the queue",
				s.Woken, s.Pauses, s.Queue.Ready, s.Queue.Held)
		}
		if keys := c.QueuedKeys(); len(keys) != 1 || keys[0].Key != "a" || keys[0].State != "paused" {
			t.Errorf("the keys are %+v, want a, paused", keys)
		}
		c.SetPauses(reconcile.Pauses{})
		c.SetPauses(reconcile.Pauses{}) // changes nothing
		synctest.Wait()
		if got := j.notes(); got != "b a" {
			t.Errorf("reconciled %q, want b, and a once: it was woken while it was paused", got)
		}
		if runs := c.Runs("a"); len(runs) != 1 || runs[0].Causes.Count != 4 || runs[0].Causes.First.Source != "channel test" || runs[0].Causes.Last.Source != "resume" {
			t.Errorf("the runs are %+v, want one with three causes of the source and the resume", runs)
		}
		if s := c.Snapshot(); s.Woken != 0 || len(c.QueuedKeys()) != 0 {
			t.Errorf("%d keys wait to be resumed after the resume", s.Woken)
		}
		c.SetPauses(keyPause("a"))
		c.SetPauses(reconcile.Pauses{})
		synctest.Wait()
		if got := j.notes(); got != "b a" {
			t.Errorf("reconciled %q: a key that nothing woke does not run when it is resumed", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Deadlines and backoffs that end meanwhile wake, too, and failures stay counted.
func TestController_PausedControllerKeepsDeadlinesAndBackoff_R31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		c, fed := noting(t, &j, reconcile.KeyedOptions[string]{RateLimiter: workqueue.Exponential{Base: time.Second}})
		stop := start(t, c)
		fed <- "later"
		fed <- "bad"
		synctest.Wait()
		c.SetPauses(pauseAll())
		time.Sleep(time.Hour)
		fed <- "new"
		synctest.Wait()
		if got := strings.Fields(j.notes()); len(got) != 2 {
			t.Errorf("reconciled %q, want two: the controller is paused", got)
		}
		if s := c.Snapshot(); s.Woken != 3 || s.Active != 0 || s.Pauses.All == nil {
			t.Errorf("%d keys are woken and %d run, want 3 and 0", s.Woken, s.Active)
		}
		c.SetPauses(keyPause("bad")) // the rest is resumed
		synctest.Wait()
		if got := strings.Fields(j.notes()); len(got) != 4 || slices.Contains(got[2:], "bad") {
			t.Errorf("reconciled %q, want the two that are not paused any more", got)
		}
		c.SetPauses(reconcile.Pauses{})
		synctest.Wait()
		if got := j.notes(); !strings.HasSuffix(got, " bad") {
			t.Errorf("reconciled %q, want bad at last", got)
		}
		time.Sleep(1999 * time.Millisecond)
		if got := j.notes(); strings.Count(got, "bad") != 2 {
			t.Errorf("reconciled %q: the second failure has the longer backoff of two seconds", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A pause lets the reconcile in progress end, and a stop does not wait for paused keys.
func TestController_PauseWhileRunningAndStop_R31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fed, release, began := make(keys, 10), make(chan struct{}), 0
		c := reconcile.New("test", func(context.Context, string) (reconcile.Result, error) {
			began++
			<-release
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{})
		c.Watch(fed.source())
		stop := start(t, c)
		fed <- "a"
		synctest.Wait()
		c.SetPauses(pauseAll())
		fed <- "a" // while it runs
		close(release)
		synctest.Wait()
		if s := c.Snapshot(); began != 1 || s.Outcomes[reconcile.OutcomeDone] != 1 || s.Woken != 1 {
			t.Errorf("%d reconciles began, %d are done and %d keys wait; want one each", began, s.Outcomes[reconcile.OutcomeDone], s.Woken)
		}
		before := time.Now()
		if err := stop(); err != nil || time.Since(before) > 0 {
			t.Errorf("the stop took %v and returned %v; paused keys must not delay it", time.Since(before), err)
		}
		c.SetPauses(reconcile.Pauses{}) // after the end it does nothing
		if began != 1 {
			t.Errorf("%d reconciles began after the end", began-1)
		}
	})
}

func TestController_RunNowAndResetBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		c, fed := noting(t, &j, reconcile.KeyedOptions[string]{RateLimiter: workqueue.Exponential{Base: time.Minute}})
		stop := start(t, c)
		fed <- "later"
		fed <- "bad"
		synctest.Wait()
		if c.RunNow("nothing", "bob") || c.ResetBackoff("nothing", "bob") {
			t.Error("a key that nobody knows was run")
		}
		if !c.RunNow("later", "bob") || !c.RunNow("bad", "bob") {
			t.Error("a known key was not run")
		}
		synctest.Wait()
		if got := strings.Fields(j.notes()); len(got) != 4 {
			t.Errorf("reconciled %q, want both twice, without a wait", got)
		}
		if runs := c.Runs("bad"); runs[1].Causes.String() != "request: bob" {
			t.Errorf("the cause is %q, want who has asked", runs[1].Causes)
		}
		if !c.ResetBackoff("bad", "bob") {
			t.Error("a key with failures was not found")
		}
		synctest.Wait()
		keys := c.QueuedKeys()
		i := slices.IndexFunc(keys, func(k workqueue.KeyState[string]) bool { return k.Key == "bad" })
		if i < 0 || keys[i].Attempts != 1 || time.Until(keys[i].Due) > 90*time.Second {
			t.Errorf("the keys are %+v, want bad with one failure and its first backoff", keys)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Without recorded runs, keys of the queue and paused ones are found.
func TestController_RunNowWithoutRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		c, fed := noting(t, &j, reconcile.KeyedOptions[string]{RecordRuns: -1})
		stop := start(t, c)
		fed <- "later"
		c.SetPauses(keyPause("a"))
		fed <- "a"
		synctest.Wait()
		if !c.RunNow("later", "bob") || !c.RunNow("a", "bob") {
			t.Error("a key of the queue, or a paused one that was woken, was not found")
		}
		synctest.Wait()
		if got := j.notes(); got != "later later" {
			t.Errorf("reconciled %q, want later twice: a is paused", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A key that is not equal to itself is kept as often as it was woken, and resumed.
func TestController_PausedNaN_R31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fed, runs := make(chan float64, 2), 0
		c := reconcile.New("test", func(context.Context, float64) (reconcile.Result, error) {
			runs++
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[float64]{Workers: 1})
		c.Watch(source.Channel(fed, source.ChannelOptions{Name: "test"}))
		stop := start(t, c)
		c.SetPauses(pauseAll())
		fed <- math.NaN()
		fed <- math.NaN()
		synctest.Wait()
		if woken := c.Snapshot().Woken; woken != 2 || runs != 0 {
			t.Errorf("%d are woken and %d have run, want 2 and 0", woken, runs)
		}
		c.SetPauses(reconcile.Pauses{})
		synctest.Wait()
		if woken := c.Snapshot().Woken; woken != 0 || runs != 2 {
			t.Errorf("%d are woken and %d have run, want 0 and 2", woken, runs)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// The object of a paused key may go: nothing is left of the key.
func TestObjectController_PausedKeyWhoseObjectIsGone_R31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.Write(deployment("web"))
		i := watch(t, s)
		runs := 0
		c := reconcile.For(i, func(context.Context, *appsv1.Deployment) (reconcile.Result, error) {
			runs++
			return reconcile.Result{}, nil
		}, reconcile.Options{})
		c.SetPauses(keyPause("prod/web"))
		stop := start(t, c.Controller)
		if woken := c.Snapshot().Woken; woken != 1 {
			t.Errorf("%d keys are woken by the first list, want one", woken)
		}
		s.Delete(reconcile.Key{Namespace: "prod", Name: "web"})
		synctest.Wait()
		if woken := c.Snapshot().Woken; woken != 0 {
			t.Errorf("%d keys are woken after the deletion, want none: there is nothing to reconcile", woken)
		}
		c.SetPauses(reconcile.Pauses{})
		synctest.Wait()
		if runs != 0 {
			t.Errorf("%d reconciles without an object", runs)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A paused key is no finding in the numbers that alarms read.
func TestController_PausedKeyIsNoFinding_R31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		c, fed := noting(t, &j, reconcile.KeyedOptions[string]{RateLimiter: workqueue.Exponential{Base: time.Minute}})
		stop := start(t, c)
		fed <- "bad"
		time.Sleep(3 * time.Hour)
		if n := c.Snapshot().Findings[reconcile.Stuck]; n != 1 {
			t.Fatalf("%d keys are stuck, want one", n)
		}
		c.SetPauses(keyPause("bad"))
		if n := c.Snapshot().Findings[reconcile.Stuck]; n != 0 || len(c.Findings()) != 1 {
			t.Errorf("%d keys are stuck, want none of the numbers, and the finding: it is paused", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
