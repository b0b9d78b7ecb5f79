// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/simulate"
)

// manyKinds installs so many custom kinds of an API group and asks for an
// informer of each.
func (w *world) manyKinds(group string, n int) {
	for k := range n {
		kind := schema.GroupVersionKind{Group: group, Version: "v1", Kind: fmt.Sprintf("Thing%03d", k)}
		w.Install(simulate.Kind{GroupVersionKind: kind, Namespaced: true})
		informer.ForKind(w.factory, kind)
	}
}

func isList(req *http.Request) bool { return req.URL.Query().Has("limit") || isWatch(req) }

// reinitializing answers as the storage of a kind whose cache is not filled.
func reinitializing(retryAfter string) func(*http.Request) *http.Response {
	return func(req *http.Request) *http.Response {
		answer := answered(req, 429, "application/json", strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"storage is (re)initializing","reason":"TooManyRequests","details":{"retryAfterSeconds":`+retryAfter+`},"code":429}`))
		answer.Header.Set("Retry-After", retryAfter)
		return answer
	}
}

// turnedAway answers as a server with too many requests under way, of a priority
// level if one is named.
func turnedAway(retryAfter, level string) func(*http.Request) *http.Response {
	return func(req *http.Request) *http.Response {
		answer := answered(req, 429, "text/plain", strings.NewReader("Too many requests, please try again later.\n"))
		answer.Header.Set("Retry-After", retryAfter)
		if level != "" {
			answer.Header.Set("X-Kubernetes-PF-PriorityLevel-UID", level)
		}
		return answer
	}
}

// However many kinds the server refuses, others are synced, and their watches
// opened again, as if there were none.
func TestInformer_SickKindsHoldUpNoOther_A23(t *testing.T) {
	synced := map[int]time.Duration{}
	for _, sick := range []int{0, 1, 10, 40} {
		simulated(t, informer.Options{}, func(t *testing.T, w *world) {
			w.Network.Delay(5 * time.Millisecond)
			m := w.interposed(informer.Options{})
			w.manyKinds("sick.example.com", sick)
			m.meddle(func(req *http.Request) (*http.Response, error) {
				if strings.Contains(req.URL.Path, "/sick.example.com/") && isList(req) {
					return reinitializing("30")(req), nil
				}
				return nil, nil
			})
			w.Store(configMap("a", "1"), newWidget("w", "1"))
			began := time.Now()
			i, other := informer.For[cmap](w.factory), informer.For[*widget](w.factory)
			w.group.Go(func() {
				<-i.Synced()
				<-other.Synced()
				synced[sick] = time.Since(began)
			})
			start(w)
			pass(5 * time.Second)
			holds(t, i, "a=1", "sick kinds hold up another")
			for n := range 5 {
				pass(time.Minute)
				w.CloseWatches(configMaps)
				w.Store(configMap("a", fmt.Sprint(n)))
				pass(100 * time.Millisecond)
				holds(t, i, fmt.Sprintf("a=%d", n), "sick kinds hold up the watch of another")
			}
			for _, s := range w.factory.Snapshot() {
				if s.Kind.Group == "sick.example.com" && !strings.Contains(s.Scopes[0].Reason, "storage is (re)initializing") {
					t.Fatalf("%s: got %s, want the server's words", s.Kind.Kind, s.Scopes[0])
				}
			}
		})
	}
	for sick, took := range synced {
		if took == 0 || took > synced[0]+500*time.Millisecond {
			t.Errorf("beside %d sick kinds the others are synced after %s, without any after %s; want no difference but their turn among the lists", sick, took, synced[0])
		}
	}
}

// Of 300 kinds that were installed just now the server refuses the first
// requests, until their caches are filled.
func TestInformer_FreshKindsAreSyncedSoon_A23(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Network.Delay(5 * time.Millisecond)
		m := w.interposed(informer.Options{})
		var refused sync.Map
		w.manyKinds("fresh.example.com", 300)
		m.meddle(func(req *http.Request) (*http.Response, error) {
			if strings.Contains(req.URL.Path, "/fresh.example.com/") && isList(req) {
				if _, before := refused.LoadOrStore(req.URL.Path, true); !before {
					return reinitializing("1")(req), nil
				}
			}
			return nil, nil
		})
		i := informer.For[*corev1.Pod](w.factory)
		start(w)
		stands(t, i, state.Live, "")
		pass(14 * time.Second)
		waiting := slices.DeleteFunc(w.factory.Snapshot(), func(s state.Informer) bool { return s.Synced })
		if len(waiting) > 0 {
			t.Errorf("%d kinds are not synced after 15 s, such as %s: %s; want none", len(waiting), waiting[0].Kind.Kind, waiting[0].Scopes[0])
		}
	})
}

// A priority level that the server names and refuses is spared, and other
// levels go on.
func TestInformer_OverloadedPriorityLevelHoldsUpNoOther_A23(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		m := w.interposed(informer.Options{})
		var low atomic.Int64
		w.manyKinds("low.example.com", 40)
		w.Store(configMap("a", "1"))
		i := informer.For[cmap](w.factory)
		m.meddle(func(req *http.Request) (*http.Response, error) {
			if strings.Contains(req.URL.Path, "/low.example.com/") && isList(req) {
				low.Add(1)
				return turnedAway("5", "low")(req), nil
			}
			answer, err := m.behind.RoundTrip(req)
			if err == nil {
				answer.Header.Set("X-Kubernetes-PF-PriorityLevel-UID", "high")
			}
			return answer, err
		})
		start(w)
		for n := range 10 {
			pass(6 * time.Second)
			w.CloseWatches(configMaps)
			w.Store(configMap("a", fmt.Sprint(n)))
			pass(100 * time.Millisecond)
			holds(t, i, fmt.Sprintf("a=%d", n), "a priority level that is overloaded holds up another")
		}
		if n := low.Load(); n > 10*61 || n < 30 {
			t.Errorf("%d requests in a minute to the level that is overloaded, want less than ten a second", n)
		}
	})
}
