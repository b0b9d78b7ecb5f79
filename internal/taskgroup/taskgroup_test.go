// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package taskgroup_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/internal/taskgroup"
)

func TestGroup_RunEndsWhenAllThatJoinedHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n taskgroup.Group
		var running atomic.Int64
		member := func(ctx context.Context) error {
			running.Add(1)
			<-ctx.Done()
			time.Sleep(time.Second) // it ends slowly
			running.Add(-1)
			return nil
		}
		if err := n.Go(member); err != nil {
			t.Errorf("Go before the run: %v", err)
		}
		synctest.Wait()
		if got := running.Load(); got != 0 {
			t.Errorf("%d functions run before Run", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := n.Run(ctx); err != nil {
				t.Errorf("Run: %v, want nil when its context ends", err)
			}
			if got := running.Load(); got != 0 {
				t.Errorf("%d functions run after Run has returned", got)
			}
		})
		synctest.Wait()
		if err := n.Go(member); err != nil {
			t.Errorf("Go during the run: %v", err)
		}
		if err := n.Run(ctx); err == nil {
			t.Error("a second Run succeeded")
		}
		synctest.Wait()
		if got := running.Load(); got != 2 {
			t.Errorf("%d functions run, want 2", got)
		}
		cancel()
		wg.Wait()
		if err := n.Go(member); !errors.Is(err, taskgroup.ErrEnded) {
			t.Errorf("Go after the run: %v, want ErrEnded", err)
		}
	})
}

func TestGroup_FirstErrorEndsTheOthersAndIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n taskgroup.Group
		boom := errors.New("boom")
		for _, f := range []func(context.Context) error{
			func(ctx context.Context) error { <-ctx.Done(); return errors.New("a consequence") },
			func(context.Context) error { time.Sleep(time.Second); return boom },
		} {
			if err := n.Go(f); err != nil {
				t.Fatal(err)
			}
		}
		if err := n.Run(t.Context()); !errors.Is(err, boom) {
			t.Errorf("Run: %v, want the first error", err)
		}
	})
}

func TestGroup_EndedWithoutARun(t *testing.T) {
	var n taskgroup.Group
	never := func(context.Context) error { t.Error("it was started"); return nil }
	if err := n.Go(never); err != nil {
		t.Fatal(err)
	}
	n.End()
	if err := n.Go(never); !errors.Is(err, taskgroup.ErrEnded) {
		t.Errorf("Go after End: %v, want ErrEnded", err)
	}
	if err := n.Run(t.Context()); err == nil {
		t.Error("Run after End succeeded")
	}
}

func TestGroup_OneMemberEndsAndTheOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n taskgroup.Group
		var running atomic.Int64
		f := func(ctx context.Context) error {
			running.Add(1)
			defer running.Add(-1)
			<-ctx.Done()
			time.Sleep(time.Second)
			return ctx.Err()
		}
		early, _ := n.Spawn(f)
		never, _ := n.Spawn(func(context.Context) error {
			t.Error("a function that was cancelled before the run was started")
			return nil
		})
		never.Cancel()
		never.Cancel()
		<-never.Done()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := n.Run(ctx); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
		synctest.Wait()
		late, err := n.Spawn(func(ctx context.Context) error { _ = f(ctx); return nil })
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := running.Load(); got != 2 {
			t.Errorf("%d functions run, want 2", got)
		}
		late.Cancel()
		<-late.Done()
		if got := running.Load(); got != 1 {
			t.Errorf("%d functions run after one was cancelled, want 1", got)
		}
		cancel()
		wg.Wait()
		<-early.Done()
		late.Cancel()
	})
}

func TestGroup_StopEndsTheRunWithoutAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n taskgroup.Group
		m, _ := n.Spawn(func(ctx context.Context) error { <-ctx.Done(); return nil })
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := n.Run(t.Context()); err != nil {
				t.Errorf("Run: %v, want nil after Stop", err)
			}
		})
		synctest.Wait()
		for range 2 {
			if !n.Stop() {
				t.Error("Stop of a run says that it had not begun")
			}
		}
		wg.Wait()
		<-m.Done()
		if err := n.Run(t.Context()); err == nil {
			t.Error("a second Run succeeded")
		}

		var before taskgroup.Group
		m, _ = before.Spawn(func(context.Context) error { t.Error("it was started"); return nil })
		if before.Stop() {
			t.Error("Stop before the run says that it had begun")
		}
		<-m.Done()
		if err := before.Run(t.Context()); err != nil {
			t.Errorf("Run after Stop: %v, want nil at once", err)
		}
		if err := before.Go(func(context.Context) error { return nil }); !errors.Is(err, taskgroup.ErrEnded) {
			t.Errorf("Go after Stop: %v, want ErrEnded", err)
		}
	})
}
