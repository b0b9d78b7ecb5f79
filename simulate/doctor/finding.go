// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Finding is one mistake of a program, with the simplest plan that shows it.
type Finding struct {
	// ID is the same in each run of the same version of the program. A file of known findings has it.
	ID string `json:"id"`
	// Class is what is wrong, and Pattern what leads to it.
	Class   Class   `json:"class"`
	Pattern Pattern `json:"pattern"`
	// Patterns are those of all plans that show it.
	Patterns []Pattern `json:"patterns"`
	// Text says what is wrong in one sentence.
	Text string `json:"text"`
	// Also is what else is wrong in the same run, and in the same way.
	Also []string `json:"also,omitempty"`
	// Kind and Name of the object; empty: it is about no single object.
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	// Line is the line of the program that made the decisive write, such as "web/reconciler.go:81 (web.(*R).Reconcile)".
	// Empty: it is not known.
	Line string `json:"line,omitempty"`
	// Plan describes the walk and the faults. PlanID selects the plan for a repetition.
	Plan   string `json:"plan"`
	PlanID string `json:"planID"`
	// Story is what happened, in the order of time.
	Story []string `json:"story"`
	// Plans is how many of the plans that were tried show it.
	Plans int `json:"plans"`
	// After is how many plans had been run when it was found.
	After int `json:"after"`
	// Repeated is how many of Tries repetitions show it too. Tries is 0 if the search ended before.
	Repeated int `json:"repeated"`
	Tries    int `json:"tries"`
	// Advice is how such a mistake is usually mended.
	Advice string `json:"advice"`
	// Remedies are those of Operator.Remedies with which the finding is gone, and Useless those with which it
	// is not.
	Remedies []string `json:"remedies,omitempty"`
	Useless  []string `json:"useless,omitempty"`
	// Replay is the command that runs the plan alone.
	Replay string `json:"replay"`
	// Files have the complete history.
	Files []string `json:"files,omitempty"`
	// Known: the file of known findings names it.
	Known bool `json:"known,omitempty"`

	verdict verdict
	plan    plan
	seed    uint64
	shown   *trial
}

// idOf returns an ID that does not depend on the plan.
func idOf(v verdict) string {
	sum := sha256.Sum256([]byte(v.key()))
	return hex.EncodeToString(sum[:4])
}

// collection are the findings so far.
type collection struct {
	all  map[string]*Finding // by ID
	part map[string]*Finding // also by the IDs of what is wrong in the same run
}

// add adds what is wrong in a run, of one class. It returns the finding if it is new.
func (c *collection) add(all []verdict, t *trial, pattern Pattern) *Finding {
	if c.all == nil {
		c.all, c.part = map[string]*Finding{}, map[string]*Finding{}
	}
	for _, v := range all {
		if known := c.part[idOf(v)]; known != nil {
			known.Plans++
			if !slices.Contains(known.Patterns, pattern) {
				known.Patterns = append(known.Patterns, pattern)
			}
			return nil
		}
	}
	all = slices.SortedStableFunc(slices.Values(all), func(a, b verdict) int { return cmp.Compare(t.distance(a.of), t.distance(b.of)) })
	v := all[0]
	f := &Finding{
		ID: idOf(v), Class: v.class, Pattern: pattern, Patterns: []Pattern{pattern}, Text: v.text, Kind: v.of.Kind, Name: v.of.Key,
		Plan: t.plan.String(), PlanID: t.plan.ID(), Plans: 1, verdict: v, plan: t.plan, seed: t.seed, shown: t,
		Advice: advice(v.class, pattern),
	}
	f.Line, f.Story = lineOf(v, t), storyOf(v, t)
	c.all[f.ID] = f
	for i, v := range all {
		c.part[idOf(v)] = f
		if i > 0 {
			f.Also = append(f.Also, v.text)
		}
	}
	return f
}

// distance orders objects: those that the program writes itself come first, and those of the user last.
func (t *trial) distance(of ref) int {
	far := 1
	for _, a := range t.asks {
		switch {
		case a.Of.Kind != of.Kind:
		case a.Who == user:
			return 2
		case a.Who == operator && !strings.Contains(a.Write, "/"):
			far = 0
		}
	}
	return far
}

// sorted returns the findings, the most severe first.
func (c *collection) sorted() []*Finding {
	var all []*Finding
	for _, f := range c.all {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(a.Class.severity(), b.Class.severity()), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// lineOf returns the line of the program's last write of the object, or the first write after the fault, or the last
// one before it.
func lineOf(v verdict, t *trial) (line string) {
	for _, c := range t.changes {
		if c.Who == operator && c.Line != "" && (c.Of == v.of || v.of == ref{}) {
			line = c.Line
		}
	}
	if line != "" || len(t.faults) == 0 {
		return line
	}
	for _, c := range t.changes {
		switch {
		case c.Who != operator || c.Line == "":
		case c.At >= t.faults[0].at:
			return c.Line
		default:
			line = c.Line
		}
	}
	return line
}

const mostStory = 40

// storyOf tells what happened around the fault, in the order of time.
func storyOf(v verdict, t *trial) (lines []string) {
	all := entriesOf(v, t)
	if len(all) > mostStory {
		all = slices.DeleteFunc(all, func(e entry) bool { return !e.near })
	}
	if cut := len(all) - mostStory; cut > 0 {
		from := 0
		if len(t.faults) > 0 {
			at := t.faults[0].at
			from = max(slices.IndexFunc(all, func(e entry) bool { return e.at >= at })-mostStory/3, 0)
		}
		all = all[min(from, cut):]
		all = all[:min(len(all), mostStory)]
	}
	for _, e := range all {
		lines = append(lines, fmt.Sprintf("%10s  %s", e.at.Round(time.Millisecond), e.text))
	}
	return append(lines, fmt.Sprintf("%10s  %s", "end", v.text))
}

// entry is a line of a story.
type entry struct {
	at   time.Duration
	text string
	near bool // it is about the object, or no object
}

// entriesOf returns all lines of a story, in the order of time.
func entriesOf(v verdict, t *trial) (all []entry) {
	begun := t.begun()
	for _, h := range t.faults {
		all = append(all, entry{h.at, "FAULT: " + h.text, true})
	}
	for _, h := range t.lives {
		all = append(all, entry{h.at, h.text, true})
	}
	for _, c := range t.changes {
		if !excused(c.Of.Kind) && (c.Step > 0 || c.Who != cluster || c.At >= begun) {
			all = append(all, entry{c.At, c.String(), c.Who != cluster || c.Of == v.of})
		}
	}
	for _, a := range t.asks {
		if !a.done() && a.Who == operator && !excused(a.Of.Kind) {
			answer := fmt.Sprint("the server answers ", a.Code)
			if a.Code == 0 {
				answer = "there is no answer"
			}
			all = append(all, entry{a.At, fmt.Sprintf("operator asks to %s %s, and %s%s", a.Write, a.Of.Key, answer, at(a.Line)), true})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	return all
}

// advice returns how such a mistake is usually mended.
func advice(class Class, pattern Pattern) string {
	if class == Panicked {
		return "Check what may be nil or missing at this line: a field that is absent, an object that is not in the cache yet, a map that was never made."
	}
	if class == LeftBehind {
		return "Give what is made an owner reference, so that the garbage collector deletes it, or delete it before the finalizer is removed; remove the finalizer even if there is nothing left to delete."
	}
	if class == Restless && pattern == Declarative {
		return "Watch what changes, and do nothing if it is as wanted. Wait longer before each further try: a program that asks without end slows down the API server for all others."
	}
	switch pattern {
	case Intermediate:
		return "A process may end after any write. Derive what is left to do from the objects, and not from what this process remembers or from \"I have created it, so the next step is done\". " +
			"Write what must not be made twice before making it, under a name that follows from its owner."
	case Stale:
		return "The cache may be older than the program's own writes, and than what it has seen before a restart. Give objects names that follow from their owner, so that a second create fails; " +
			"delete with preconditions (UID, resourceVersion); compare UIDs of owners, and not names alone; or read through Flyball, whose caches show own writes and never go back."
	case Unobserved:
		return "A program sees states, not every change. Do not wait for an event of one particular state, and do not count events: compare what is with what is to be."
	case LostAnswer:
		return "A write may have been carried out although it has failed. Make it safe to repeat: a fixed name, server-side apply, and AlreadyExists as success after checking the owner."
	case Conflict:
		return "A write may be refused or answered with 409. Return the error so that the reconcile runs again, read anew before writing again, and keep no half-made result in memory."
	case Declarative:
		return "The objects must follow from the present spec alone. Use server-side apply, so that a field that is no longer wanted is removed, and delete what no spec wants any more."
	}
	return ""
}

// text describes a finding for a terminal.
func (f *Finding) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s [%s] %s\n", strings.ToUpper(string(f.Class)), f.ID, f.Text)
	for _, also := range f.Also {
		fmt.Fprintf(&b, "  also:    %s\n", also)
	}
	fmt.Fprintf(&b, "  pattern: %s\n  plan:    %s\n", f.Pattern, f.Plan)
	if f.Line != "" {
		fmt.Fprintf(&b, "  line:    %s\n", f.Line)
	}
	fmt.Fprintf(&b, "  story:\n")
	for _, line := range f.Story {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	if f.Advice != "" {
		fmt.Fprintf(&b, "  advice:  %s\n", f.Advice)
	}
	if len(f.Remedies) > 0 {
		fmt.Fprintf(&b, "  gone with: %s\n", strings.Join(f.Remedies, ", "))
	}
	if len(f.Useless) > 0 {
		fmt.Fprintf(&b, "  still there with: %s\n", strings.Join(f.Useless, ", "))
	}
	fmt.Fprintf(&b, "  shown by %d plans; %s\n  replay:  %s\n", f.Plans, f.repeated(), f.Replay)
	for _, file := range f.Files {
		fmt.Fprintf(&b, "  history: %s\n", file)
	}
	return b.String()
}

// repeated says how often repetitions show it too.
func (f *Finding) repeated() string {
	if f.Tries == 0 {
		return "it was not repeated"
	}
	return fmt.Sprintf("%d of %d repetitions show it again", f.Repeated, f.Tries)
}
