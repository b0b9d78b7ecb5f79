// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Shrunk is the result of removing all unneeded operations from the plan of a failing
// run.
type Shrunk struct {
	// Least is a run of the same seed that violates the same invariant. Without any of
	// its operations the plan does not fail.
	Least *History
	// Good is the nearest correct run of the seed, with one operation less, Without.
	// Nil: there is none, for example because the seed fails without faults.
	Good    *History
	Without Op
	// Runs that it took.
	Runs int

	of int // operations of the original plan
}

const mostRuns = 60

// Shrink repeats the seed of a failing history with ever fewer faults, and returns the
// last run that still violates the first violated invariant of h. Operations with a
// rate are split into single faults. cfg and scenario are those of the run. Shrink
// returns nil if h violates nothing, or cannot be repeated: see Config.Inexact.
func Shrink(t *testing.T, cfg Config, h *History, scenario func(*World)) *Shrunk {
	t.Helper()
	if len(h.Violations) == 0 || h.abandoned || cfg.Inexact != "" || h.Violations[0].Invariant == "misuse" || h.Violations[0].Invariant == "K1" {
		return nil
	}
	s := &shrinking{out: &Shrunk{Least: h, of: len(h.Plan)}, run: func(p Plan) *History {
		cfg.Faults = p
		return Run(t, cfg, h.Seed, scenario)
	}}
	s.fewer()
	s.singled()
	if plan := s.out.Least.Plan; len(plan) == 1 && s.none != nil && len(s.none.Violations) == 0 {
		s.out.Good, s.out.Without = s.none, plan[0]
	}
	return s.out
}

type shrinking struct {
	out  *Shrunk
	none *History // without any fault
	run  func(Plan) *History
}

// fails runs a plan, and keeps it if it fails like the first.
func (s *shrinking) fails(p Plan) (h *History, taken bool) {
	if s.out.Runs >= mostRuns {
		return nil, false
	}
	s.out.Runs++
	h = s.run(p)
	first := s.out.Least.Violations[0].Invariant
	i := slices.IndexFunc(h.Violations, func(v Violation) bool { return v.Invariant == first })
	if i < 0 {
		return h, false
	}
	h.Violations[0], h.Violations[i] = h.Violations[i], h.Violations[0]
	s.out.Least, s.out.Good = h, nil
	return h, true
}

// fewer removes operations, first half of them and then one at a time, until each is
// needed.
func (s *shrinking) fewer() {
	if len(s.out.Least.Plan) == 0 {
		return
	}
	if s.none == nil {
		none, taken := s.fails(Plan{})
		if s.none = none; taken {
			return
		}
	}
	for size := (len(s.out.Least.Plan) + 1) / 2; size > 0; {
		found := false
		for from := 0; from < len(s.out.Least.Plan) && len(s.out.Least.Plan) > 1; {
			plan := slices.Clone(s.out.Least.Plan)
			without := plan[from]
			h, taken := s.fails(slices.Delete(plan, from, min(from+size, len(plan))))
			switch {
			case taken:
				found = true
				continue
			case size == 1 && h != nil && len(h.Violations) == 0:
				s.out.Good, s.out.Without = h, without
			}
			from += size
		}
		if !found || size > 1 {
			size /= 2
		}
	}
}

// singled replaces operations with a rate by single ones at the moments at which they
// happened, and removes those that are not needed.
func (s *shrinking) singled() {
	for i := 0; i < len(s.out.Least.Plan); i++ {
		op := s.out.Least.Plan[i]
		if op.When.Rate == 0 {
			continue
		}
		var each Plan
		for _, e := range s.out.Least.Events {
			if e.What != Fault || e.Name != op.String() || e.Text != op.When.String() {
				continue
			}
			once := op.At(e.At.Round(time.Millisecond))
			once.Kind = cmp.Or(once.Kind, e.Kind)
			each = append(each, once)
		}
		if _, taken := s.fails(slices.Concat(s.out.Least.Plan[:i], each, s.out.Least.Plan[i+1:])); taken {
			s.fewer()
			i = -1 // indices have changed
		}
	}
}

// different describes where a run first differs from a good one of the same seed, in
// writes and refused writes; empty: nowhere.
func (h *History) different(good *History) string {
	here, there := h.steps(), good.steps()
	n := 0
	for n < len(here) && n < len(there) && here[n].what == there[n].what {
		n++
	}
	if n == len(here) && n == len(there) {
		return ""
	}
	var text strings.Builder
	if n > 0 {
		text.WriteString("  both:  " + here[n-1].String() + "\n")
	}
	for _, side := range []struct {
		name  string
		steps []step
	}{{"  good:  ", there}, {"  here:  ", here}} {
		rest := side.steps[n:]
		if len(rest) == 0 {
			text.WriteString(side.name + "nothing more\n")
		}
		for _, s := range rest[:min(len(rest), 3)] {
			text.WriteString(side.name + s.String() + "\n")
		}
	}
	return strings.TrimSuffix(text.String(), "\n")
}

type step struct {
	at    time.Duration
	what  string
	event int
}

func (s step) String() string { return fmt.Sprintf("%12s %s", s.at, s.what) }

// steps returns the writes, and those that were refused or lost their answer, by
// client.
func (h *History) steps() (out []step) {
	for i, e := range h.Events {
		who := cmp.Or(programOf(e.Who), e.Who)
		switch {
		case e.What == Stopping:
			return out
		case h.renews(e) || strings.HasPrefix(e.Kind, "Event"):
		case e.What == Changed:
			out = append(out, step{e.At, fmt.Sprintf("%s %s %s %s", cmp.Or(who, "cluster"), e.Name, e.Kind, e.Key), i})
		case e.What == Answered && writes(e.Name) && (e.Code == 0 || e.Code >= 400):
			how := fmt.Sprintf("is answered with %d", e.Code)
			if e.Code == 0 {
				how = "is not answered"
			}
			out = append(out, step{e.At, fmt.Sprintf("%s asks to %s %s %s, and %s", who, e.Name, e.Kind, e.Key, how), i})
		}
	}
	return out
}

// String returns the shrunk plan in Go syntax, and where the run first differs from a
// correct one.
func (s *Shrunk) String() string {
	var text strings.Builder
	plan := s.Least.Plan
	switch {
	case s.of == 0:
	case len(plan) == 0:
		fmt.Fprintf(&text, "faults: none of %d is needed; the seed fails without any\n", s.of)
	case slices.Contains([]string{"V24", "V26", "V27"}, s.Least.Violations[0].Invariant):
		fmt.Fprintf(&text, "cause: the reconcile, not a fault. Faults decide only when its key is called; with this seed it shows with these %d of %d, as Config.Faults:\n    %s\n", len(plan), s.of, indented(fmt.Sprintf("%#v", plan)))
		return text.String()
	default:
		fmt.Fprintf(&text, "faults: of %d operations %d lead to it with this seed, as Config.Faults:\n    %s\n", s.of, len(plan), indented(fmt.Sprintf("%#v", plan)))
	}
	if s.Good != nil {
		if how := s.Least.different(s.Good); how != "" {
			fmt.Fprintf(&text, "first difference from the run without %#v, in which all is right:\n%s\n", s.Without, how)
		}
	}
	return text.String()
}

func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }
