// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate"
)

var secrets, pods = schema.GroupResource{Resource: "secrets"}, schema.GroupResource{Resource: "pods"}

// nineKinds asks for informers of nine kinds, and returns their resources.
func nineKinds(w *world) []schema.GroupResource {
	informer.For[cmap](w.factory)
	informer.For[*corev1.Secret](w.factory)
	informer.For[*corev1.Pod](w.factory)
	informer.For[*corev1.Service](w.factory)
	informer.For[*corev1.ServiceAccount](w.factory)
	informer.For[*appsv1.Deployment](w.factory)
	informer.For[*appsv1.ReplicaSet](w.factory)
	informer.For[*appsv1.StatefulSet](w.factory)
	informer.For[*appsv1.DaemonSet](w.factory)
	all := []schema.GroupResource{configMaps, secrets, pods, {Resource: "services"}, {Resource: "serviceaccounts"}}
	for _, apps := range []string{"deployments", "replicasets", "statefulsets", "daemonsets"} {
		all = append(all, schema.GroupResource{Group: "apps", Resource: apps})
	}
	return all
}

// relists are the lists among requests.
func relists(requests []simulate.Served) []simulate.Served {
	return slices.DeleteFunc(requests, func(r simulate.Served) bool {
		return r.Verb != "list" && !strings.Contains(r.Query, "sendInitialEvents")
	})
}

func TestInformer_RelistsAreRamped_A14(t *testing.T) {
	for most, opts := range map[int]informer.Options{4: {}, 2: {ConcurrentLists: 2}, 9: {ConcurrentLists: 9}} {
		simulated(t, opts, func(t *testing.T, w *world) {
			kinds := nineKinds(w)
			start(w)
			pass(time.Minute)
			before := len(w.Served())
			w.Network.Delay(250 * time.Millisecond)
			w.Store(configMap("a", "1"))
			w.Compact()
			w.RestartCache()
			pass(2 * time.Minute)
			lists := relists(w.Served()[before:])
			if len(lists) != len(kinds)-1 {
				t.Errorf("%d lists, want one of each of the %d kinds whose version is too old", len(lists), len(kinds)-1)
			}
			// A list takes half a second from one arrival to the next.
			for n, r := range lists {
				if n+most < len(lists) && lists[n+most].At.Sub(r.At) < 500*time.Millisecond {
					t.Errorf("%d kinds list at the same time, from %s on; want %d at most", most+1, r.At, most)
					break
				}
			}
			if spread := lists[len(lists)-1].At.Sub(lists[0].At); most == 9 && spread > 750*time.Millisecond { // an idle connection spares one of them the dialling
				t.Errorf("the lists take %s to begin with room for all, want no ramp", spread)
			}
		})
	}
}

func TestInformer_SmallestRelistGoesFirst_A14(t *testing.T) {
	simulated(t, informer.Options{ConcurrentLists: 1}, func(t *testing.T, w *world) {
		for n := range 40 {
			w.Store(configMap(string(rune('a'+n)), "1"))
			if n < 20 {
				secret := &corev1.Secret{}
				secret.Namespace, secret.Name = "ns", string(rune('a'+n))
				w.Store(secret)
			}
		}
		nineKinds(w)
		start(w)
		pass(time.Minute)
		w.Network.Delay(250 * time.Millisecond)
		w.Store(newWidget("later", "1"))
		w.Compact()
		before := len(w.Served())
		w.RestartCache()
		pass(2 * time.Minute)
		var order []string
		for _, r := range relists(w.Served()[before:]) {
			order = append(order, r.Path[strings.LastIndex(r.Path, "/")+1:])
		}
		// Who comes first finds nobody waiting.
		if len(order) != 9 || slices.Contains(order[1:7], "secrets") || slices.Contains(order[1:7], "configmaps") {
			t.Errorf("lists in the order %q; want the kinds with 20 and 40 objects behind the empty ones", order)
		}
	})
}

// A kind that the server begins to list and says nothing more of gives up its
// place after a second.
func TestInformer_HungKindsHoldUpNoOther_A14(t *testing.T) {
	simulated(t, informer.Options{ConcurrentLists: 2}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"))
		hung := []schema.GroupResource{secrets, pods, {Resource: "services"}, {Resource: "serviceaccounts"}}
		for _, r := range hung {
			w.NoEndBookmark(r, true)
		}
		informer.For[*corev1.Secret](w.factory)
		informer.For[*corev1.Pod](w.factory)
		informer.For[*corev1.Service](w.factory)
		informer.For[*corev1.ServiceAccount](w.factory)
		start(w)
		i := informer.For[cmap](w.factory)
		other := informer.For[*widget](w.factory)
		pass(200 * time.Millisecond)
		if s := stateOf(i); s.State == state.Live {
			t.Errorf("got %s; this test tests nothing: no place was taken", s)
		}
		stands(t, i, state.Waiting, "waits for its turn: 2 other lists are under way")
		pass(time.Second)
		holds(t, i, "a=1", "kinds that hang hold up another")
		stands(t, other, state.Live, "")
		pass(3 * time.Minute)
		for _, s := range w.factory.Snapshot() {
			if !s.Synced {
				t.Errorf("%s: got %s, want synced by pages", s.Kind.Kind, s.Scopes[0])
			}
		}
	})
}

func TestInformer_RelistsAreNotInStep_A14(t *testing.T) {
	simulated(t, informer.Options{ConcurrentLists: 100}, func(t *testing.T, w *world) {
		nineKinds(w)
		start(w)
		pass(time.Minute)
		w.Store(newWidget("later", "1"))
		w.Compact()
		before := len(w.Served())
		w.RestartCache()
		pass(time.Minute)
		var at []time.Time
		for _, r := range relists(w.Served()[before:]) {
			if slices.Contains(at, r.At) {
				t.Errorf("two lists at %s, want each at a time of its own", r.At)
			}
			at = append(at, r.At)
		}
		if len(at) != 9 || at[8].Sub(at[0]) < 30*time.Millisecond {
			t.Errorf("lists at %v; want nine, spread over 30 ms at least", at)
		}
	})
}

func TestInformer_ResyncsAreNotInStep_A14(t *testing.T) {
	simulated(t, informer.Options{Resync: 10 * time.Minute}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"), newWidget("a", "1"))
		at := make(chan time.Time, 100)
		resynced := func(resync bool) {
			if resync {
				at <- time.Now()
			}
		}
		for range 3 {
			_, err := informer.For[cmap](w.factory).AddHandler(func(e kube.Event[cmap]) { resynced(e.Resync) }, informer.HandlerOptions{})
			w.Must(err)
			_, err = informer.For[*widget](w.factory).AddHandler(func(e kube.Event[*widget]) { resynced(e.Resync) }, informer.HandlerOptions{})
			w.Must(err)
		}
		start(w)
		pass(11 * time.Minute)
		close(at)
		seen := map[time.Time]bool{}
		for t := range at {
			seen[t] = true
		}
		if len(seen) != 6 {
			t.Errorf("%d different times of resync of six handlers, want 6", len(seen))
		}
	})
}
