// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/flyball-dev/flyball/simulate/kit"
)

// Covered is something that plans are about: a write, a kind that the program reads, a restart, or a field.
type Covered struct {
	// What it is, such as "write create Pod", "read Pod", or "field spec.replicas of Cluster web".
	What string `json:"what"`
	// Plans is how many plans are about it, and Ran how many of those were run. A field that is changed has one, without a
	// fault.
	Plans int `json:"plans"`
	Ran   int `json:"ran"`
	// Note says why it was not tried, or what it shows; empty: nothing.
	Note string `json:"note,omitempty"`
}

// subjects returns what a plan is about.
func (p plan) subjects() (all []string) {
	for _, op := range p.Faults {
		write := cmp.Or(op.When.Before, op.When.After)
		switch {
		case op.Kind != "" && (op.Verb == kit.Slow(0, 0).Verb || op.Verb == kit.Coalesce().Verb):
			all = append(all, "read "+op.Kind)
		case write != "" && op.When.User:
			all = append(all, "write "+write+" by the user")
		case write != "":
			all = append(all, "write "+write)
		case p.travels():
			all = append(all, "restart with an old state")
		}
	}
	return all
}

// coverage is what was tried, by what it is about.
type coverage map[string]*Covered

func (c coverage) of(what string) *Covered {
	if c[what] == nil {
		c[what] = &Covered{What: what}
	}
	return c[what]
}

// plans counts plans, and those of them that were run.
func (c coverage) plans(all []plan, ran map[string]bool) {
	for _, p := range all {
		for _, what := range p.subjects() {
			one := c.of(what)
			one.Plans++
			if ran[p.ID()] {
				one.Ran++
			}
		}
	}
}

// fields counts walks that change a field.
func (c coverage) fields(walks []walk, references map[string]*reference) {
	for _, w := range walks {
		if w.field == nil {
			continue
		}
		one := c.of(fmt.Sprintf("field %s of %s %s, %s", w.field.path, w.field.sample.GetKind(), w.field.sample.GetName(), w.field.how))
		one.Plans++
		r := references[w.name]
		switch {
		case r == nil:
			one.Note = "refused by the server, or there was no time"
			continue
		case !slices.ContainsFunc(r.first().changes, func(c change) bool { return c.Step > 0 && c.Who != user && !excused(c.Of.Kind) }):
			one.Note = "has no effect on any object"
		}
		one.Ran++
	}
}

// list returns all of it, in the order of the alphabet.
func (c coverage) list() (all []Covered) {
	for _, one := range c {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b Covered) int { return cmp.Compare(a.What, b.What) })
	return all
}
