// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// journal records events in order.
type journal struct {
	mu     sync.Mutex
	events []string
}

func (j *journal) write(event string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, event)
}

func (j *journal) read() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.events)
}

// recorded is a Runnable that takes an hour of virtual time to start and an hour to
// stop.
type recorded struct {
	name    string
	j       *journal
	started chan struct{}
}

func newRecorded(name string, j *journal) *recorded {
	return &recorded{name, j, make(chan struct{})}
}

func (r *recorded) Name() string             { return r.name }
func (r *recorded) Started() <-chan struct{} { return r.started }
func (r *recorded) Run(ctx context.Context) error {
	<-time.After(time.Hour)
	r.j.write(r.name + " started")
	close(r.started)
	<-ctx.Done()
	<-time.After(time.Hour)
	r.j.write(r.name + " ended")
	return ctx.Err()
}

func TestManager_StagesStartInOrderAndStopInReverse_M1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{GracePeriod: 20 * time.Hour})
		j := &journal{}
		// Add them in another order than they start.
		for _, stage := range []manager.Stage{
			manager.StageControllers, manager.StageServers, manager.StageLeadership,
			manager.StageInformers, manager.StageStandby, manager.StageWebhooks,
		} {
			if err := m.AddTo(stage, newRecorded(string(stage), j)); err != nil {
				t.Fatal(err)
			}
		}
		stop, wait := run(t, m)
		time.Sleep(8 * time.Hour)
		stop()
		if err := wait(); err != nil {
			t.Errorf("Run = %v, want nil: all ended when they were told to", err)
		}
		want := []string{
			"servers started", "webhooks started", "informers started", "standby started", "leadership started", "controllers started",
			"controllers ended", "leadership ended", "standby ended", "informers ended", "webhooks ended", "servers ended",
		}
		if got := j.read(); !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q\na stage starts when the one above has started and ends when the one below has ended", got, want)
		}
	})
}

func TestManager_StopWhileAStageStartsStopsOnlyWhatHasStarted_M1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{GracePeriod: 20 * time.Hour})
		j := &journal{}
		for _, stage := range []manager.Stage{manager.StageServers, manager.StageInformers, manager.StageControllers} {
			if err := m.AddTo(stage, newRecorded(string(stage), j)); err != nil {
				t.Fatal(err)
			}
		}
		stop, wait := run(t, m)
		time.Sleep(90 * time.Minute) // the informers are starting
		stop()
		if err := wait(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		want := []string{"servers started", "informers started", "informers ended", "servers ended"}
		if got := j.read(); !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q\nno stage starts after the stop", got, want)
		}
	})
}

// Whenever the stop comes, what has started ends in reverse, and nothing else starts.
func TestManager_StopAtAnyTimeEndsWhatHasStarted_M1(t *testing.T) {
	order := []manager.Stage{manager.StageServers, manager.StageInformers, manager.StageControllers}
	for after := time.Duration(0); after <= 4*time.Hour; after += 30 * time.Minute {
		synctest.Test(t, func(t *testing.T) {
			m := newManager(t, manager.Options{GracePeriod: 20 * time.Hour})
			j := &journal{}
			for _, stage := range order {
				must(t, m.AddTo(stage, newRecorded(string(stage), j)))
			}
			stop, wait := run(t, m)
			time.Sleep(after)
			stop()
			must(t, wait())
			got := j.read()
			// A stage that was starting takes its hour, and then ends.
			begun := min(int(after/time.Hour)+1, len(order))
			var want []string
			for _, stage := range order[:begun] {
				want = append(want, string(stage)+" started")
			}
			for _, stage := range slices.Backward(order[:begun]) {
				want = append(want, string(stage)+" ended")
			}
			if after%time.Hour != 0 && !slices.Equal(got, want) {
				t.Errorf("stopped after %v: got %q, want %q", after, got, want)
			}
			// On the hour either order of the two events is right.
			if len(got)%2 != 0 || len(got) > len(want) {
				t.Errorf("stopped after %v: got %q: something has started and not ended", after, got)
			}
		})
	}
}

func TestManager_StopLetsReconcilesFinishWhileTheRestGoesOn_M2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{GracePeriod: time.Minute})
		j := &journal{}
		for _, stage := range []manager.Stage{manager.StageServers, manager.StageInformers} {
			must(t, m.AddTo(stage, manager.RunnableFunc(func(ctx context.Context) error {
				<-ctx.Done()
				j.write(string(stage) + " told to end")
				return nil
			})))
		}
		keys := make(chan string)
		c := reconcile.New("slow", func(ctx context.Context, key string) (reconcile.Result, error) {
			j.write(key + " begins")
			select {
			case <-time.After(10 * time.Second):
				j.write(key + " finished")
				return reconcile.Result{}, nil
			case <-ctx.Done():
				j.write(key + " cut off")
				return reconcile.Result{}, ctx.Err()
			}
		}, reconcile.KeyedOptions[string]{Workers: 1})
		c.Watch(source.Channel(keys, source.ChannelOptions{}))
		must(t, m.Add(c))

		stop, wait := run(t, m)
		keys <- "a"
		keys <- "b" // waits for the one worker
		synctest.Wait()
		stop()
		synctest.Wait()
		if code, text := probe(m, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "[-]shutdown failed: the manager is stopping") {
			t.Errorf("/readyz = %d %q, want 503 and why: nobody is to send new work to a manager that stops", code, text)
		}
		if code, text := probe(m, "/livez"); code != http.StatusOK {
			t.Errorf("/livez = %d %q, want 200: draining is no reason for a kill", code, text)
		}
		late := reconcile.New("late", func(_ context.Context, key string) (reconcile.Result, error) {
			j.write("late " + key)
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{})
		late.Watch(source.Channel(keys, source.ChannelOptions{}))
		for name, add := range map[string]manager.Runnable{
			`controller "late"`: late, "manager.RunnableFunc": manager.RunnableFunc(func(context.Context) error { j.write("late"); return nil }),
		} {
			if err := m.Add(add); err == nil || err.Error() != "add "+name+": the manager is stopping or has stopped" {
				t.Errorf("Add of %s while stopping = %v, want an error that says why: stop means no new work", name, err)
			}
		}
		select {
		case keys <- "c":
			t.Error("a controller that was added while the manager stops takes keys")
		case <-time.After(time.Second):
		}
		if all := m.Snapshot().Controllers; len(all) != 1 {
			t.Errorf("%d controllers, want the one that was added in time", len(all))
		}
		if err := wait(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		want := []string{"a begins", "a finished", "informers told to end", "servers told to end"}
		if got := j.read(); !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q\nwhat is held is finished, what waits is not begun, and informers and servers serve until then", got, want)
		}
	})
}

// A controller's drain timeout is as long as the manager's by default.
func TestManager_ReconcileThatObeysItsContextIsNotLeftBehind_M2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{})
		keys := make(chan string)
		c := reconcile.New("long", func(ctx context.Context, _ string) (reconcile.Result, error) {
			<-ctx.Done()
			return reconcile.Result{}, ctx.Err()
		}, reconcile.KeyedOptions[string]{HardDeadline: -1})
		c.Watch(source.Channel(keys, source.ChannelOptions{}))
		must(t, m.Add(c))
		stop, wait := run(t, m)
		keys <- "a"
		synctest.Wait()
		begin := time.Now()
		stop()
		if err := wait(); err != nil {
			t.Errorf("Run = %v, want nil: the reconcile ended when it was told to", err)
		}
		if took := time.Since(begin); took > 31*time.Second {
			t.Errorf("the stop took %v, want no more than the grace period and a second", took)
		}
	})
}

func TestManager_WhatIgnoresItsContextIsNamedAfterTheGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{GracePeriod: 20 * time.Second})
		release := make(chan struct{})
		var informersEnded bool
		must(t, m.AddTo(manager.StageInformers, manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			informersEnded = true
			return nil
		})))
		must(t, m.Add(deaf{release}))
		stop, wait := run(t, m)
		synctest.Wait()
		stop()
		begin := time.Now()
		err := wait()
		if !errors.Is(err, manager.ErrStillRunning) || !strings.Contains(err.Error(), "stop manager: still running after the grace period of 20s: deaf one (controllers)") {
			t.Errorf("Run = %v, want an error that names who did not end", err)
		}
		if took := time.Since(begin); took > 21*time.Second {
			t.Errorf("the stop took %v, want at most the grace period and a second", took)
		}
		if !informersEnded {
			t.Error("the informers were not told to end: when the time is over all end at once")
		}
		close(release)
	})
}

// deaf ignores its context.
type deaf struct{ release <-chan struct{} }

func (deaf) Name() string                { return "deaf one" }
func (d deaf) Run(context.Context) error { <-d.release; return nil }

func TestManager_RunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{})
		stop, wait := run(t, m)
		synctest.Wait()
		if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "already") {
			t.Errorf("second Run = %v, want an error", err)
		}
		stop()
		must(t, wait())
		if err := m.Add(deaf{}); err == nil {
			t.Error("Add after the end = nil, want an error")
		}
	})
}
