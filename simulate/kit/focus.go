// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// focus is where the page of a history opens, and what it says first.
type focus struct {
	// Event at which it opens: the first difference from a correct run, or the first
	// violation; -1: there is none.
	Event int `json:"event"`
	// Keys that the failure is about; their lanes are on top.
	Keys []string `json:"keys"`
	// Least means that it is the run with the fewest faults.
	Least bool `json:"least,omitempty"`
	// Story of the keys' reconciles, in words.
	Story []sentence `json:"story"`
}

type sentence struct {
	Event int    `json:"event"`
	Text  string `json:"text"`
}

// focusOn returns where the page opens. good is a correct run of the seed; nil: none.
func (h *History) focusOn(good *History) focus {
	f := focus{Event: -1, Least: good != nil, Keys: []string{}, Story: []sentence{}}
	keep := func(key string) {
		if _, name, ok := strings.Cut(key, " "); ok {
			key = name
		}
		if key != "" && !strings.HasSuffix(key, "/") && !slices.Contains(f.Keys, key) {
			f.Keys = append(f.Keys, key)
		}
	}
	if good != nil {
		if i := h.parts(good); i >= 0 {
			f.Event = i
			keep(h.Events[i].Run)
			keep(h.Events[i].Key)
			keep(h.runOf(h.Events[i].Request))
		}
	}
	for _, v := range h.Violations {
		if v.Event < 0 || v.Event >= len(h.Events) {
			continue
		}
		if f.Event < 0 {
			f.Event = v.Event
		}
		switch h.Events[v.Event].What {
		case Begun, Ended, Enqueued, Called, Changed, Made, Unfinished, Asked, Erased:
			keep(h.Events[v.Event].Key)
		}
		break
	}
	f.Story = h.story(f.Keys, f.Event)
	return f
}

// parts returns the event of the first step that a good run does not have; -1: none.
func (h *History) parts(good *History) int {
	here, there := h.steps(), good.steps()
	for n, s := range here {
		if n == len(there) || s.what != there[n].what {
			return s.event
		}
	}
	return -1
}

func (h *History) runOf(request int) string {
	for _, e := range h.Events {
		if request > 0 && e.What == Asked && e.Request == request {
			return e.Run
		}
	}
	return ""
}

// reconcilesAround is how many reconciles the story has before the event at which the page
// opens, and after it.
const reconcilesAround = 3

// story tells of the reconciles of the keys next to an event: what was true and what they
// read, what they wrote, and how they ended.
func (h *History) story(keys []string, at int) []sentence {
	type reconciled struct {
		at   int
		text []string
	}
	m, made := newMirror(), newEffects()
	running, reconciles, nextTo := map[line]*reconciled{}, []*reconciled{}, 0
	for i, e := range h.Events {
		m.take(e, i)
		l := lineOf(e)
		by, _ := made.take(e)
		if e.What == Answered {
			by = made.runs[e.Request]
		}
		switch {
		case e.What == Begun && slices.Contains(keys, e.Key):
			running[l] = &reconciled{at: i, text: []string{fmt.Sprintf("%s %s reconciles %s", e.At, l, m.sight(e.Who, keys))}}
			reconciles = append(reconciles, running[l])
			if i <= at {
				nextTo = len(reconciles)
			}
		case e.What == Ended && running[l] != nil:
			running[l].text = append(running[l].text, "it returns "+strings.TrimSuffix(e.Name+": "+e.Text, ": "))
			delete(running, l)
		case running[by] == nil:
		case e.What == Changed:
			running[by].text = append(running[by].text, strings.TrimSuffix(fmt.Sprintf("it %s %s %s: %s", e.Name, e.Kind, e.Key, e.Text), ": "))
		case e.What == Answered && (e.Code == 0 || e.Code >= 400):
			running[by].text = append(running[by].text, fmt.Sprintf("its %s of %s %s is answered with %d", e.Name, e.Kind, e.Key, e.Code))
		case e.What == Asked && !writes(e.Name):
			running[by].text = append(running[by].text, fmt.Sprintf("it reads %s %s from the server", e.Kind, e.Key))
		}
	}
	out := []sentence{}
	for _, r := range reconciles[max(nextTo-reconcilesAround, 0):min(nextTo+reconcilesAround, len(reconciles))] {
		out = append(out, sentence{r.at, strings.Join(r.text, "; ")})
	}
	return out
}

// sight says what the caches of a process have of the keys, and where the server differs.
func (m mirror) sight(who string, keys []string) string {
	var seen []string
	for _, s := range sortedStores(m.stores) {
		if s.who != who {
			continue
		}
		for _, key := range keys {
			has, is := m.stores[s].objects[key], m.server[object{s.kind, key}]
			switch {
			case has == is && has.version == 0:
			case has == is:
				seen = append(seen, fmt.Sprintf("%s %s at version %d", s.kind, key, has.version))
			default:
				seen = append(seen, fmt.Sprintf("a stale %s %s: %s, the server has %s", s.kind, key, versionText(has), versionText(is)))
			}
		}
	}
	return "and sees " + cmp.Or(strings.Join(seen, ", "), "no such object")
}

func versionText(s state) string {
	if s.version == 0 {
		return "none"
	}
	return fmt.Sprintf("version %d", s.version)
}
