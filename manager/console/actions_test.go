// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/manager/console"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
	"github.com/flyball-dev/flyball/reconcile"
)

// actor is a program that takes actions.
type actor struct {
	*program
	did    []inspect.Action
	fails  error
	cannot string
	pauses reconcile.Pauses
}

func (a *actor) Act(_ context.Context, do inspect.Action) (inspect.Done, error) {
	a.did = append(a.did, do)
	return inspect.Done{}, a.fails
}

func (a *actor) Parts() inspect.Parts {
	p := a.program.Parts()
	p.Actions, p.CannotPause = true, a.cannot
	p.Controllers = []reconcile.Snapshot{a.Snapshot()}
	return p
}

func (a *actor) Controller(string) inspect.Controlled { return a }

func (a *actor) Snapshot() reconcile.Snapshot {
	s := a.program.Snapshot()
	s.Pauses, s.Woken = a.pauses, len(a.pauses.Keys)
	return s
}

func press(p console.Program, path string, form url.Values) (code int, body, location string) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, console.Path+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	console.Handler(p).ServeHTTP(w, r.WithContext(inspect.WithUser(r.Context(), "alice")))
	return w.Code, w.Body.String(), w.Header().Get("Location")
}

// A button works without a script: it leads to the page that it is on, which says what was done.
func TestConsole_ButtonsAreForms(t *testing.T) {
	p := &actor{program: &program{name: "website", text: "shop/web"}}
	for path, buttons := range map[string][]string{
		"controllers/website":                  {"pause"},
		"controllers/website/key?key=shop/web": {"run", "reset-backoff", "pause"},
		"":                                     {"heap", "goroutine"},
	} {
		_, body, _ := open(t, p, path)
		if got := strings.Count(body, `method="post"`); got != len(buttons) {
			t.Errorf("%q has %d buttons, want %v", path, got, buttons)
		}
		for _, button := range buttons {
			if !strings.Contains(body, `<form id="do-`+button+`" method="post" action="/debug/flyball/`) {
				t.Errorf("%q has no button %s", path, button)
			}
		}
	}
	code, _, location := press(p, "controllers/website/run", url.Values{"key": {"shop/web"}})
	if code != http.StatusSeeOther || len(p.did) != 1 || p.did[0] != (inspect.Action{Name: "run", Controller: "website", Key: "shop/web", By: "alice"}) {
		t.Fatalf("%d, and it did %+v; want 303 and the run of the key by alice", code, p.did)
	}
	if _, body, _ := open(t, p, strings.TrimPrefix(location, console.Path)); !strings.Contains(body, `role="status">It was asked to run now.`) {
		t.Errorf("%s does not say what was done:\n%s", location, body)
	}
	old := fmt.Sprintf("controllers/website?did=pause&at=%d", time.Now().Add(-time.Minute).Unix())
	for _, page := range []string{old, "controllers/website?did=<b>pwned&at=" + fmt.Sprint(time.Now().Unix())} {
		if _, body, _ := open(t, p, page); strings.Contains(body, `class="did"`) {
			t.Errorf("%s says that something was done a moment ago", page)
		}
	}
	p.fails = inspect.Refused(http.StatusConflict, "no <b>")
	if code, body, _ := press(p, "controllers/website/pause", nil); code != http.StatusConflict || !strings.Contains(body, `role="alert">no &lt;b&gt;`) || !strings.Contains(body, ">Back<") {
		t.Errorf("%d %s, want 409 and why", code, body)
	}
	for path, want := range map[string]int{"controllers/website/fly": 404, "controllers/website/run": 400} {
		if code, _, _ := press(p, path, nil); code != want || len(p.did) != 2 {
			t.Errorf("%s: %d, want %d, without an action", path, code, want)
		}
	}
	if code, _, _ := press(p.program, "controllers/website/pause", nil); code != http.StatusNotFound {
		t.Errorf("a program that takes no actions answers with %d, want 404", code)
	}
	for _, page := range pages {
		if _, body, _ := open(t, p.program, page); strings.Contains(body, `method="post"`) {
			t.Errorf("%s has a button, and the program takes no actions", page)
		}
	}
}

// What is paused is shown as it is, by whom and since when, with the button that ends it.
func TestConsole_PausesAreShown(t *testing.T) {
	p := &actor{program: &program{name: "website", text: "shop/web"}}
	since := time.Now().Add(-2 * time.Hour)
	show := func(page string, wants ...string) {
		t.Helper()
		_, body, _ := open(t, p, page)
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%q lacks %q:\n%s", page, want, body)
			}
		}
	}
	p.pauses = reconcile.Pauses{Keys: map[string]reconcile.Pause{"shop/web": {By: "alice<b>", At: since}, "shop/idle": {By: "bob", At: since}}}
	show("", "2 keys paused; 2 keys wait<", "2 of its keys are paused")
	show("controllers/website", `id="do-pause"`, ">shop/idle</a>", `idle <em class="warn">paused</em>`)
	show("controllers/website?state=paused", "2 of 2 keys")
	show("controllers/website/key?key=shop/web", "<b>Paused</b> by alice&lt;b&gt; <span class=\"soft\">for 2 h 0 min</span>", `id="do-resume"`)
	show("controllers/website/key?key=shop/idle", "<b>Paused</b> by bob", `id="do-resume"`)
	p.pauses = reconcile.Pauses{All: &reconcile.Pause{By: "carol", At: since}}
	show("", ">paused</em>", "it is paused, by carol; 0 keys wait")
	show("controllers/website", "<b>Paused</b> by carol", `id="do-resume"`)
	show("controllers/website/key?key=shop/web", "<b>Paused</b> with its controller, by carol", `id="do-pause"`)
	p.pauses, p.cannot = reconcile.Pauses{}, "it has no Lease"
	show("controllers/website", "it has no Lease")
}
