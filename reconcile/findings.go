// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/source"
)

// FindingKind is what is wrong with the runs of a key.
type FindingKind string

const (
	// HotLoop: thirty runs in a row were each woken by own writes alone, and wrote again. A finite
	// number of steps that each lead to the next is none.
	HotLoop FindingKind = "hot loop"
	// Fight: three times another client has changed a field back that a run had written, and the next
	// run has written it again.
	Fight FindingKind = "fight"
	// NoEffect: the last eight runs have each sent a write of one object that changed nothing.
	NoEffect FindingKind = "write without effect"
	// Stuck: for an hour each run has failed with one error.
	Stuck FindingKind = "stuck"
	// Starved: it has been ready for ten minutes, while a thousand keys began to run that became ready
	// later, because of their priorities or flows: half of all that ran. Keys that wait in turn are not.
	Starved FindingKind = "starved"
)

var findingKinds = [...]FindingKind{HotLoop, Fight, NoEffect, Stuck, Starved}

// Finding is what the runs of a key show, or those of others that go before it.
type Finding struct {
	Kind FindingKind
	// Key as in the logs.
	Key string
	// Since is when the first of the runs began that show it, or when the key became ready.
	Since time.Time
	// Object that is written, such as "Deployment shop/web"; empty: none.
	Object string
	// Fields that are written again and again. Empty: they are not known.
	Fields []string
	// Count of runs that show it.
	Count int
	// Err is the text of the error of Stuck.
	Err string
	// By is who or what does it. Of Fight it is the other client's field manager with its last change of
	// the field, such as "kubectl-edit (Update at 2026-11-30T04:00:00Z)"; of Starved the key's priority
	// and flow. Empty: not known.
	By string
}

// String returns the finding in one sentence.
func (f Finding) String() string {
	in := f.Object
	if len(f.Fields) > 0 {
		in = strings.Join(f.Fields, ", ") + " of " + f.Object
	}
	switch f.Kind {
	case HotLoop:
		return fmt.Sprintf("the key is woken by its own writes alone, %d times in a row: each run writes %s", f.Count, in)
	case Fight:
		client := "another client"
		if f.By != "" {
			client += ", " + f.By + ","
		}
		return fmt.Sprintf("%s undoes what the key writes, %d times: %s", client, f.Count, in)
	case NoEffect:
		return fmt.Sprintf("each of %d runs has written %s without any effect", f.Count, in)
	case Stuck:
		return fmt.Sprintf("each run fails with one error: %s", f.Err)
	case Starved:
		return fmt.Sprintf("the key waits for a worker, while %d that became ready later went before it (%s)", f.Count, f.By)
	}
	return string(f.Kind)
}

const (
	hotRuns   = 30
	hotShown  = 6 // of them that are recorded, and write one object
	fights    = 3
	idleRuns  = 8
	quietRuns = 8 // after which a fight is over
	stuckFor  = time.Hour
	stuckRuns = 3
)

// findingsIn returns what the runs of a key show, the oldest first, without the key. failing is
// since when they fail; zero: they do not.
func findingsIn(runs []PastRun, failing, now time.Time) (found []Finding) {
	for _, look := range []func([]PastRun) (Finding, bool){hotLoopIn, fightIn, noEffectIn} {
		if f, ok := look(runs); ok {
			found = append(found, f)
		}
	}
	if f, ok := stuckIn(runs, failing, now); ok {
		found = append(found, f)
	}
	return found
}

// hotLoopIn looks for a HotLoop at the end of runs.
func hotLoopIn(runs []PastRun) (Finding, bool) {
	f := Finding{Kind: HotLoop}
	var common map[string][]string // fields by object, of every run
	for _, r := range slices.Backward(runs) {
		changed := changesOf(r)
		if len(changed) == 0 || !ofOwnWrites(r.Causes) {
			break
		}
		if common == nil {
			common = changed
		}
		for object, fields := range common {
			also, again := changed[object]
			if !again {
				delete(common, object)
				continue
			}
			common[object] = slices.DeleteFunc(slices.Clone(fields), func(name string) bool { return !slices.Contains(also, name) })
		}
		if len(common) == 0 {
			break
		}
		f.Count, f.Since = f.Count+1, r.Began
		f.Object, f.Fields = firstOf(common)
	}
	return f, f.Count >= hotShown
}

// changesOf returns the fields that a run has changed, by object.
func changesOf(r PastRun) map[string][]string {
	changed := map[string][]string{}
	for _, q := range r.Requests {
		switch q.Effect {
		case effectChanged, effectCreated, effectDeleted:
			object := objectOf(q)
			changed[object] = append(changed[object], q.Fields...)
		}
	}
	return changed
}

func objectOf(q Request) string {
	what := q.Kind
	if what == "" {
		what = q.Resource.String()
	}
	return what + " " + keyText(q.Key)
}

// firstOf returns the object with the least name, and its fields.
func firstOf(changed map[string][]string) (object string, fields []string) {
	for name := range changed {
		if object == "" || name < object {
			object = name
		}
	}
	return object, changed[object]
}

func ofOwnWrites(c Causes) bool { return c.Count > 0 && c.First.Own && c.Last.Own && !c.foreign }

// fightIn looks for a Fight in runs: a run changes a field, another client does, and the run for that
// changes it again.
func fightIn(runs []PastRun) (Finding, bool) {
	type place struct{ object, field string }
	wrote := map[place]time.Time{} // by runs so far
	times := map[place]Finding{}
	for _, r := range runs {
		undone := undoneFields(r.Causes)
		for _, q := range r.Requests {
			if q.Effect != effectChanged {
				continue
			}
			for _, field := range q.Fields {
				at := place{objectOf(q), field}
				first, before := wrote[at]
				if before && slices.Contains(undone, at.object+" "+field) {
					f := times[at]
					times[at] = Finding{Kind: Fight, Object: at.object, Fields: []string{field}, Count: f.Count + 1, Since: first}
				}
				if !before {
					wrote[at] = r.Began
				}
			}
		}
	}
	var most Finding
	for _, f := range times {
		if f.Count > most.Count || f.Count == most.Count && f.Object+f.Fields[0] < most.Object+most.Fields[0] {
			most = f
		}
	}
	return most, most.Count >= fights
}

// undoneFields returns what others have changed, as "Deployment shop/web spec.replicas".
func undoneFields(c Causes) (out []string) {
	causes := []source.Cause{c.First}
	if c.Count > 1 {
		causes = append(causes, c.Last)
	}
	for _, cause := range causes {
		if !isForeign(&cause) {
			continue
		}
		fields, _ := cause.Changed()
		for _, field := range fields {
			out = append(out, cause.Kind.Kind+" "+keyText(cause.Object)+" "+field)
		}
	}
	return out
}

// isForeign reports whether another client has changed an object.
func isForeign(c *source.Cause) bool { return c.Type == kube.Updated && !c.Own && !c.Resync }

// noEffectIn looks for NoEffect at the end of runs.
func noEffectIn(runs []PastRun) (Finding, bool) {
	f := Finding{Kind: NoEffect}
	var common []string
	for i, r := range slices.Backward(runs) {
		var idle []string
		for _, q := range r.Requests {
			if q.Effect == effectNothing {
				idle = append(idle, objectOf(q))
			}
		}
		if i == len(runs)-1 {
			common = idle
		}
		common = slices.DeleteFunc(common, func(object string) bool { return !slices.Contains(idle, object) })
		if len(common) == 0 {
			break
		}
		f.Count, f.Since, f.Object = f.Count+1, r.Began, common[0]
	}
	return f, f.Count >= idleRuns
}

// stuckIn looks for Stuck at the end of runs.
func stuckIn(runs []PastRun, failing, now time.Time) (Finding, bool) {
	if failing.IsZero() || now.Sub(failing) < stuckFor || len(runs) == 0 {
		return Finding{}, false
	}
	f := Finding{Kind: Stuck, Since: failing, Err: runs[len(runs)-1].Err}
	for _, r := range slices.Backward(runs) {
		if r.Err != f.Err {
			break
		}
		f.Count++
	}
	return f, f.Count >= min(stuckRuns, len(runs))
}
