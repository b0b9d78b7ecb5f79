// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

// confirmedFor is how long a page says what an action has done.
const confirmedFor = 15 * time.Second

// act takes an action, and shows then the page that it was taken on.
func (c *console) act(w http.ResponseWriter, r *http.Request) {
	a, err := inspect.ActionOf(w, r)
	actor, acts := c.program.(inspect.Actor)
	switch {
	case err != nil:
	case !acts:
		err = inspect.Refused(http.StatusNotFound, "this program takes no actions; set MetricsServing.Actions")
	default:
		_, err = actor.Act(r.Context(), a)
	}
	back, about := keysOf(a.Controller), url.Values{}
	if a.Key != "" {
		back += "/key"
		about.Set("key", a.Key)
	}
	if err != nil {
		var main writer
		main.put("<h1>%s</h1>\n<p class=\"bad\" role=\"alert\">%s</p>\n<p><a href=\"%s?%s\">Back</a></p>\n", a.Name, err.Error(), back, about.Encode())
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(inspect.StatusOf(err))
		_, _ = io.WriteString(w, c.layout(a.Name, "", "", markup(main.String()))) // the client may have gone
		return
	}
	about.Set("did", a.Name)
	about.Set("at", strconv.FormatInt(time.Now().Unix(), 10))
	http.Redirect(w, r, back+"?"+about.Encode(), http.StatusSeeOther)
}

// confirmations are what actions have done. A page shows no text of its address.
var confirmations = map[string]string{
	inspect.ActionRun:          "It was asked to run now.",
	inspect.ActionResetBackoff: "Its failures were forgotten, and it was asked to run now.",
	inspect.ActionPause:        "It was asked to pause.",
	inspect.ActionResume:       "It was asked to resume.",
}

// controls are what can be done on a page. The zero value shows nothing.
type controls struct {
	acts        bool
	cannotPause string
	did         string // an action of a moment ago; empty: none
}

func (c *console) controls(r *http.Request) controls {
	if _, acts := c.program.(inspect.Actor); !acts {
		return controls{}
	}
	out := controls{acts: true, cannotPause: c.program.Parts().CannotPause}
	if at, err := strconv.ParseInt(r.FormValue("at"), 10, 64); err == nil && time.Since(time.Unix(at, 0)).Abs() < confirmedFor {
		out.did = confirmations[r.FormValue("did")]
	}
	return out
}

// write writes the state of a pause, and a button for each action. key is empty for a controller.
// itself is the pause of the key or controller, not that of its controller.
func (c controls) write(w *writer, controller, key string, p *inspect.Paused, itself bool, woken string) {
	if c.did != "" {
		w.put("<p class=\"did\" role=\"status\">%s</p>\n", c.did)
	}
	switch {
	case p != nil && !itself:
		w.put("<p class=\"paused\"><b>Paused</b> with its controller, by %s <span class=\"soft\">for %s</span>%s</p>\n", p.By, since(p.Since), woken)
	case p != nil:
		w.put("<p class=\"paused\"><b>Paused</b> by %s <span class=\"soft\">for %s</span>%s</p>\n", p.By, since(p.Since), woken)
	}
	if !c.acts {
		return
	}
	what := " this key"
	if key == "" {
		what = " the controller"
	}
	w.put("<div class=\"actions\" role=\"group\" aria-label=\"Actions\">\n")
	if key != "" && p == nil {
		writeButton(w, controller, key, inspect.ActionRun, "Run it now", "It need not have changed")
		writeButton(w, controller, key, inspect.ActionResetBackoff, "Drop its backoff", "Forgets its failures and runs it now")
	}
	switch {
	case c.cannotPause != "":
		w.put("<span class=\"soft\">It cannot be paused: %s</span>\n", c.cannotPause)
	case itself:
		writeButton(w, controller, key, inspect.ActionResume, "Resume"+what, "It runs if it was woken meanwhile")
	default:
		writeButton(w, controller, key, inspect.ActionPause, "Pause"+what, "It does not run until it is resumed, also after a restart")
	}
	w.put("</div>\n")
}

// writeButton writes the form of an action. Its id keeps a page that follows the program from turning
// one button into another under the pointer.
func writeButton(w *writer, controller, key, action, label, title string) {
	w.put(`<form id="do-%s" method="post" action="%s/%s">`, action, keysOf(controller), action)
	if key != "" {
		w.put(`<input type="hidden" name="key" value="%s">`, key)
	}
	w.put("<button title=\"%s\">%s</button></form>\n", title, label)
}

// writeProfiles writes buttons that download a profile.
func (c controls) writeProfiles(w *writer) {
	if !c.acts {
		return
	}
	w.section("profiles", "Profiles", func() {
		w.put("<div class=\"actions\">\n")
		for _, name := range []string{"heap", "goroutine"} {
			w.put("<form id=\"do-%s\" method=\"post\" action=\"%sprofile/%[1]s\"><button>Take a %[1]s profile</button></form>\n", name, inspect.Path)
		}
		w.put("<span class=\"soft\">for <code>go tool pprof</code></span>\n</div>\n")
	})
}

// pausedIn says on the overview that a controller, or some of its keys, are paused.
func pausedIn(c inspect.Controller) markup {
	switch {
	case c.Paused != nil:
		return escaped(` <em class="warn">paused%s</em>`, waitingText(c.Woken))
	case c.PausedKeys > 0:
		return escaped(` <em class="warn">%d %s paused%s</em>`, c.PausedKeys, plural(c.PausedKeys, "key"), waitingText(c.Woken))
	}
	return ""
}

// stateText returns the state of a key for its page, where its pause is shown, too.
func stateText(state string) string {
	if state == inspect.StatePaused {
		return "waiting"
	}
	return state
}

func wokenText(state string) string {
	if state == inspect.StatePaused {
		return "; it was woken, and runs when it is resumed"
	}
	return ""
}

func waitingText(woken int) string {
	if woken == 0 {
		return ""
	}
	return "; " + inspect.KeysWait(woken)
}
