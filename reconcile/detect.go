// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
	"time"

	"github.com/flyball-dev/flyball/source"
)

// detector finds what is wrong with the runs of one key. It counts runs that may show a Finding, and
// looks at all of them only when there are enough.
type detector struct {
	hot, idle     int
	fought, quiet int // runs that undid what others did, and those since the last
	found         []Finding
}

// look regards a run that has ended. It returns findings that are new. by are those whose changes it
// has undone; runs returns all that are recorded.
func (d *detector) look(rec *record, failing, now time.Time, by rivals, runs func() []PastRun) (news []Finding) {
	wrote, idle := rec.effects()
	hot, undoes := wrote && rec.ofOwnWrites(), wrote && rec.undoes()
	due := d.count(&d.hot, hot, hotRuns, HotLoop)
	due = d.count(&d.idle, idle, idleRuns, NoEffect) || due
	switch {
	case undoes:
		d.fought, d.quiet = d.fought+1, 0
		by.name(d.found)
		due = due || !d.again(Fight) && d.fought >= fights
	case d.fought > 0:
		if d.quiet++; d.quiet == quietRuns {
			d.fought = 0
			d.drop(Fight)
		}
	}
	due = d.countFailure(rec.textOf(rec.err), failing, now) || due
	if !due {
		return nil
	}
	for _, f := range findingsIn(runs(), failing, now) {
		if f.Kind == HotLoop {
			if f.Count = d.hot; f.Count < hotRuns {
				continue
			}
		}
		if !d.has(f.Kind) {
			news = append(news, f)
		}
	}
	by.name(news)
	d.found = append(d.found, news...)
	return news
}

// count counts runs in a row of which one shows something, and reports whether there are enough to
// look. The finding ends with the first run that does not.
func (d *detector) count(n *int, shows bool, enough int, kind FindingKind) (due bool) {
	if !shows {
		*n = 0
		d.drop(kind)
		return false
	}
	*n++
	return !d.again(kind) && *n%enough == 0
}

// again counts one run more of a finding. It reports false if there is none.
func (d *detector) again(kind FindingKind) bool {
	i := slices.IndexFunc(d.found, func(f Finding) bool { return f.Kind == kind })
	if i < 0 {
		return false
	}
	d.found[i].Count++
	return true
}

// countFailure is count for Stuck, which ends with the last failure, or with another error.
func (d *detector) countFailure(err string, failing, now time.Time) (due bool) {
	if failing.IsZero() || slices.ContainsFunc(d.found, func(f Finding) bool { return f.Kind == Stuck && f.Err != err }) {
		d.drop(Stuck)
	}
	return !failing.IsZero() && now.Sub(failing) >= stuckFor && !d.again(Stuck)
}

func (d *detector) has(kind FindingKind) bool {
	return slices.ContainsFunc(d.found, func(f Finding) bool { return f.Kind == kind })
}

func (d *detector) drop(kind FindingKind) {
	if len(d.found) > 0 {
		d.found = slices.DeleteFunc(d.found, func(f Finding) bool { return f.Kind == kind })
	}
}

// effects reports whether the run has changed something, and whether one of its writes has not.
func (r *record) effects() (wrote, idle bool) {
	for i := range r.requests {
		switch knownEffects[r.requests[i].effect] {
		case effectChanged, effectCreated, effectDeleted:
			wrote = true
		case effectNothing:
			idle = true
		}
	}
	return wrote, idle
}

// recognise finds the causes of r, the last of runs, that follow from writes of earlier runs, whose
// events a watch may bring before their answers.
func (r *record) recognise(runs []*record) {
	if !r.caused {
		return
	}
	causes := []*source.Cause{&r.first}
	if r.merged != nil {
		causes = append(causes, &r.merged.last)
	}
	for _, c := range causes {
		for i := len(runs) - 2; i >= 0 && !c.Own && c.Version != 0; i-- {
			c.Own = slices.ContainsFunc(runs[i].requests, func(q request) bool {
				did := knownEffects[q.effect]
				return (did == effectChanged || did == effectCreated) && q.version == c.Version && runs[i].textOf(q.kind) == c.Kind.Kind
			})
		}
	}
}

func (r *record) ofOwnWrites() bool {
	return r.caused && r.first.Own && (r.merged == nil || r.merged.last.Own && !r.merged.foreign)
}
