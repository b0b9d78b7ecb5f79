// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// explained bounds what is explained: the keys of each process, and the lines of a summary.
const explained = 3

// repeated describes the requests and reconciles that events consist of, the most
// frequent of each first.
func repeated(events []Event) string {
	requests, runs := summary{}, summary{}
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

// summary counts what happens, and keeps how it ended the last time.
type summary map[string]*summarized

type summarized struct {
	times int
	last  string
}

func (t summary) take(what, how string) {
	if t[what] == nil {
		t[what] = &summarized{}
	}
	t[what].times++
	t[what].last = how
}

// lines describes the most frequent ones.
func (t summary) lines(ended string) (out []string) {
	names := sortedKeys(t)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(t[b].times, t[a].times) })
	for _, name := range names[:min(len(names), explained)] {
		out = append(out, fmt.Sprintf("  %d times %s, the last time %s %s", t[name].times, name, ended, t[name].last))
	}
	return out
}
