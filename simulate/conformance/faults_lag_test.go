// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
)

// A kind that lags alone is told late and whole; the other kinds go on.
func TestServer_KindLagsAlone(t *testing.T) {
	secret := func(name, value string) *corev1.Secret {
		return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, StringData: map[string]string{"v": value}}
	}
	for name, end := range map[string]func(*world){
		"catches up": func(w *world) { w.CatchUpKind(configMaps) },
		"is healed":  func(w *world) { w.Heal() },
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, informer.Options{}, func(t *testing.T, w *world) {
				w.Store(configMap("a", "1"))
				maps, secrets := informer.For[cmap](w.factory), informer.For[*corev1.Secret](w.factory)
				h := told(w, maps)
				start(w)
				h.next()
				w.LagKindTo(configMaps, w.Revision())
				w.Store(configMap("a", "2"), secret("s", "1"), configMap("a", "3"), configMap("b", "1"))
				pass(3 * time.Minute)
				holds(t, maps, "a=1", "a kind that lags is told at once")
				if s := secrets.Snapshot(); s.Objects != 1 {
					t.Errorf("there are %d Secrets, want 1: another kind lags too", s.Objects)
				}
				w.LagKindTo(configMaps, w.Revision()-2) // the Secret is the second of the four
				pass(time.Second)
				holds(t, maps, "a=2", "a kind that lags less is not told the rest, or too much")
				end(w)
				w.Store(configMap("b", "2"))
				pass(time.Second)
				holds(t, maps, "a=3 b=2", "a kind that has caught up lacks something")
				if got, want := h.next(), "updated a=2, updated a=3, added b=1, updated b=2"; got != want {
					t.Errorf("told %q, want %q", got, want)
				}
			})
		})
	}
}

// A watch and a list from the cache that begin while a kind lags know as much as others.
func TestServer_WatchThatBeginsWhileItsKindLagsMissesNothing(t *testing.T) {
	for name, opts := range map[string]informer.Options{"streaming": {}, "paged": {PagedLists: true}} {
		t.Run(name, func(t *testing.T) {
			simulated(t, opts, func(t *testing.T, w *world) {
				w.Store(configMap("a", "1"))
				i := informer.For[cmap](w.factory)
				start(w)
				w.LagKindTo(configMaps, w.Revision())
				w.Store(configMap("a", "2"), configMap("b", "1"))
				w.CloseWatches(configMaps)
				answer, err := (&http.Client{Transport: w.Config.Transport}).Get("http://simulated/api/v1/configmaps?resourceVersion=0")
				w.Must(err)
				list, err := io.ReadAll(answer.Body)
				if w.Must(err); strings.Contains(string(list), `"name":"b"`) || !strings.Contains(string(list), `"name":"a"`) {
					t.Errorf("the list from the cache is %s, want what was there before it lagged", list)
				}
				w.Must(answer.Body.Close())
				pass(time.Minute)
				w.Store(configMap("c", "1"))
				w.CatchUpKind(configMaps)
				pass(time.Minute)
				holds(t, i, "a=2 b=1 c=1", "a watch that began while its kind lagged misses something")
			})
		})
	}
}

// What a restore undoes is not told when a kind catches up.
func TestServer_LateChangesThatAreUndoneAreNotTold(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"))
		i := informer.For[cmap](w.factory)
		h := told(w, i)
		start(w)
		h.next()
		w.LagKindTo(configMaps, w.Revision())
		w.Store(configMap("a", "2"), configMap("b", "1"))
		w.Rewind(1)
		w.CatchUpKind(configMaps)
		pass(10 * time.Minute)
		holds(t, i, "a=2", "the informer has what was undone, or lacks what was not")
		if got := h.next(); got != "updated a=2" {
			t.Errorf("told %q, want %q", got, "updated a=2")
		}
	})
}
