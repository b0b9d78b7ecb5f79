// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/simulate"
)

// A server that refuses all is asked less than ten times a second, by however
// many kinds, and all go on when it has recovered.
func TestInformer_OneGatePerHost_A13(t *testing.T) {
	for name, refuse := range map[string]func(*http.Request) *http.Response{
		"storages": reinitializing("1"),
		"filters":  turnedAway("1", ""),
		"a level":  turnedAway("1", "low"),
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, informer.Options{}, func(t *testing.T, w *world) {
				m := w.interposed(informer.Options{})
				var asked atomic.Int64
				w.manyKinds("many.example.com", 100)
				m.meddle(func(req *http.Request) (*http.Response, error) {
					if !isList(req) {
						return nil, nil
					}
					asked.Add(1)
					return refuse(req), nil
				})
				start(w)
				pass(59 * time.Second)
				if n := asked.Load(); n > 600 || n < 60 {
					t.Errorf("%d requests in a minute, want less than ten a second, and one each second", n)
				}
				for _, s := range w.factory.Snapshot() {
					if s.Scopes[0].Reason == "" {
						t.Fatalf("%s: got %s; want to read why it waits", s.Kind.Kind, s.Scopes[0])
					}
				}
				m.meddle(nil)
				pass(10 * time.Second)
				for _, s := range w.factory.Snapshot() {
					if s.Scopes[0].State != state.Live {
						t.Fatalf("%s: got %s, want Live ten seconds after the server has recovered", s.Kind.Kind, s.Scopes[0])
					}
				}
			})
		})
	}
}

// What waited while there was no connection does not come all at once: a
// request goes ahead, and as it is answered, more follow.
func TestInformer_GateOpensByAndBy_A13(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.manyKinds("many.example.com", 60)
		start(w)
		pass(time.Minute)
		w.Network.Refuse(true)
		w.Network.Cut()
		pass(30 * time.Second)
		w.Network.Delay(100 * time.Millisecond)
		before := len(w.Served())
		w.Network.Refuse(false)
		pass(20 * time.Second)
		again := w.Served()[before:]
		again = slices.DeleteFunc(slices.Clone(again), func(r simulate.Served) bool { return r.Verb == "get" })
		if len(again) < 60 {
			t.Fatalf("%d requests after the outage, want one of each of 60 kinds", len(again))
		}
		for n, most := range map[time.Duration]int{150 * time.Millisecond: 2, 350 * time.Millisecond: 8, 600 * time.Millisecond: 30} {
			came := 0
			for _, r := range again {
				if r.At.Sub(again[0].At) < n {
					came++
				}
			}
			if came > most {
				t.Errorf("%d requests within %s of the first, want %d at most", came, n, most)
			}
		}
		for _, s := range w.factory.Snapshot() {
			if s.Scopes[0].State != state.Live {
				t.Errorf("%s: got %s, want Live", s.Kind.Kind, s.Scopes[0])
			}
		}
	})
}

// Where there are fewer turns than kinds that wait, a watch that goes on is
// tried before lists.
func TestInformer_WatchGoesThroughTheGateBeforeLists_A13(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		m := w.interposed(informer.Options{})
		var watches, lists atomic.Int64
		w.Store(configMap("a", "1"))
		i := informer.For[cmap](w.factory)
		start(w)
		pass(time.Minute)
		m.meddle(func(req *http.Request) (*http.Response, error) {
			if isOf(req, "configmaps") {
				watches.Add(1)
			} else {
				lists.Add(1)
			}
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		})
		w.manyKinds("many.example.com", 60)
		pass(time.Second)
		w.Network.Cut()
		w.Store(configMap("a", "2"))
		pass(20 * time.Second)
		stands(t, i, state.Stale, "refused")
		if w, l := watches.Load(), lists.Load(); w < 6 || l > 150 {
			t.Errorf("%d tries of the watch and %d of the lists of 60 kinds, want the watch to be tried whenever it wants to be", w, l)
		}
		m.meddle(nil)
		pass(10 * time.Second)
		holds(t, i, "a=2", "the watch is not opened again")
	})
}

func TestInformer_EndlessOverloadMeetsNoStorm_A13(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		kinds := nineKinds(w)
		start(w)
		pass(time.Minute)
		w.Overload(-1, 429, 5)
		before := len(w.Served())
		for _, r := range kinds {
			w.CloseWatches(r)
		}
		pass(5 * time.Minute)
		if n := len(w.Served()) - before; n > len(kinds)*(5*60/5+1) || n < 30 {
			t.Errorf("%d requests in five minutes of Retry-After 5, want one of each kind each time, and the first", n)
		}
		w.Overload(0, 0, 0)
		pass(10 * time.Second)
		for _, s := range w.factory.Snapshot() {
			if s.Scopes[0].State != state.Live {
				t.Errorf("%s: got %s, want Live ten seconds after the server has recovered", s.Kind.Kind, s.Scopes[0])
			}
		}
	})
}
