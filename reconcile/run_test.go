// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/reconcile"
)

type contextKey struct{}

// once runs f as the only reconcile of a controller, in a bubble.
func once(t *testing.T, opts reconcile.KeyedOptions[string], f func(ctx context.Context) error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fed := make(keys, 1)
		var ran sync.WaitGroup
		ran.Add(1)
		c := reconcile.New("test", func(ctx context.Context, _ string) (reconcile.Result, error) {
			defer ran.Done()
			return reconcile.Result{}, reconcile.Terminal(f(ctx))
		}, opts)
		c.Watch(fed.source())
		start(t, c)
		fed <- "a"
		ran.Wait()
	})
}

func TestRun_ContextHasTheLogger(t *testing.T) {
	var j journal
	once(t, reconcile.KeyedOptions[string]{Logger: j.logger()}, func(ctx context.Context) error {
		child, cancel := context.WithTimeout(context.WithValue(ctx, contextKey{}, "x"), time.Hour)
		defer cancel()
		var asking sync.WaitGroup
		for range 4 {
			asking.Go(func() { logr.FromContextOrDiscard(child).Info("from a child") })
		}
		asking.Wait()
		logr.FromContextOrDiscard(ctx).Info("from the context")
		if ctx.Value(contextKey{}) != nil || child.Value(contextKey{}) != "x" {
			t.Error("values of contexts are mixed up")
		}
		return nil
	})
	if got := j.lines("from a child", `"controller"="test"`, `"key"="a"`, `"reconcileID"=`); len(got) != 4 {
		t.Errorf("%d lines of the child with controller, key and ID, want 4; all: %q", len(got), j.lines())
	}
	if got := j.lines("from the context", `"key"="a"`); len(got) != 1 {
		t.Errorf("%d lines of the context with its key, want 1; all: %q", len(got), j.lines())
	}
}

func TestRun_ContextTellsItsDeadline_R5(t *testing.T) {
	once(t, reconcile.KeyedOptions[string]{}, func(ctx context.Context) error {
		if at, ok := ctx.Deadline(); !ok || time.Until(at) != 10*time.Minute {
			t.Errorf("the deadline is in %s, %t, want in 10m, true", time.Until(at), ok)
		}
		child, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		if at, _ := child.Deadline(); time.Until(at) != 10*time.Minute {
			t.Errorf("a child's deadline is in %s, want in 10m: the earlier one", time.Until(at))
		}
		if err := ctx.Err(); err != nil {
			t.Errorf("Err() = %v before the deadline, want nil", err)
		}
		<-child.Done()
		if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Err() = %v after the deadline, want %v", err, context.DeadlineExceeded)
		}
		return nil
	})
	once(t, reconcile.KeyedOptions[string]{HardDeadline: -1}, func(ctx context.Context) error {
		if at, ok := ctx.Deadline(); ok {
			t.Errorf("the deadline is %s, want none", at)
		}
		return nil
	})
}

// Reconciles begin while others run and while none does; each has its own deadlines.
func TestController_EachReconcileHasItsOwnDeadlines_R5(t *testing.T) {
	for name, pause := range map[string]time.Duration{
		"together": 0, "one by one": 100 * time.Millisecond, "after the first report": 90 * time.Second, "alone": time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 5
				var mu sync.Mutex
				var took []time.Duration
				var j journal
				fed := make(keys, n)
				c := reconcile.New("test", func(ctx context.Context, _ string) (reconcile.Result, error) {
					began := time.Now()
					<-ctx.Done()
					mu.Lock()
					defer mu.Unlock()
					took = append(took, time.Since(began))
					return reconcile.Result{}, reconcile.Terminal(ctx.Err())
				}, reconcile.KeyedOptions[string]{Workers: n, Logger: j.logger(), HardDeadline: 4 * time.Minute})
				c.Watch(fed.source())
				start(t, c)
				for i := range n {
					fed <- string(rune('a' + i))
					time.Sleep(time.Minute - 1)
					before := len(j.lines("soft deadline", `"key"="`+string(rune('a'+i))))
					time.Sleep(time.Nanosecond)
					synctest.Wait()
					after := len(j.lines("soft deadline", `"key"="`+string(rune('a'+i))))
					if before != 0 || after != 1 {
						t.Errorf("reconcile %d: %d reports before its soft deadline and %d at it, want 0 and 1", i, before, after)
					}
					time.Sleep(pause)
				}
				time.Sleep(time.Hour)
				mu.Lock()
				defer mu.Unlock()
				if len(took) != n {
					t.Fatalf("%d reconciles were cancelled, want %d", len(took), n)
				}
				for _, d := range took {
					if d != 4*time.Minute {
						t.Errorf("cancelled after %s, want each after 4m", took)
						break
					}
				}
			})
		})
	}
}
