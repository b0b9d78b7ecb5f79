// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"maps"
	"slices"
)

// judgeSuite returns what is wrong in a run of a suite. Specs use random names, so what they make is compared by kind.
func (r *reference) judgeSuite(t *trial) (out []verdict) {
	if t.own {
		return nil
	}
	out = r.judgeRules(t)
	if slices.ContainsFunc(out, func(v verdict) bool { return v.class == SpecFails }) {
		return out // a spec that fails asks more often, and cleans up at another time
	}
	attributed := t.attributed
	most, deleted := map[string]int{}, map[string]int{}
	for _, run := range r.runs {
		attributed = attributed && run.attributed
		upTo(most, run.most(ownKind))
		upTo(deleted, run.deleted())
	}
	out = append(out, r.judgeRequests(t, "")...)
	if !attributed {
		return out // the specs' writes may be among the operator's
	}
	now, gone := t.most(ownKind), t.deleted()
	for _, kind := range slices.Sorted(maps.Keys(gone)) {
		if gone[kind] > deleted[kind] {
			out = append(out, verdict{ofDeletion(kind), kind, "", fmt.Sprintf("the operator deletes %d objects of %s, and at most %d without the fault", gone[kind], kind, deleted[kind]), ref{}})
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(now)) {
		if now[kind] > most[kind] {
			out = append(out, verdict{TooMany, kind, "", fmt.Sprintf("there are %d objects of %s by the operator at one time, and at most %d without the fault", now[kind], kind, most[kind]), ref{}})
		}
	}
	return out
}

func upTo(most, now map[string]int) {
	for name, n := range now {
		most[name] = max(most[name], n)
	}
}

// ownKind names objects of the operator by their kind.
func ownKind(of ref, own bool) string {
	if !own || excused(of.Kind) {
		return ""
	}
	return of.Kind
}

// deleted returns how many objects of each kind the operator has deleted.
func (t *trial) deleted() map[string]int {
	deleted := map[string]int{}
	for _, c := range t.changes {
		if c.Verb == "deleted" && c.Who == operator && !excused(c.Of.Kind) {
			deleted[c.Of.Kind]++
		}
	}
	return deleted
}

// leavesOrphans reports whether the only fault has hidden that the user has deleted an object, and the operator has made
// others for it. A suite's server has no garbage collector, so later specs find them.
func (t *trial) leavesOrphans() bool {
	if len(t.plan.Faults) != 1 || len(t.faults) == 0 {
		return false
	}
	op, begins, gone := t.plan.Faults[0], t.faults[0].at, false
	for _, c := range t.changes {
		switch {
		case c.At < begins || c.At > begins+op.For:
		case c.Verb == "deleted" && c.Who == user && c.Of.Kind == op.Kind:
			gone = true
		case gone && c.Verb == "created" && c.Who == operator && c.Of.Kind != op.Kind:
			return true
		}
	}
	return false
}
