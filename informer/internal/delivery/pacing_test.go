// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

func TestTempo_LongCallIsReportedOncePerDoubling(t *testing.T) {
	var p pacing
	p.begin(fixture.Named("a"), time.Hour)
	var reports []time.Duration
	for now, again := time.Hour+longCall, longCall; again > 0; now += again {
		var report bool
		if report, again = p.overrun(now); report {
			reports = append(reports, p.running(now))
		}
	}
	for i, got := range reports {
		if want := longCall << i; got != want {
			t.Errorf("report %d comes after %v, want %v", i, got, want)
		}
	}
	if n := len(reports); n < 10 || n > 20 {
		t.Errorf("%d reports of a call that never ends, want one per doubling, and an end of them", n)
	}
	p.begin(fixture.Named("b"), 100*time.Hour)
	if report, again := p.overrun(100*time.Hour + 20*time.Second); report || again != 40*time.Second {
		t.Errorf("after 20 s of the next call: reported %v, again after %v; want not, and again after 40 s", report, again)
	}
	p.end(101 * time.Hour)
	if report, again := p.overrun(102 * time.Hour); report || again != 0 || p.longest != time.Hour {
		t.Errorf("between calls: reported %v, again after %v, longest %v", report, again, p.longest)
	}
}

func TestTempo_BacklogIsReportedOncePerDoubling(t *testing.T) {
	var p pacing
	reports := 0
	for n := range 8*longBacklog + 1 {
		if p.behind(n, time.Minute) {
			reports++
		}
	}
	if reports != 4 {
		t.Errorf("%d reports on the way to eight times the bound, want 4", reports)
	}
	p.behind(0, 0)
	if p.behind(longBacklog, time.Millisecond) || !p.behind(longBacklog, time.Minute) {
		t.Error("worked off and grown again: want a report, but not of a list that has just come")
	}
}

func TestAgeOf_SurvivesTheWrappingClock(t *testing.T) {
	const wrap = (1 << 32) * time.Millisecond
	if got := ageOf(millis(wrap-time.Second), wrap+time.Second); got != 2*time.Second {
		t.Errorf("the age over the wrap is %v, want 2s", got)
	}
}

// A slow handler is visible in its snapshot and in the log.
func TestListener_SlowHandlerIsSeen_C1(t *testing.T) {
	for _, every := range []bool{false, true} {
		t.Run(fmt.Sprintf("every event %v", every), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var logged []string
				log := funcr.New(func(_, args string) {
					mu.Lock()
					defer mu.Unlock()
					logged = append(logged, args)
				}, funcr.Options{})
				release := make(chan struct{})
				l := New(func(kube.Event[kube.Object]) { <-release }, Options{Name: "mine", EveryEvent: every, Log: log}, nil)
				stop := listening(t, l)
				defer stop()
				time.Sleep(10 * time.Minute) // an idle handler costs nothing and is not logged
				l.Push([]store.Change{became("a", "", "u@1")}, nil)
				synctest.Wait()
				time.Sleep(time.Second)
				l.Push([]store.Change{became("b", "", "v@2")}, nil)
				time.Sleep(4 * time.Second)
				l.Push([]store.Change{became("c", "", "w@3")}, nil)
				if s := l.Snapshot(); s.Running != 5*time.Second || s.Oldest != 4*time.Second || s.Longest != 5*time.Second || s.Backlog != 2 {
					t.Errorf("got %+v, want a call of 5 s, and two that wait, since 4 s", s)
				}
				time.Sleep(5*time.Minute - 5*time.Second)
				mu.Lock()
				if n := len(logged); n != 3 || !strings.Contains(logged[0], "mine") || !strings.Contains(logged[0], `"running"="1m0s"`) || !strings.Contains(logged[2], `"running"="4m0s"`) {
					t.Errorf("logged %q in five minutes, want after one, two and four", logged)
				}
				logged = nil
				mu.Unlock()
				for i := range 2 * longBacklog {
					l.Push([]store.Change{became(fmt.Sprint(i), "", "u@1")}, nil)
				}
				mu.Lock()
				want := 0
				if every {
					want = 2
				}
				if n := len(logged); n != want || n > 0 && !strings.Contains(logged[0], `"backlog"=4096`) {
					t.Errorf("logged %q of a backlog of twice the bound, want %d lines", logged, want)
				}
				mu.Unlock()
				close(release)
				synctest.Wait()
				if s := l.Snapshot(); s.Running != 0 || s.Oldest != 0 || s.Longest != 5*time.Minute || s.Backlog != 0 {
					t.Errorf("got %+v, want nothing to do, and the longest call of 5 minutes", s)
				}
			})
		})
	}
}

func TestSnapshot_Slowest(t *testing.T) {
	s := state.Informer{Handlers: []state.Handler{
		{Name: "idle", Longest: time.Hour}, {Name: "busy", Running: time.Second, Backlog: 100, Oldest: 2 * time.Second},
		{Name: "stuck", Running: time.Minute}, {Name: "fast", Running: 1},
	}}
	if h, ok := s.Slowest(); !ok || h.Name != "stuck" {
		t.Errorf("the slowest is %q, %v; want the stuck one", h.Name, ok)
	}
	if h, ok := (state.Informer{Handlers: s.Handlers[:1]}).Slowest(); ok {
		t.Errorf("the slowest of the idle is %q, want none", h.Name)
	}
}
