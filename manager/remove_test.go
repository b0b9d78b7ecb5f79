// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// footprint is what a manager holds. It is comparable.
type footprint struct {
	goroutines, series, ready, live, runnables, controllers, informers int
}

func footprintOf(t *testing.T, m *manager.Manager) footprint {
	t.Helper()
	synctest.Wait()
	families, err := m.Metrics().Gather()
	must(t, err)
	f := footprint{goroutines: runtime.NumGoroutine()}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "go_") && !strings.HasPrefix(family.GetName(), "process_") {
			f.series += len(family.GetMetric())
		}
	}
	_, ready := probe(m, "/readyz?verbose")
	_, live := probe(m, "/livez?verbose")
	f.ready, f.live = strings.Count(ready, "\n"), strings.Count(live, "\n")
	s := m.Snapshot()
	for _, stage := range s.Stages {
		f.runnables += len(stage.Runnables)
	}
	f.controllers, f.informers = len(s.Controllers), len(s.Informers)
	return f
}

// more reports whether f holds more than before: a few goroutines may be of the runtime, or of
// requests that end.
func (f footprint) more(before footprint) bool {
	if f.goroutines <= before.goroutines+4 {
		f.goroutines = before.goroutines
	}
	return f != before
}

func idle(context.Context, reconcile.Key) (reconcile.Result, error) { return reconcile.Result{}, nil }

// controllerOf returns a controller of the ConfigMaps of a server.
func controllerOf(name string, server *configMaps) (*reconcile.Controller[reconcile.Key], manager.Runnable) {
	i := informer.New(server, configMapKind, informer.Options{PagedLists: true})
	c := reconcile.New(name, idle, reconcile.Options{})
	c.Watch(source.Kind(i, source.Self))
	return c, i
}

func TestManager_WhatIsRemovedIsForgotten_M17(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{})
		stop, wait := run(t, m)
		before := footprintOf(t, m)
		for round := range 3 {
			var added []manager.Runnable
			for n := range 10 {
				server := &configMaps{allowed: n%2 == 0} // every other never syncs
				c, i := controllerOf(fmt.Sprint("of kind ", n), server)
				must(t, m.AddTo(manager.StageInformers, i))
				must(t, m.Add(c))
				added = append(added, c, i)
			}
			time.Sleep(time.Minute)
			if during := footprintOf(t, m); during.goroutines < before.goroutines+50 || during.series < before.series+300 || during.runnables != before.runnables+20 {
				t.Fatalf("with ten controllers more it holds %+v, without %+v: the test counts nothing", during, before)
			}
			for _, r := range added {
				must(t, m.Remove(t.Context(), r))
			}
			if after := footprintOf(t, m); after.more(before) {
				t.Fatalf("round %d: after the removal it holds\n%+v, before the adding\n%+v", round, after, before)
			}
		}
		if code, text := probe(m, "/readyz"); code != http.StatusOK {
			t.Errorf("/readyz = %d %s, want 200: what did not sync has ended", code, text)
		}
		stop()
		must(t, wait())
	})
}

// unsynced is a Runnable that ends before it has synced.
type unsynced struct{ end chan error }

func (u unsynced) Run(ctx context.Context) error {
	select {
	case err := <-u.end:
		return err
	case <-ctx.Done():
		return nil
	}
}
func (u unsynced) Synced() <-chan struct{} { return nil }

func TestManager_WhatEndsItselfIsForgotten_M17(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{})
		stop, wait := run(t, m)
		before := footprintOf(t, m)
		u := unsynced{make(chan error)}
		for range 3 {
			must(t, m.Add(u))
			if code, text := probe(m, "/readyz"); code != http.StatusServiceUnavailable {
				t.Fatalf("/readyz = %d %s, want 503: one has not synced", code, text)
			}
			u.end <- nil
			if after := footprintOf(t, m); after.more(before) {
				t.Fatalf("after its end it holds\n%+v, before\n%+v", after, before)
			}
			if code, text := probe(m, "/readyz"); code != http.StatusOK {
				t.Fatalf("/readyz = %d %s, want 200: it has ended without an error, and will never sync", code, text)
			}
			must(t, m.Remove(t.Context(), u)) // it has ended before
		}
		for range 3 {
			if err := m.Add(nil); err == nil {
				t.Error("Add of nil succeeded")
			}
		}
		must(t, m.AddReadyCheck("kind", func(context.Context) error { return errors.New("none") }))
		must(t, m.AddLiveCheck("kind", func(context.Context) error { return errors.New("none") }))
		m.RemoveChecks("kind")
		if after := footprintOf(t, m); after.more(before) {
			t.Errorf("after RemoveChecks it holds\n%+v, before\n%+v", after, before)
		}
		stop()
		must(t, wait())
	})
}

func TestManager_RemoveReturnsWhenItHasEnded_M17(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{})
		keys := make(chan reconcile.Key)
		begun, ended := make(chan struct{}), false
		c := reconcile.New("drains", func(ctx context.Context, _ reconcile.Key) (reconcile.Result, error) {
			close(begun)
			time.Sleep(10 * time.Second)
			ended = true
			return reconcile.Result{}, nil
		}, reconcile.Options{})
		c.Watch(source.Channel(keys, source.ChannelOptions{}))
		must(t, m.Add(c))
		stop, wait := run(t, m)
		keys <- reconcile.Key{Name: "front"}
		<-begun

		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.Remove(short, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Remove with a second = %v, want the end of its context", err)
		}
		again := reconcile.New("drains", idle, reconcile.Options{})
		if err := m.Add(again); err == nil || !strings.Contains(err.Error(), "of that name") {
			t.Errorf("Add = %v, want that the name is taken until the reconcile has ended", err)
		}
		must(t, m.Remove(t.Context(), c))
		if !ended {
			t.Error("Remove returned before the reconcile in flight had ended")
		}
		must(t, m.Add(again))
		stop()
		must(t, wait()) // nil: the refused Add during the run is not an error of Run
	})
}

func TestManager_RemoveOfWhatHasNotStarted_M17(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{GracePeriod: 20 * time.Hour})
		j := &journal{}
		first, waits, last := newRecorded("first", j), &slow{}, newRecorded("last", j)
		must(t, m.AddTo(manager.StageInformers, first))
		must(t, m.AddTo(manager.StageStandby, waits))
		must(t, m.Add(last))
		must(t, m.Remove(t.Context(), first)) // before Run
		stop, wait := run(t, m)
		time.Sleep(time.Hour)
		// The next stage waited for it.
		if err := m.Remove(t.Context(), waits); err == nil || !strings.Contains(err.Error(), "the socket is gone") {
			t.Errorf("Remove = %v, want the error of its Run, which then does not end the manager", err)
		}
		time.Sleep(2 * time.Hour)
		stop()
		must(t, wait())
		if got := strings.Join(j.read(), ", "); got != "last started, last ended" {
			t.Errorf("ran %q, want only the last: the first was removed before Run, and the second never started", got)
		}
	})
}

// slow never starts.
type slow struct{}

func (*slow) Started() <-chan struct{} { return nil }
func (*slow) Run(ctx context.Context) error {
	<-ctx.Done()
	return errors.New("the socket is gone")
}

func TestManager_RemoveOnAStandby_M17(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{
			Config:         &rest.Config{Host: "http://judge", Transport: &judge{fails: errors.New("connection refused")}},
			LeaderElection: &manager.LeaderElection{ID: "website", Namespace: "ops"},
		})
		stop, wait := run(t, m)
		time.Sleep(time.Second)
		before := footprintOf(t, m)
		for range 3 {
			c, i := controllerOf("website", &configMaps{allowed: true})
			must(t, m.AddTo(manager.StageInformers, i))
			must(t, m.Add(c))
			synctest.Wait()
			select {
			case <-c.Synced():
			default:
				t.Error("the controller's sources do not run, although the process stands by")
			}
			must(t, m.Remove(t.Context(), c))
			must(t, m.Remove(t.Context(), i))
			after := footprintOf(t, m)
			before.series, after.series = 0, 0 // requests for the Lease go on
			if after.more(before) {            // goroutines, checks and entries
				t.Errorf("after the removal it holds\n%+v, before\n%+v", after, before)
			}
		}
		stop()
		must(t, wait())
	})
}

func TestManager_MisuseOfRemoveSaysWhatToDo(t *testing.T) {
	m := newManager(t, manager.Options{})
	for _, c := range []struct {
		r    manager.Runnable
		want string
	}{
		{nil, "the Runnable is nil"},
		{(*slow)(nil), "the Runnable is nil"},
		{manager.RunnableFunc(func(context.Context) error { return nil }), "cannot be compared; add a pointer"},
		{m.Webhooks(), "it ends with the manager"},
	} {
		if err := m.Remove(t.Context(), c.r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Remove(%T) = %v, want %q", c.r, err, c.want)
		}
	}
	must(t, m.Remove(t.Context(), &recorded{name: "never added"}))
}
