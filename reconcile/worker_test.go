// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// broken is an error whose Error method panics.
type broken struct{ text *string }

func (b *broken) Error() string { return *b.text }

// brittle is an error whose Unwrap method panics.
type brittle struct{ err *error }

func (brittle) Error() string   { return "brittle" }
func (b brittle) Unwrap() error { return *b.err }

func TestController_PanicIsAnErrorOfItsReconcile_R3(t *testing.T) {
	for name, tc := range map[string]struct {
		fail func() error
		want string // in the log
	}{
		"panic":       {func() error { panic("boom") }, "boom"},
		"panic error": {func() error { panic(errors.New("boom")) }, "boom"},
		"panic nil":   {func() error { panic(nil) }, "nil"},
		"goexit":      {func() error { runtime.Goexit(); return nil }, "Goexit"},
		"bad error":   {func() error { return (*broken)(nil) }, "panicked"},
		"bad unwrap":  {func() error { return brittle{} }, "nil pointer"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var j journal
				var failed atomic.Bool
				fed := make(keys, 2)
				c := reconcile.New("test", func(_ context.Context, key string) (reconcile.Result, error) {
					j.note(key)
					if key == "bad" && !failed.Swap(true) {
						return reconcile.Result{}, tc.fail()
					}
					return reconcile.Result{}, nil
				}, reconcile.KeyedOptions[string]{Workers: 1, Logger: j.logger(), RateLimiter: workqueue.Exponential{Base: time.Second}})
				c.Watch(fed.source())
				stop := start(t, c)
				fed <- "bad"
				fed <- "good"
				synctest.Wait()
				if got := j.notes(); got != "bad good" {
					t.Errorf("reconciled %q, want %q: the only worker must live on", got, "bad good")
				}
				time.Sleep(999 * time.Millisecond)
				if got := j.notes(); got != "bad good" {
					t.Errorf("reconciled %q before the backoff ended", got)
				}
				time.Sleep(time.Millisecond)
				synctest.Wait()
				if got := j.notes(); got != "bad good bad" {
					t.Errorf("reconciled %q, want %q: the key is tried again with backoff", got, "bad good bad")
				}
				if name != "bad error" {
					if got := c.Snapshot().Outcomes[reconcile.OutcomePanic]; got != 1 {
						t.Errorf("%d panics counted, want 1", got)
					}
				}
				lines := j.lines(tc.want, `"key"="bad"`, `"reconcileID"=`, "worker_test.go")
				if len(lines) != 1 {
					t.Errorf("%d log lines with %q, key, ID and stack, want 1; all: %q", len(lines), tc.want, j.lines())
				}
				if err := stop(); err != nil {
					t.Errorf("Run returned %v, want nil: a panic does not end the controller", err)
				}
			})
		})
	}
}

func TestController_SoftDeadlineReportsOnceWithTheStack_R5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		fed, release := make(keys, 1), make(chan struct{})
		c := reconcile.New("test", func(context.Context, string) (reconcile.Result, error) {
			waitForTheWorld(release)
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{Logger: j.logger(), SoftDeadline: time.Minute})
		c.Watch(fed.source())
		start(t, c)
		fed <- "a"
		time.Sleep(time.Minute - time.Millisecond)
		if got := j.lines("soft deadline"); len(got) != 0 {
			t.Errorf("reported before the soft deadline: %q", got)
		}
		time.Sleep(5 * time.Minute)
		lines := j.lines("soft deadline", `"key"="a"`)
		if len(lines) != 1 || !strings.Contains(lines[0], "waitForTheWorld") {
			t.Errorf("log lines about the soft deadline: %q, want one, with the stack of the reconcile that names waitForTheWorld", lines)
		}
		if len(lines) == 1 && strings.Contains(lines[0], "created by testing.(*T).Run") {
			t.Errorf("the report has stacks of other goroutines: %q", lines[0])
		}
		s := c.Snapshot()
		if s.Overdue != 1 || s.Active != 1 || len(s.Running) != 1 || s.Running[0].Key != "a" {
			t.Errorf("Snapshot has overdue %d, active %d, running %+v, want 1, 1 and key a", s.Overdue, s.Active, s.Running)
		}
		close(release)
	})
}

func waitForTheWorld(release chan struct{}) { <-release }

func TestController_SoftDeadlineIsSilentWhenItHolds_R5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		fed := make(keys, 1)
		c := reconcile.New("test", func(context.Context, string) (reconcile.Result, error) {
			time.Sleep(59 * time.Second)
			return reconcile.After(time.Second, "again"), nil
		}, reconcile.KeyedOptions[string]{Logger: j.logger()})
		c.Watch(fed.source())
		start(t, c)
		fed <- "a"
		time.Sleep(time.Hour)
		if got := j.lines("soft deadline"); len(got) != 0 || c.Snapshot().Overdue != 0 {
			t.Errorf("reports about reconciles that held the soft deadline: %q", got)
		}
	})
}

func TestController_HardDeadlineCancels_R5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		fed := make(keys, 1)
		causes := make(chan error, 2)
		c := reconcile.New("test", func(ctx context.Context, _ string) (reconcile.Result, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			causes <- context.Cause(ctx)
			return reconcile.Result{}, ctx.Err()
		}, reconcile.KeyedOptions[string]{Logger: j.logger(), HardDeadline: 2 * time.Minute, RateLimiter: workqueue.Exponential{Base: 24 * time.Hour, Max: 24 * time.Hour}})
		c.Watch(fed.source())
		start(t, c)
		began := time.Now()
		fed <- "a"
		cause := <-causes
		synctest.Wait()
		if _, ok := errors.AsType[*reconcile.DeadlineError](cause); !ok {
			t.Errorf("the context's cause is %v, want a *DeadlineError: a reconcile must be able to tell", cause)
		}
		if took := time.Since(began); took != 2*time.Minute {
			t.Errorf("cancelled after %s, want 2m", took)
		}
		if got := c.Snapshot().Outcomes[reconcile.OutcomeTimeout]; got != 1 {
			t.Errorf("%d timeouts counted, want 1", got)
		}
		if got := j.lines("hard deadline", `"key"="a"`); len(got) != 1 {
			t.Errorf("log lines about the hard deadline: %q, want one", got)
		}
	})
}

// conflict is a stale-resourceVersion conflict that the test resolves.
type conflict struct {
	error
	passed  func()
	stopped int
}

func newConflict() *conflict {
	return &conflict{error: apierrors.NewConflict(schema.GroupResource{Resource: "websites"}, "a", errors.New("the object has been modified"))}
}

func (c *conflict) Unwrap() error { return c.error }
func (c *conflict) WhenPassed(do func()) func() {
	c.passed = do
	return func() { c.stopped++ }
}

func TestController_ConflictIsQuietAndRunsWhenTheCacheHasPassed_R6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		var runs atomic.Int32
		fed, stale := make(keys, 1), newConflict()
		c := reconcile.New("test", func(context.Context, string) (reconcile.Result, error) {
			if runs.Add(1) == 1 {
				return reconcile.Result{}, stale
			}
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{Logger: j.logger(), RateLimiter: workqueue.Exponential{Base: time.Minute}})
		c.Watch(fed.source())
		start(t, c)
		fed <- "a"
		time.Sleep(time.Second)
		synctest.Wait()
		if runs.Load() != 1 {
			t.Errorf("%d runs before the cache or the backoff, want 1", runs.Load())
		}
		if stale.passed == nil {
			t.Fatal("nobody waits for the cache to pass the version that failed")
		}
		stale.passed()
		synctest.Wait()
		if runs.Load() != 2 {
			t.Errorf("%d runs after the cache has passed the version, want 2: it need not wait for the backoff", runs.Load())
		}
		if stale.stopped != 1 {
			t.Errorf("the waiting was ended %d times, want 1", stale.stopped)
		}
		time.Sleep(time.Hour)
		if runs.Load() != 2 {
			t.Errorf("%d runs after the backoff too, want 2: the run that came first decides", runs.Load())
		}
		if got := c.Snapshot().Outcomes; got[reconcile.OutcomeConflict] != 1 || got[reconcile.OutcomeError] != 0 {
			t.Errorf("outcomes %v, want one conflict and no error", got)
		}
		if got := j.lines(`"level"=0`); len(got) != 0 {
			t.Errorf("level 0 has %q, want nothing: a conflict is quiet", got)
		}
		if got := j.lines(`"error"`); len(got) != 0 {
			t.Errorf("logged as an error: %q", got)
		}
	})
}

func TestController_ConflictRunsWhenTheBackoffEnds_R6(t *testing.T) {
	for name, err := range map[string]error{
		"the cache never passes": newConflict(),
		"of another client":      newConflict().error,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs atomic.Int32
				fed := make(keys, 1)
				c := reconcile.New("test", func(context.Context, string) (reconcile.Result, error) {
					if runs.Add(1) == 1 {
						return reconcile.Result{}, err
					}
					return reconcile.Result{}, nil
				}, reconcile.KeyedOptions[string]{RateLimiter: workqueue.Exponential{Base: time.Minute}})
				c.Watch(fed.source())
				start(t, c)
				fed <- "a"
				time.Sleep(time.Minute - time.Millisecond)
				if runs.Load() != 1 {
					t.Errorf("%d runs before the backoff has ended, want 1", runs.Load())
				}
				time.Sleep(time.Millisecond)
				synctest.Wait()
				if runs.Load() != 2 {
					t.Errorf("%d runs after the backoff, want 2: a conflict must not wait forever", runs.Load())
				}
			})
		})
	}
}

// alwaysPassed is a conflict about a version that the cache has already passed.
type alwaysPassed struct{ error }

func (alwaysPassed) WhenPassed(do func()) func() {
	do()
	return func() {}
}

func TestController_ConflictsWithoutEndSlowDown_R6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 1000
		var runs atomic.Int32
		fed := make(keys, 1)
		c := reconcile.New("test", func(context.Context, string) (reconcile.Result, error) {
			if runs.Add(1) >= most {
				return reconcile.Result{}, nil
			}
			return reconcile.Result{}, alwaysPassed{errors.New("the object has been modified")}
		}, reconcile.KeyedOptions[string]{})
		c.Watch(fed.source())
		start(t, c)
		fed <- "a"
		time.Sleep(time.Second)
		synctest.Wait()
		if got := runs.Load(); got < 2 || got > 20 {
			t.Errorf("%d runs within a second, want a few: they may not go on as fast as the server answers", got)
		}
		time.Sleep(time.Minute)
		if got := runs.Load(); got < 12 {
			t.Errorf("%d runs within a minute, want more than 12: they must go on with backoff", got)
		}
	})
}

func TestController_EndStopsWaitingForTheCache_R6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fed, stale := make(keys, 1), newConflict()
		c := reconcile.New("test", func(context.Context, string) (reconcile.Result, error) {
			return reconcile.Result{}, stale
		}, reconcile.KeyedOptions[string]{RateLimiter: never{}})
		c.Watch(fed.source())
		stop := start(t, c)
		fed <- "a"
		synctest.Wait()
		if err := stop(); err != nil || stale.stopped != 1 {
			t.Errorf("Run returned %v and ended the waiting %d times, want nil and once", err, stale.stopped)
		}
	})
}

func TestController_EventDoesNotWaitForTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		fed := make(keys, 1)
		c := reconcile.New("test", func(context.Context, string) (reconcile.Result, error) {
			runs.Add(1)
			return reconcile.Result{}, errors.New("not yet")
		}, reconcile.KeyedOptions[string]{RateLimiter: workqueue.Exponential{Base: time.Hour, Max: time.Hour}})
		c.Watch(fed.source())
		start(t, c)
		fed <- "a"
		time.Sleep(time.Second)
		fed <- "a"
		synctest.Wait()
		if runs.Load() != 2 {
			t.Errorf("%d runs after an event during the backoff, want 2, at once", runs.Load())
		}
		time.Sleep(time.Hour - 2*time.Millisecond)
		if runs.Load() != 2 {
			t.Errorf("%d runs, want 2: the last run decides when the next is due", runs.Load())
		}
	})
}

func TestController_EachRunDecidesAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		fed := make(keys, 1)
		c := reconcile.New("test", func(context.Context, string) (reconcile.Result, error) {
			if runs.Add(1) == 1 {
				return reconcile.After(time.Minute, "look again"), nil
			}
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{})
		c.Watch(fed.source())
		start(t, c)
		fed <- "a"
		time.Sleep(30 * time.Second)
		fed <- "a"
		time.Sleep(time.Hour)
		if runs.Load() != 2 {
			t.Errorf("%d runs, want 2: the second was done, so the first one's delay is void", runs.Load())
		}
	})
}

func TestController_KeyAddedWhileHeldRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		fed := make(keys)
		c := reconcile.New("test", func(context.Context, string) (reconcile.Result, error) {
			if runs.Add(1) == 1 {
				time.Sleep(time.Second)
			}
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{})
		c.Watch(fed.source())
		start(t, c)
		fed <- "a"
		synctest.Wait()
		fed <- "a"
		fed <- "a"
		time.Sleep(time.Minute)
		if runs.Load() != 2 {
			t.Errorf("%d runs, want 2: events during a run lead to one more", runs.Load())
		}
	})
}

func TestController_BackoffGrowsAndAfterResetsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		answers := []func() (reconcile.Result, error){
			func() (reconcile.Result, error) { return reconcile.Result{}, errors.New("one") },
			func() (reconcile.Result, error) { return reconcile.Retry("two"), nil },
			func() (reconcile.Result, error) { return reconcile.After(time.Minute, "three"), nil },
			func() (reconcile.Result, error) { return reconcile.Retry("one again"), nil },
			func() (reconcile.Result, error) { return reconcile.Result{}, nil },
		}
		fed := make(keys, 1)
		c := reconcile.New("test", func(context.Context, string) (reconcile.Result, error) {
			at = append(at, time.Since(began))
			return answers[len(at)-1]()
		}, reconcile.KeyedOptions[string]{RateLimiter: workqueue.Exponential{Base: time.Second}})
		c.Watch(fed.source())
		stop := start(t, c)
		fed <- "a"
		time.Sleep(time.Hour)
		_ = stop()
		want := []time.Duration{0, time.Second, 3 * time.Second, 63 * time.Second, 64 * time.Second}
		if len(at) != len(want) {
			t.Fatalf("runs at %v, want %v", at, want)
		}
		for i := range want {
			if at[i] != want[i] {
				t.Fatalf("runs at %v, want %v: 1s, 2s, After resets, 1s", at, want)
			}
		}
	})
}

func TestController_RateLimiterThatPanicsCostsOnlyItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		fed := make(keys, 2)
		c := reconcile.New("test", func(_ context.Context, key string) (reconcile.Result, error) {
			j.note(key)
			return reconcile.Retry("again"), nil
		}, reconcile.KeyedOptions[string]{Workers: 1, RateLimiter: brokenLimiter{}, Logger: j.logger()})
		c.Watch(fed.source())
		start(t, c)
		fed <- "a"
		fed <- "b"
		synctest.Wait()
		if got := j.notes(); got != "a b" {
			t.Errorf("reconciled %q, want %q", got, "a b")
		}
		time.Sleep(time.Hour)
		if got := j.notes(); !strings.HasPrefix(got, "a b a b") {
			t.Errorf("reconciled %q, want the keys again: none may be lost", got)
		}
	})
}

type brokenLimiter struct{}

func (brokenLimiter) Delay(time.Time, int) time.Duration { panic("limiter") }

func TestController_SnapshotCountsAndTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fed := make(keys, 1)
		c := reconcile.New("test", func(context.Context, string) (reconcile.Result, error) {
			time.Sleep(3 * time.Second)
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{})
		c.Watch(fed.source())
		start(t, c)
		fed <- "a"
		time.Sleep(time.Minute)
		s := c.Snapshot()
		h := s.ReconcileTime
		if s.Outcomes[reconcile.OutcomeDone] != 1 || h.Count != 1 || h.Sum != 3*time.Second {
			t.Errorf("done %d, count %d, sum %s, want 1, 1, 3s", s.Outcomes[reconcile.OutcomeDone], h.Count, h.Sum)
		}
		for bound, n := range h.Buckets() {
			want := uint64(0)
			if bound >= 3*time.Second {
				want = 1
			}
			if n != want {
				t.Errorf("%d reconciles of up to %v, want %d", n, bound, want)
			}
		}
		if len(s.Sources) != 1 || s.Sources[0].Source != "channel test" || s.Sources[0].Keys != 1 {
			t.Errorf("sources %+v, want channel test with 1 key", s.Sources)
		}
		if ago := time.Since(s.LastEnded); ago != 57*time.Second {
			t.Errorf("the last reconcile ended %s ago, want 57s", ago)
		}
	})
}
