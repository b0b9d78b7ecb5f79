// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package inspect_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/manager/internal/inspect"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// actor notes what it is asked for.
type actor struct {
	program
	did []inspect.Action
}

func (a *actor) Act(_ context.Context, do inspect.Action) (inspect.Done, error) {
	a.did = append(a.did, do)
	if do.Controller == "broken" {
		return inspect.Done{}, errors.New("no")
	}
	return inspect.Done{Version: inspect.Version, Action: do.Name, Changed: true}, nil
}

// An action is what its path and its form say, within bounds, of the user of the request.
func TestActions_AreReadFromRequests_M27(t *testing.T) {
	for _, c := range []struct {
		path, form string
		code       int
		says       string
		did        inspect.Action
	}{
		{"website/pause", "", 200, `"changed":true`, inspect.Action{Name: "pause", Controller: "website", By: "alice"}},
		{"website/run?key=shop/web", "", 200, `"action":"run"`, inspect.Action{Name: "run", Controller: "website", Key: "shop/web", By: "alice"}},
		{"a%2Fb/resume", "key=shop%2Fweb", 200, "", inspect.Action{Name: "resume", Controller: "a/b", Key: "shop/web", By: "alice"}},
		{"broken/pause", "", 500, `"error":"no"`, inspect.Action{Name: "pause", Controller: "broken", By: "alice"}},
		{"website/run", "", 400, "give it as ?key=", inspect.Action{}},
		{"website/reset-backoff", "", 400, "reset-backoff is for one key", inspect.Action{}},
		{"website/delete", "", 404, "none of run, reset-backoff, pause, resume", inspect.Action{}},
		{"website/pause", "key=" + strings.Repeat("x", 1025), 400, "at most 1024", inspect.Action{}},
		{"website/pause", strings.Repeat("x", 17<<10), 400, "too large", inspect.Action{}},
		{"website/pause", "%", 400, "read the form", inspect.Action{}},
	} {
		p := &actor{}
		r := httptest.NewRequest(http.MethodPost, inspect.Path+"controllers/"+c.path, strings.NewReader(c.form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		inspect.Actions(p).ServeHTTP(w, r.WithContext(inspect.WithUser(t.Context(), "alice")))
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s, want %d and %q", c.path, w.Code, w.Body, c.code, c.says)
		}
		if c.did.Name == "" && len(p.did) > 0 || c.did.Name != "" && !slices.Equal(p.did, []inspect.Action{c.did}) {
			t.Errorf("%s %q: it did %+v, want %+v", c.path, c.form, p.did, c.did)
		}
	}
	if name := inspect.UserOf(t.Context()); name != "a user of this machine" {
		t.Errorf("without a guard the user is %q", name)
	}
}

// What is paused is named as such, and its failures and findings are not what is wrong.
func TestOf_PausesAreProblems(t *testing.T) {
	now := time.Now()
	since := now.Add(-time.Minute)
	finding := []reconcile.Finding{{Kind: reconcile.Stuck, Key: "shop/a", Err: "no", Since: since}}
	for name, c := range map[string]struct {
		pauses reconcile.Pauses
		woken  int
		want   []string
	}{
		"nothing":    {reconcile.Pauses{}, 0, []string{"each run fails with one error: no", "3 of its keys fail and are retried"}},
		"one key":    {reconcile.Pauses{Keys: map[string]reconcile.Pause{"shop/a": {By: "bob"}}}, 1, []string{"3 of its keys fail and are retried, but for those of 1 paused ones", "1 of its keys are paused; 1 key waits"}},
		"everything": {reconcile.Pauses{All: &reconcile.Pause{By: "bob", At: since}}, 5, []string{"it is paused, by bob; 5 keys wait"}},
	} {
		p := inspect.Parts{
			Now: now, Phase: "running", Since: since, Findings: map[string][]reconcile.Finding{"c": finding},
			Controllers: []reconcile.Snapshot{{Name: "c", Synced: true, Workers: 4, Failing: 3, Pauses: c.pauses, Woken: c.woken}},
		}
		var got []string
		for _, problem := range p.Of().Problems {
			got = append(got, problem.Text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s is paused: %q, want %q", name, got, c.want)
		}
	}
}

// Keys that are paused are found, also those that have not run since the start.
func TestHandler_PausedKeys(t *testing.T) {
	p := program{}
	p.pauses = reconcile.Pauses{Keys: map[string]reconcile.Pause{"shop/idle": {By: "bob"}, "shop/woken": {By: "alice"}}}
	p.queued = []workqueue.KeyState[string]{{Key: "shop/woken", State: inspect.StatePaused}, {Key: "shop/c", State: workqueue.Delayed}}
	var page inspect.KeyPage
	get(t, p, "controllers/website/keys?state=paused&sort=key", &page)
	if len(page.Keys) != 2 || page.Keys[0].Key != "shop/idle" || page.Keys[0].State != "idle" || page.Keys[0].Paused.By != "bob" || page.Keys[1].State != "paused" {
		t.Errorf("the paused keys are %+v", page.Keys)
	}
	var key inspect.Key
	if code := get(t, p, "controllers/website/key?key=shop/idle", &key); code != http.StatusOK || !key.PausedItself || key.Paused.By != "bob" {
		t.Errorf("a paused key is %d %+v", code, key)
	}
	p.pauses = reconcile.Pauses{All: &reconcile.Pause{By: "carol"}}
	if get(t, p, "controllers/website/key?key=shop/c", &key); key.Paused.By != "carol" {
		t.Errorf("a key of a paused controller is %+v", key)
	}
	if get(t, p, "controllers/website/keys", &page); page.Paused.By != "carol" {
		t.Errorf("the page of a paused controller says %+v", page.Paused)
	}
	if code := get(t, p, "controllers/website/key?key=shop/idle", &key); code != http.StatusNotFound {
		t.Errorf("a key that nobody knows: %d, want 404, although its controller is paused", code)
	}
}
