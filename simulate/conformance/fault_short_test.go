// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
)

// A server or proxy that ends each watch after five seconds delays nothing.
func TestInformer_ShortWatchesDelayNothing_A24(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "0"))
		i := informer.For[cmap](w.factory)
		idle := informer.For[*corev1.Secret](w.factory)
		start(w)
		pass(time.Minute)
		w.CloseWatches(configMaps) // whether the schema has changed is looked at
		w.CloseWatches(secrets)
		pass(5 * time.Minute)
		lists := w.lists(configMaps)
		for n := range 60 {
			w.CloseWatches(configMaps)
			w.CloseWatches(secrets)
			w.Store(configMap("a", fmt.Sprint(n)))
			pass(100 * time.Millisecond)
			holds(t, i, fmt.Sprintf("a=%d", n), "the watch is not opened again at once")
			stands(t, idle, state.Live, "")
			pass(4900 * time.Millisecond)
		}
		if n := w.lists(configMaps) - lists; n != 0 {
			t.Errorf("%d lists, want none: each watch goes on from its last version", n)
		}
	})
}

// One that ends each watch at once is not asked without a limit, whatever the
// watch has brought.
func TestInformer_WatchesThatEndAtOnceAreNoStorm_A24(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		m := w.interposed(informer.Options{})
		var asked atomic.Int64
		w.Store(configMap("a", "0"))
		informer.For[cmap](w.factory)
		start(w)
		m.meddle(func(req *http.Request) (*http.Response, error) {
			if !isWatch(req) {
				return nil, nil
			}
			return answered(req, 200, "application/json", strings.NewReader(fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"%d"}}}`, 1000+asked.Add(1)))), nil
		})
		w.CloseWatches(configMaps)
		pass(5 * time.Minute)
		if n := asked.Load(); n > 330 || n < 100 {
			t.Errorf("%d watches in five minutes, want one a second or so", n)
		}
	})
}
