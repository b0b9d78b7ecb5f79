// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/internal/redact"
	"github.com/flyball-dev/flyball/reconcile"
)

const (
	slowHandler = 10 * time.Second // a call of a handler that is reported
	longWait    = 30 * time.Second // of a controller for its sources
	longRun     = time.Minute      // of a reconcile: the default of its soft deadline
)

// problems returns what is wrong in o, the longest first; what has no time comes last. Those of the use
// of informers are known.
func problems(o Overview, findings map[string][]reconcile.Finding, known []Problem, pauses map[string]reconcile.Pauses) []Problem {
	out := append([]Problem{}, known...)
	out = append(out, problemsOfWebhooks(o.Webhooks, o.Now)...)
	if l := o.Leadership; l != nil && l.Refused != "" {
		out = append(out, Problem{Of: "leadership", Name: l.Lease, Text: "the server refuses the Lease: " + l.Refused,
			Hint: "grant get, create and update of Leases in its namespace by a Role"})
	}
	out = append(out, problemsOfSharing(o.Sharing, o)...)
	for _, m := range o.Members {
		if m.Error != "" {
			out = append(out, Problem{Of: "member", Name: m.Name, Since: m.Since, Text: "ended: " + redact.Text(m.Error)})
		}
	}
	for _, i := range o.Informers {
		out = append(out, problemsOfInformer(i)...)
	}
	for _, c := range o.Controllers {
		out = append(out, problemsOfController(c, o)...)
		out = append(out, problemsOfKeys(c.Name, findings[c.Name], pauses[c.Name])...)
	}
	slices.SortStableFunc(out, func(a, b Problem) int {
		if a.Since.IsZero() != b.Since.IsZero() {
			if a.Since.IsZero() {
				return 1
			}
			return -1
		}
		return a.Since.Compare(b.Since)
	})
	return out
}

func problemsOfInformer(i Informer) (out []Problem) {
	for _, s := range i.Scopes {
		switch s.State {
		case "Live", "Waiting", "Listing", "Streaming", "Stopped":
			continue
		}
		out = append(out, Problem{Of: "informer", Name: i.Kind, Since: s.Since, Text: s.Scope + ": " + s.State + orNothing(": ", redact.Text(s.Reason)), Hint: s.Hint})
	}
	for _, h := range i.Handlers {
		if h.RunningSeconds > slowHandler.Seconds() {
			out = append(out, Problem{Of: "informer", Name: i.Kind, Text: fmt.Sprintf("a call of the handler %q has run for %.0f s; %d events wait", h.Name, h.RunningSeconds, h.Backlog),
				Hint: "a handler must not wait: add a key to a queue and return"})
		}
	}
	return out
}

// works reports whether the controllers of this process are to work.
func (o Overview) works() bool {
	return (o.Leadership == nil || o.Leadership.Leading) && (o.Sharing == nil || o.Sharing.Waits == "")
}

func problemsOfController(c Controller, o Overview) (out []Problem) {
	of := func(text, hint string, since time.Time) {
		out = append(out, Problem{Of: "controller", Name: c.Name, Since: since, Text: text, Hint: hint})
	}
	if !c.Synced && o.Phase == "running" && o.works() && o.Now.Sub(o.Since) > longWait {
		of("its workers have not started: "+missingSource(c), "see the informers of its sources", o.Since)
	}
	for _, r := range c.Running {
		if o.Now.Sub(r.Since) > longRun {
			out = append(out, Problem{Of: "controller", Name: c.Name, Key: r.Key, Since: r.Since, Text: "a reconcile still runs",
				Hint: "the log has its stack"})
		}
	}
	if c.Workers > 0 && c.Active == c.Workers && c.Ready > 10*c.Workers {
		of(fmt.Sprintf("all %d workers are busy, and %d keys wait", c.Workers, c.Ready), "raise Options.Workers if the process has CPU to spare", time.Time{})
	}
	if c.Failing > 0 && c.Paused == nil {
		of(fmt.Sprintf("%d of its keys fail and are retried", c.Failing)+butPaused(c), "", time.Time{})
	}
	if c.Paused != nil {
		of(fmt.Sprintf("it is paused, by %s; %s", c.Paused.By, KeysWait(c.Woken)), "resume it once it may run", c.Paused.Since)
	} else if c.PausedKeys > 0 {
		of(fmt.Sprintf("%d of its keys are paused; %s", c.PausedKeys, KeysWait(c.Woken)), "the state paused of its keys lists them", time.Time{})
	}
	return out
}

// KeysWait says how many paused keys were woken.
func KeysWait(woken int) string {
	if woken == 1 {
		return "1 key waits"
	}
	return fmt.Sprintf("%d keys wait", woken)
}

// butPaused says that keys are paused, which are not retried.
func butPaused(c Controller) string {
	if c.PausedKeys == 0 {
		return ""
	}
	return fmt.Sprintf(", but for those of %d paused ones", c.PausedKeys)
}

// mostFindings is how many keys of a controller are named.
const mostFindings = 10

// hints are what can be done about findings.
var hints = map[reconcile.FindingKind]string{
	reconcile.HotLoop: "write a field only if it has to change: keep what is random, sort what comes from a map, do not write the time",
	reconcile.Fight:   "two programs own one field: let one of them leave it out; managedFields of the object name the other",
	reconcile.Starved: "raise Options.Workers, or lower the priority of what comes before it",
	reconcile.Stuck:   "it fails as long as its cause lasts; if only an event can end that, return reconcile.Terminal",
}

// problemsOfKeys returns findings but for NoEffect, which harms nobody, and those of paused keys, which
// do not run.
func problemsOfKeys(controller string, findings []reconcile.Finding, pauses reconcile.Pauses) (out []Problem) {
	more := 0
	for _, f := range findings {
		switch {
		case f.Kind == reconcile.NoEffect || pauses.Of(f.Key) != nil:
		case len(out) < mostFindings:
			out = append(out, Problem{Of: "controller", Name: controller, Key: f.Key, Finding: string(f.Kind), Since: f.Since, Text: redact.Text(f.String()), Hint: hints[f.Kind]})
		default:
			more++
		}
	}
	if more > 0 {
		out = append(out, Problem{Of: "controller", Name: controller, Text: fmt.Sprintf("%d more of its keys need attention", more)})
	}
	return out
}

func missingSource(c Controller) string {
	for _, s := range c.Sources {
		if !s.Synced {
			return "the source " + s.Name + " is not synced"
		}
	}
	return "it waits for its sources"
}

func orNothing(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}
