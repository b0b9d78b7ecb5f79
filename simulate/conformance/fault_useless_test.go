// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/simulate"
)

// Where watches bring nothing, for whatever reason, lists do.
func TestInformer_ListsStandInForWatchesOfNoUse_A17(t *testing.T) {
	body := func(code int, media, body string) func(*http.Request) (*http.Response, error) {
		return func(req *http.Request) (*http.Response, error) {
			return answered(req, code, media, strings.NewReader(body)), nil
		}
	}
	for name, c := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		reason string
	}{
		"the end at once":         {body(200, "application/json", ""), "the server ended it at once"},
		"500":                     {body(500, "text/plain", "boom"), "500"},
		"502 of a proxy":          {body(502, "text/html", "<html>bad gateway</html>"), "502"},
		"an error without Status": {body(200, "application/json", `{"type":"ERROR","object":{"kind":"Pod"}}`), "without a Status"},
		"a page of HTML":          {body(200, "text/html", "<html>log in</html>"), "unexpected answer"},
		"broken JSON":             {body(200, "application/json", `{"type":"ADDED","object":{"ki`), ""},
		"an unknown event":        {body(200, "application/json", `{"type":"RENAMED","object":{"kind":"ConfigMap","metadata":{"name":"a"}}}`), "is not known"},
		"an old bookmark":         {body(200, "application/json", `{"type":"BOOKMARK","object":{"kind":"ConfigMap","metadata":{"resourceVersion":"1"}}}`), "the server ended it at once"},
		"a reset": {func(*http.Request) (*http.Response, error) {
			return nil, errors.New("connection reset by peer")
		}, "reset by peer"},
		"403": {body(403, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no watch"}`), "no watch"},
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, informer.Options{}, func(t *testing.T, w *world) {
				m := w.interposed(informer.Options{Audit: 10 * time.Minute})
				w.Store(configMap("a", "1"), configMap("b", "1"))
				i := informer.For[cmap](w.factory)
				other := informer.For[*corev1.Secret](w.factory)
				h := told(w, i)
				start(w)
				h.next()
				pass(time.Minute) // the informer knows the schema, so a broken watch is no reason to list
				m.meddle(func(req *http.Request) (*http.Response, error) {
					if isWatch(req) && isOf(req, "configmaps") {
						return c.answer(req)
					}
					return nil, nil
				})
				w.CloseWatches(configMaps)
				w.Store(configMap("a", "2"))
				w.Delete(configMaps, "b")
				pass(2 * time.Minute)
				holds(t, i, "a=2", "no watch is of use, and nothing is listed")
				if got := h.next(); len(got) != len("updated a=2, deleted b=1") {
					t.Errorf("told %q, want one update and one deletion", got)
				}
				s := stateOf(i)
				if !strings.Contains(s.Reason, "listing instead") || !strings.Contains(s.Reason, c.reason) || s.Relists["watches of no use"] == 0 {
					t.Errorf("got %s and relists %v, want that no watch is of use because of %q", s, s.Relists, c.reason)
				}
				stands(t, other, state.Live, "")
				listsFollow(t, w, i)
				m.meddle(nil)
				pass(time.Minute)
				w.Store(configMap("a", "well"))
				pass(100 * time.Millisecond)
				holds(t, i, "a=well", "watches work again, and none was opened")
				pass(10 * time.Second)
				stands(t, i, state.Live, "")
			})
		})
	}
}

// listsFollow checks that i sees the changes of three quarters of an hour, that
// audits go on, and that neither requests nor lines of log pile up.
func listsFollow(t *testing.T, w *world, i *informer.SharedInformer[cmap]) {
	t.Helper()
	lines, lists, requests := w.logged(""), w.lists(configMaps), len(w.Served())
	for n := range 20 {
		value := fmt.Sprint("later ", n)
		w.Store(configMap("a", value))
		pass(130 * time.Second)
		holds(t, i, "a="+value, "lists stop")
	}
	if n := w.lists(configMaps) - lists; n > 200 {
		t.Errorf("%d lists in 43 minutes, want one in 13 s at most", n)
	}
	if n := len(w.Served()) - requests; n > 1000 {
		t.Errorf("%d requests in 43 minutes", n)
	}
	if n := w.logged("") - lines; n > 2 {
		t.Errorf("%d lines of log about what is the matter all the time: %q", n, w.journal.lines)
	}
	if s := stateOf(i); s.Audits.Done == 0 || s.Audits.Differences != 0 {
		t.Errorf("got audits %+v in three quarters of an hour of lists, want some, without a difference", s.Audits)
	}
}

// When an outage of all requests is over, watches go on, and nothing is listed: a
// list costs the server more.
func TestInformer_OutageEndsWithWatches_A17(t *testing.T) {
	for name, outage := range map[string]func(w *world, on bool){
		"refused connections": func(w *world, on bool) { w.Network.Refuse(on) },
		"503":                 func(w *world, on bool) { w.Overload(map[bool]int{true: -1}[on], 503, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, informer.Options{}, func(t *testing.T, w *world) {
				w.Store(configMap("a", "1"))
				i := informer.For[cmap](w.factory)
				start(w)
				pass(time.Minute)
				outage(w, true)
				w.Network.Cut()
				pass(10 * time.Minute)
				w.Store(configMap("a", "2"))
				before, back := len(w.Served()), time.Now()
				outage(w, false)
				pass(time.Minute)
				holds(t, i, "a=2", "the server is back, and was not asked")
				// A list that followed a watch just before the server was back is still sent, and
				// the read after a broken connection (A39) is not a list of the scope.
				begun := func(r simulate.Served) bool {
					return r.At.Sub(back) < 2*time.Second || strings.Contains(r.Query, "resourceVersionMatch=Exact")
				}
				if lists := slices.DeleteFunc(relists(w.Served()[before:]), begun); len(lists) != 0 {
					t.Errorf("%d lists when the server was back, want none: the watch goes on", len(lists))
				}
				stands(t, i, state.Live, "")
			})
		})
	}
}

// Outages that follow each other do not add up: when the server is back, that is
// noticed after a fraction of the last outage.
func TestInformer_RepeatedOutagesDoNotAddUp_A22(t *testing.T) {
	for name, lived := range map[string]time.Duration{"far apart": time.Minute, "close together": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			simulated(t, informer.Options{}, func(t *testing.T, w *world) {
				w.Store(configMap("a", "0"))
				i := informer.For[cmap](w.factory)
				start(w)
				const outage = 8 * time.Second
				before, requests := 0, []int{}
				for n := range 12 {
					pass(lived)
					w.Network.Refuse(true)
					w.Network.Cut()
					pass(outage)
					value := fmt.Sprint("after ", n)
					w.Store(configMap("a", value))
					w.Compact()
					w.RestartCache()
					w.Overload(-1, 503, 0) // as a server that starts
					w.Network.Refuse(false)
					pass(2 * time.Second)
					w.Overload(0, 0, 0)
					back := time.Now()
					for held(i) != "a="+value {
						if pass(50 * time.Millisecond); time.Since(back) > time.Minute {
							t.Fatalf("outage %d: %s a minute after it", n, stateOf(i))
						}
					}
					if late := time.Since(back); late > 1500*time.Millisecond {
						t.Errorf("outage %d of %s: caught up after %s, want 1.5 s at most", n, outage, late)
					}
					requests = append(requests, len(w.Served())-before)
					before = len(w.Served())
				}
				if first, last := requests[1], requests[len(requests)-1]; last > 2*first || last > 20 {
					t.Errorf("%v requests were answered in each round, want about as many in the last as in the second", requests)
				}
			})
		})
	}
}
