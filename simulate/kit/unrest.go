// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// explained bounds the keys of each process that are explained.
const explained = 3

// unrest explains the keys that are not at rest: how often they failed, with what
// error, and the last requests of their reconciles.
func (w *World) unrest() string {
	var text strings.Builder
	for _, p := range w.running() {
		p.unrest(&text)
	}
	for _, p := range w.programs() {
		if how := w.record.ended(p.name); p.isMain() && how != "" {
			fmt.Fprintf(&text, "\nthe main of %s returned, the last time %s", p.name, how)
		}
	}
	return text.String()
}

// repeated describes the requests and reconciles that events consist of, the most
// frequent of each first.
func repeated(events []Event) string {
	requests, runs := tally{}, tally{}
	for _, e := range events {
		switch {
		case e.What == Answered:
			requests.take(fmt.Sprintf("%s asks to %s %s %s", e.Who, e.Name, e.Kind, e.Key), fmt.Sprint(e.Code))
		case e.What == Ended:
			runs.take(fmt.Sprintf("%s reconciles %s %s", e.Who, e.Kind, e.Key), strings.TrimSuffix(e.Name+": "+e.Text, ": "))
		}
	}
	return strings.Join(slices.Concat(requests.lines("answered with"), runs.lines("ended with")), "\n")
}

// tally counts what happens, and keeps how it ended the last time.
type tally map[string]*tallied

type tallied struct {
	times int
	last  string
}

func (t tally) take(what, how string) {
	if t[what] == nil {
		t[what] = &tallied{}
	}
	t[what].times++
	t[what].last = how
}

// lines describes the most frequent ones.
func (t tally) lines(ended string) (out []string) {
	names := sortedKeys(t)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(t[b].times, t[a].times) })
	for _, name := range names[:min(len(names), explained)] {
		out = append(out, fmt.Sprintf("  %d times %s, the last time %s %s", t[name].times, name, ended, t[name].last))
	}
	return out
}

func (p *process) unrest(text *strings.Builder) {
	standby := p.standsBy()
	p.mu.Lock()
	defer p.mu.Unlock()
	var restless []keyed
	for k, a := range p.mu.busy {
		if !a.idle() && !(standby && !p.mu.works[k.controller]) {
			restless = append(restless, k)
		}
	}
	slices.SortFunc(restless, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.controller, b.controller), cmp.Compare(a.key, b.key))
	})
	for i, k := range restless {
		if i == explained {
			fmt.Fprintf(text, "\nand %d more keys of %s", len(restless)-i, p.name)
			break
		}
		a := p.mu.busy[k]
		fmt.Fprintf(text, "\n%s %s of %s ", k.controller, k.key, p.name)
		switch {
		case a.failed > 0:
			fmt.Fprintf(text, "has failed %d times in a row, the last time with %s", a.failed, a.last)
		case a.running:
			text.WriteString("is with a worker")
		default:
			text.WriteString("is added again and again, and fails with nothing")
		}
		if len(a.asked) > 0 {
			fmt.Fprintf(text, "\n  its last requests:\n    %s", strings.Join(a.asked, "\n    "))
		}
	}
}
