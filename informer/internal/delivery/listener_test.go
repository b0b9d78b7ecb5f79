// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

// listening runs l in the bubble until the test ends.
func listening(t *testing.T, l *Listener) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = l.Run(ctx) })
	return func() { cancel(); wg.Wait() }
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestListener_SyncedWhenTheHandlerHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []kube.Event[kube.Object]
		l := New(func(e kube.Event[kube.Object]) { time.Sleep(time.Second); got = append(got, e) }, Options{Log: logr.Discard()}, nil)
		stop := listening(t, l)
		defer stop()
		l.Look(nil, slices.Values([]store.Change{became("a", "", "u@1"), became("b", "", "v@2")}))
		l.Push([]store.Change{became("c", "", "w@3")}, nil)
		l.Mark()
		l.Mark()
		synctest.Wait() // it holds a
		l.Push([]store.Change{became("d", "", "x@4"), became("a", "u@1", "u@5")}, nil)
		time.Sleep(2900 * time.Millisecond)
		if isClosed(l.Synced()) {
			t.Error("synced while the handler has not returned from an object that was there")
		}
		time.Sleep(200 * time.Millisecond)
		if !isClosed(l.Synced()) {
			t.Error("not synced, though the handler has returned from everything that was there")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"added a to u@1 initial", "added b to v@2 initial", "added c to w@3 initial", "added d to x@4", "updated a from u@1 to u@5"}
		if got := tell(got); !slices.Equal(got, want) {
			t.Errorf("told:\n got %q\nwant %q", got, want)
		}
		if s := l.Snapshot(); !s.Synced || s.Delivered != 5 || s.Backlog != 0 {
			t.Errorf("snapshot %+v, want synced, 5 delivered, no backlog", s)
		}
	})
}

func TestListener_PanicCostsOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged []string
		log := funcr.New(func(prefix, args string) { logged = append(logged, args) }, funcr.Options{})
		var got []string
		l := New(func(e kube.Event[kube.Object]) {
			if e.Key.Name == "b" {
				panic("cannot")
			}
			got = append(got, e.Key.Name)
		}, Options{Name: "mine", Log: log}, nil)
		stop := listening(t, l)
		defer stop()
		l.Push([]store.Change{became("a", "", "u@1"), became("b", "", "v@2"), became("c", "", "w@3")}, nil)
		l.Mark()
		synctest.Wait()
		if !slices.Equal(got, []string{"a", "c"}) || !isClosed(l.Synced()) {
			t.Errorf("told of %q, synced %v; want a and c, and synced: a panic costs its own event alone", got, isClosed(l.Synced()))
		}
		if s := l.Snapshot(); s.Panics != 1 || s.Delivered != 3 {
			t.Errorf("snapshot %+v, want 1 panic of 3 calls", s)
		}
		if len(logged) != 1 || !strings.Contains(logged[0], "cannot") || !strings.Contains(logged[0], "mine") || !strings.Contains(logged[0], "listener_test.go") {
			t.Errorf("logged %q, want once, with the handler's name and the stack", logged)
		}
	})
}

// For example a test's FailNow in a handler.
func TestListener_HandlerThatEndsItsGoroutineLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(func(kube.Event[kube.Object]) { runtime.Goexit() }, Options{Log: logr.Discard()}, nil)
		stop := listening(t, l)
		for i := range 10 {
			l.Push([]store.Change{became(fmt.Sprint(i), "", "u@1")}, nil)
			synctest.Wait()
		}
		if s := l.Snapshot(); s.Backlog != 0 || s.Delivered != 1 || s.Panics != 1 {
			t.Errorf("backlog %d, delivered %d, panics %d; want 0, 1, 1: nobody takes from it any more", s.Backlog, s.Delivered, s.Panics)
		}
		stop()
	})
}

func TestListener_NoCallBeginsAfterRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		var l *Listener
		l = New(func(kube.Event[kube.Object]) {
			if calls++; calls == 2 {
				l.Remove() // itself
				l.Push([]store.Change{became("z", "", "z@9")}, nil)
			}
		}, Options{Log: logr.Discard()}, nil)
		for i := range 10 {
			l.Push([]store.Change{became(fmt.Sprint(i), "u@1", "v@2")}, nil) // two events each
		}
		if err := l.Run(t.Context()); err != nil {
			t.Errorf("run = %v, want nil", err)
		}
		l.Remove()
		if calls != 2 || l.Snapshot().Backlog != 0 {
			t.Errorf("%d calls, backlog %d; want 2, 0", calls, l.Snapshot().Backlog)
		}
	})
}

func TestListener_StalledHandlerDelaysNobody_I7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		slow := New(func(kube.Event[kube.Object]) { <-release }, Options{Log: logr.Discard()}, nil)
		told := 0
		fast := New(func(kube.Event[kube.Object]) { told++ }, Options{EveryEvent: true, Log: logr.Discard()}, nil)
		stopSlow, stopFast := listening(t, slow), listening(t, fast)
		for i := range 1000 {
			c := became("a", fmt.Sprintf("u@%d", i+1), fmt.Sprintf("u@%d", i+2))
			slow.Push([]store.Change{c}, nil)
			fast.Push([]store.Change{c}, nil)
			synctest.Wait()
		}
		if told != 1000 || slow.Snapshot().Backlog > 1 {
			t.Errorf("the other handler was told of %d events, the stalled one's backlog is %d; want 1000 and 1", told, slow.Snapshot().Backlog)
		}
		close(release)
		synctest.Wait()
		stopSlow()
		stopFast()
		if got := slow.Snapshot().Delivered; got != 2 {
			t.Errorf("the stalled handler was called %d times, want 2: what it held, and the newest state", got)
		}
	})
}
