// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"strconv"
	"time"

	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

func since(t time.Time) string { return duration(time.Since(t).Seconds()) }

// until returns when t is, such as "in 3 s".
func until(t time.Time) string {
	if left := time.Until(t).Seconds(); left > 0 {
		return "in " + duration(left)
	}
	return "now"
}

// orNone returns since with a text before it; empty: t is zero.
func orNone(before string, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return before + since(t)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func plural(n int, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}

func backlog(i inspect.Informer) (n int) {
	for _, h := range i.Handlers {
		n += h.Backlog
	}
	return n
}

// link returns where a problem is shown.
func link(p inspect.Problem) string {
	switch {
	case p.Of == "informer":
		return Path + "informers#" + p.Name
	case p.Of == "controller" && p.Key != "":
		return keyOf(p.Name, p.Key)
	case p.Of == "controller":
		return keysOf(p.Name)
	case p.Of == "sharing":
		return Path + "replicas"
	case p.Of == "webhooks":
		return Path + "#webhooks"
	}
	return Path
}

// duration returns seconds as a person says them, such as "12 ms", "3.4 s" or "2 h 5 min".
func duration(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case d < time.Microsecond:
		return "0"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", seconds)
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(seconds))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(seconds)%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d days", int(d.Hours())/24)
	}
}

func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

func count(n uint64) string {
	switch {
	case n < 10_000:
		return strconv.FormatUint(n, 10)
	case n < 1e6:
		return fmt.Sprintf("%.1f k", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f M", float64(n)/1e6)
}

// rated returns a number per second; empty: none.
func rated(perSecond float64) markup {
	switch {
	case perSecond <= 0:
		return ""
	case perSecond < 10:
		return escaped(` <span class="rate">%.1f/s</span>`, perSecond)
	}
	return escaped(` <span class="rate">%.0f/s</span>`, perSecond)
}

// fields returns paths of fields, and how many others there are.
func fields(paths []string, more int) markup {
	var w writer
	for i, p := range paths {
		if i > 0 {
			w.put(", ")
		}
		w.put("<code>%s</code>", p)
	}
	if more > 0 {
		w.put(" and %d more", more)
	}
	return markup(w.String())
}

// bar shows a part of a whole.
func bar(part, whole float64) markup {
	const width = 120
	share := 0.0
	if whole > 0 {
		share = min(1, part/whole)
	}
	return escaped(`<svg class="bar" width="%d" height="10" role="img" aria-label="%.0f %% of the reconcile"><rect width="%.1f" height="10"/></svg>`, width, 100*share, width*share)
}

func stateClass(state string) string {
	switch state {
	case "Live":
		return "good"
	case "Waiting", "Listing", "Streaming", "Stopped":
		return "soft"
	}
	return "bad"
}

func outcomeClass(outcome string) string {
	switch outcome {
	case "":
		return ""
	case "done", "after":
		return "good"
	case "retry", "conflict", "stopped":
		return "warn"
	}
	return "bad"
}
