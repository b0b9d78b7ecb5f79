// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
)

// fromCache has the next lists of ConfigMaps answered from what the server's cache
// has, whatever version they ask for, as a proxy does that forgets parameters.
// Negative times: all.
func fromCache(times int, consistent bool) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		q := req.URL.Query()
		list := !isWatch(req) && q.Get("continue") == "" || q.Get("sendInitialEvents") == "true"
		if !list || !isOf(req, "configmaps") || times == 0 || !consistent && q.Get("resourceVersion") == "" {
			return nil, nil
		}
		times--
		q.Set("resourceVersion", "0")
		if !isWatch(req) {
			q.Del("resourceVersionMatch")
		}
		req.URL.RawQuery = q.Encode()
		return nil, nil
	}
}

// expired refuses the next watch of ConfigMaps with 410, and then does as then.
func expired(then func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	done := false
	return func(req *http.Request) (*http.Response, error) {
		if isWatch(req) && isOf(req, "configmaps") && !done {
			done = true
			gone := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}`
			return answered(req, http.StatusGone, "application/json", strings.NewReader(gone)), nil
		}
		return then(req)
	}
}

func TestInformer_ListOlderThanDemandedIsRefused_A18(t *testing.T) {
	for name, opts := range map[string]informer.Options{"streaming": {}, "paged": {PagedLists: true}} {
		for which, c := range map[string]struct {
			meddle func(*http.Request) (*http.Response, error)
			older  int
		}{
			"a list":                       {fromCache(-1, false), 1},
			"a list and two of the newest": {fromCache(3, true), 3},
		} {
			t.Run(name+", "+which, func(t *testing.T) {
				simulated(t, opts, func(t *testing.T, w *world) {
					m := w.interposed(opts)
					w.Store(configMap("a", "1"), configMap("gone", "1"))
					past := w.Revision()
					i := informer.For[cmap](w.factory)
					h := told(w, i)
					start(w)
					w.Store(configMap("a", "2"))
					w.Delete(configMaps, "gone")
					pass(2 * time.Minute)
					holds(t, i, "a=2", "it has not synced")
					h.next()
					// The history is forgotten, so that it lists, and lists are of the past.
					w.LagTo(past)
					m.meddle(expired(c.meddle))
					dialled := w.Network.Dialled()
					w.CloseWatches(configMaps)
					said := false
					for range 200 {
						pass(50 * time.Millisecond)
						s := stateOf(i)
						said = said || s.State == state.Stale && strings.Contains(s.Reason, "older than the version asked for")
					}
					if !said {
						t.Errorf("got %s, want that it was said to be stale because a list was refused", stateOf(i))
					}
					holds(t, i, "a=2", "a list of the past took the cache back")
					if got := h.next(); got != "" {
						t.Errorf("told %q, want nothing: nothing has happened", got)
					}
					if s := stateOf(i); s.Anomalies.Older != c.older || w.logged("Refused a list") != 1 {
						t.Errorf("got %+v and log %q, want %d lists counted and one line", s.Anomalies, w.journal.lines, c.older)
					}
					if w.logged("went back") != 0 {
						t.Errorf("log %q: a list that was asked for a version proves nothing but a fault", w.journal.lines)
					}
					if n := w.Network.Dialled() - dialled; n < 2 {
						t.Error("one connection was made; the next list must go over another one")
					}
					m.meddle(nil)
					w.CatchUp()
					w.Store(configMap("a", "3"))
					pass(time.Minute)
					holds(t, i, "a=3", "the server has caught up, and the informer has not")
					stands(t, i, state.Live, "")
				})
			})
		}
	}
}
