// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flyball-dev/flyball/internal/textlog"
)

// story tells the runs of a key that are not yet seen, the newest last.
func story(h history, c clock, wide bool, s seen) string {
	var out strings.Builder
	about := h.Controller + " " + h.Key
	if s.isNew(about, "") {
		out.WriteString(heading(h, c))
	}
	for _, r := range slices.Backward(h.Timeline) {
		if s.isNew(about+" "+r.ID, "") {
			out.WriteString("\n" + chapter(r, c, wide))
		}
	}
	return out.String()
}

// heading is what the key does now.
func heading(h history, c clock) string {
	text := fmt.Sprintf("%s of controller %s", h.Key, h.Controller)
	switch {
	case h.State == "idle" || h.State == "":
		text += " is idle"
	case h.State == "delayed" && !h.Due.IsZero():
		text += ", delayed: it runs in " + c.until(h.Due)
	case h.State == "held" || h.State == "held and dirty":
		text += " is running, for " + seconds(h.AgeSeconds)
	default:
		text += fmt.Sprintf(" is %s, for %s", h.State, seconds(h.AgeSeconds))
	}
	if h.Runs > 0 {
		text += fmt.Sprintf(". It has run %s, last %s ago: %s", times(h.Runs), c.age(h.Ended), h.Outcome)
	}
	if h.Attempts > 0 {
		text += fmt.Sprintf(". It has failed %s in a row", times(h.Attempts))
		if !h.FailingSince.IsZero() {
			text += ", for " + c.age(h.FailingSince)
		}
	}
	text += "."
	switch n := len(h.Timeline); {
	case n == 0:
		text += " No run is recorded."
	case n < h.Runs:
		text += fmt.Sprintf(" The last %d are recorded.", n)
	}
	if h.Paused != nil {
		text += fmt.Sprintf(" It is paused by %s, for %s.", h.Paused.By, c.age(h.Paused.Since))
	}
	text = textlog.Visible(text) + "\n"
	for _, f := range h.Findings {
		text += fmt.Sprintf("Wrong for %s: %s\n", c.age(f.Since), textlog.Visible(f.Text))
	}
	return text
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return strconv.Itoa(n) + " times"
}

// chapter tells one run.
func chapter(r run, c clock, wide bool) string {
	var out strings.Builder
	began, layout := r.Began.In(c.zone), "15:04:05.000"
	if began.Format(time.DateOnly) != c.now.In(c.zone).Format(time.DateOnly) {
		layout = time.DateOnly + " " + layout
	}
	when := fmt.Sprintf("At %s, %s ago, ", began.Format(layout), c.age(r.Began))
	fmt.Fprintf(&out, "%s%s.\n", when, textlog.Visible(why(r, wide)))
	if wide {
		fmt.Fprintf(&out, "  Its reconcileID is %s.\n", textlog.Visible(r.ID))
	}
	fmt.Fprintf(&out, "  It had waited %s and took %s: %s.\n", seconds(r.WaitSeconds), seconds(r.TookSeconds), textlog.Visible(outcome(r)))
	if r.Error != "" {
		fmt.Fprintf(&out, "  The error: %s\n", textlog.Visible(r.Error))
	}
	return out.String() + requests(r, wide)
}

// requests lists what a run has sent.
func requests(r run, wide bool) string {
	var out strings.Builder
	all := len(r.Requests) + r.MoreRequests
	if all == 0 {
		return "  It sent no requests.\n"
	}
	fmt.Fprintf(&out, "  It sent %s:\n", count(all, "request"))
	w := tabwriter.NewWriter(&out, 0, 4, 2, ' ', 0)
	for _, q := range r.Requests {
		fmt.Fprintf(w, "    %s\t%s\t%s\t%s", textlog.Visible(sent(q)), code(q.Code), seconds(q.TookSeconds), textlog.Visible(effect(q, wide)))
		if wide {
			fmt.Fprintf(w, " (%s sent, %s received)", size(q.SentBytes), size(q.ReceivedBytes))
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // into memory
	if r.MoreRequests > 0 {
		fmt.Fprintf(&out, "    and %d more\n", r.MoreRequests)
	}
	return trimmed(out.String())
}

// why says why a run began.
func why(r run, wide bool) string {
	if len(r.Causes) == 0 {
		return "it ran; why is not recorded"
	}
	text := "it ran because " + clause(r.Causes[0], wide)
	switch {
	case len(r.Causes) == 1:
		return text
	case r.CauseCount > 2:
		text += "; after that " + count(r.CauseCount-2, "other cause") + "; and last"
	default:
		text += "; and"
	}
	return text + " because " + clause(r.Causes[1], wide)
}

// clause is a cause as the end of a sentence.
func clause(c cause, wide bool) string {
	reason := strings.TrimPrefix(strings.TrimPrefix(c.Text, c.Source), ": ")
	switch {
	case c.Event == "" && c.Source == "timer":
		return "its time had come" + parenthesis(reason)
	case c.Event == "" && c.Source == "retry":
		return "the run before had failed" + parenthesis(reason)
	case c.Event == "" && c.Source == "cache":
		return "the cache had caught up after a conflict" + parenthesis(reason)
	case c.Event == "":
		return "the source " + c.Source + " added it" + parenthesis(reason)
	}
	kind, _, _ := strings.Cut(c.Kind, ".")
	text := strings.TrimSpace(kind + " " + c.Object)
	switch first, _, _ := strings.Cut(c.Text, " "); first {
	case "listed":
		text += " was in the first list"
	case "resync":
		text += " was resynced, without a change"
	default:
		text += " was " + c.Event
	}
	if _, how, found := strings.Cut(c.Text, " ("); found {
		text += " (" + how
	}
	return text + fields(": ", c.Changed, c.MoreChanged, wide)
}

func parenthesis(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

const fewFields = 3 // without -o wide

// fields lists paths; empty: there are none.
func fields(before string, paths []string, more int, wide bool) string {
	if len(paths) == 0 {
		return ""
	}
	if few := fewFields; !wide && len(paths)+more > few+1 && len(paths) > few {
		paths, more = paths[:few], more+len(paths)-few
	}
	text := before + strings.Join(paths, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// outcome says how a run ended, and what follows.
func outcome(r run) string {
	text := r.Outcome
	if text == "after" {
		text = "done"
	}
	if r.AfterSeconds > 0 {
		text += ", to run again after " + seconds(r.AfterSeconds)
	}
	if r.Reason != "" && r.Reason != r.Error {
		text += parenthesis(r.Reason)
	}
	return text
}

// sent names a request: its verb, kind and object, and a subresource.
func sent(q request) string {
	what := q.Verb + " " + cmp.Or(q.Kind, q.Resource)
	if q.Object != "" {
		what += " " + q.Object
	}
	if _, sub, found := strings.Cut(q.Resource, "/"); found && q.Kind != "" {
		what += ", " + sub
	}
	return what
}

func code(n int) string {
	if n == 0 {
		return "no answer"
	}
	return strconv.Itoa(n)
}

func effect(q request, wide bool) string {
	text := q.Effect
	if text == "nothing" {
		text = "changed nothing"
	}
	return text + fields(" ", q.Fields, q.MoreFields, wide)
}
