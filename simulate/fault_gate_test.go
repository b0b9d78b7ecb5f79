// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/simulate"
)

func TestInformer_OneGatePerHost_A13(t *testing.T) {
	for _, code := range []int{429, 503} {
		simulated(t, informer.Options{}, func(t *testing.T, w *world) {
			w.put(configMap("a", "1"), newWidget("w", "1"))
			w.Overload(1, code, 30)
			first := informer.For[cmap](w.factory)
			start(w)
			same := informer.For[*corev1.Secret](w.factory)
			other := informer.For[*widget](w.factory)
			pass(28 * time.Second)
			if n := len(w.Served()); n != 1 {
				t.Errorf("%d: %d requests within a Retry-After of 30 s, want 1: it holds for all kinds of the host", code, n)
			}
			for _, s := range []informer.ScopeState{stateOf(first), stateOf(same), stateOf(other)} {
				if !strings.Contains(s.Reason, "waits for the server's Retry-After until") {
					t.Errorf("%d: got %s; want to read that it waits, and until when", code, s)
				}
				if left := time.Until(s.NextTry); left <= 0 || left > 5*time.Second {
					t.Errorf("%d: the next try is in %s, want when the Retry-After is over", code, left)
				}
			}
			pass(7 * time.Second)
			holds(t, first, "a=1", "the gate does not open")
			holds(t, other, "w=1", "the gate does not open")
			stands(t, same, informer.StateLive, "")
		})
	}
}

// What waited does not come all at once: a request goes ahead, and as it is
// answered, more follow.
func TestInformer_GateOpensByAndBy_A13(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		kinds := nineKinds(w)
		start(w)
		pass(time.Minute)
		w.network.Delay(100 * time.Millisecond)
		w.Overload(len(kinds), 429, 20)
		before := len(w.Served())
		for _, r := range kinds {
			w.CloseWatches(r)
		}
		pass(40 * time.Second)
		again := slices.DeleteFunc(w.Served()[before:], func(r simulate.Served) bool { return r.Status == 429 || r.Verb == "get" })
		if len(again) != len(kinds) {
			t.Fatalf("%d requests after the refusals, want %d", len(again), len(kinds))
		}
		for n, most := range map[time.Duration]int{150 * time.Millisecond: 1, 350 * time.Millisecond: 4, 550 * time.Millisecond: 8} {
			came := 0
			for _, r := range again {
				if r.At.Sub(again[0].At) < n {
					came++
				}
			}
			if came > most {
				t.Errorf("%d requests within %s of the opening, want %d at most", came, n, most)
			}
		}
	})
}

func TestInformer_WatchGoesThroughTheGateBeforeLists_A13(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.put(configMap("a", "1"))
		i := informer.For[cmap](w.factory)
		start(w)
		pass(time.Minute)
		w.Overload(1, 429, 30)
		informer.For[*corev1.Secret](w.factory) // is refused, and comes again
		pass(time.Second)
		informer.For[*corev1.Pod](w.factory)
		pass(time.Second)
		w.CloseWatches(configMaps)
		w.put(configMap("a", "2"))
		pass(20 * time.Second)
		stands(t, i, informer.StateStale, "Retry-After")
		before := len(w.Served())
		pass(20 * time.Second)
		after := slices.DeleteFunc(w.Served()[before:], func(r simulate.Served) bool { return r.Verb == "get" })
		if len(after) != 3 || !strings.HasSuffix(after[0].Path, "/configmaps") {
			t.Errorf("got %+v; want the watch first, though both lists have waited longer", after)
		}
		holds(t, i, "a=2", "the watch is not opened again")
	})
}

// An API behind the same host can be another server, which asks for patience
// on its own behalf.
func TestInformer_RefusalOfOneAPIHoldsOthersForAMinute_A13(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.put(configMap("a", "1"), newWidget("w", "1"))
		w.Overload(1, 503, 600)
		refused := informer.For[*widget](w.factory)
		start(w)
		other := informer.For[cmap](w.factory)
		pass(50 * time.Second)
		holds(t, other, "", "the refusal is not heeded by other kinds at all")
		pass(20 * time.Second)
		holds(t, other, "a=1", "one API's ten minutes hold up another")
		before := w.asked("get", "test.example.com")
		pass(8 * time.Minute)
		if n := w.asked("get", "test.example.com"); n != before {
			t.Errorf("%d requests to the API within its Retry-After, want none", n-before)
		}
		pass(3 * time.Minute)
		holds(t, refused, "w=1", "it is not asked again when its time is over")
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
		if n := len(w.Served()) - before; n > 5*60/5+len(kinds) || n < 30 {
			t.Errorf("%d requests in five minutes of Retry-After 5, want one each time, and the first of each kind", n)
		}
		w.Overload(0, 0, 0)
		pass(10 * time.Second)
		for _, s := range w.factory.Snapshot() {
			if s.Scopes[0].State != informer.StateLive {
				t.Errorf("%s: got %s, want Live ten seconds after the server has recovered", s.Kind.Kind, s.Scopes[0])
			}
		}
	})
}
