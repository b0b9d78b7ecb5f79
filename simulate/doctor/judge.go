// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Class is what is wrong.
type Class string

const (
	// Panicked: a reconcile or the process has panicked.
	Panicked Class = "panic"
	// LosesState: an object that holds state is deleted although it is wanted.
	LosesState Class = "loses state"
	// MadeAnew: another object is deleted although it is wanted, and made again.
	MadeAnew Class = "made anew"
	// TooMany: there are more objects or replicas than were ever wanted.
	TooMany Class = "too many"
	// SpecFails: a spec of the program's own suite fails.
	SpecFails Class = "spec fails"
	// OtherEnd: the objects at the end are not those of the same walk without faults.
	OtherEnd Class = "other end state"
	// NotUndone: a change that is undone leaves something behind.
	NotUndone Class = "not undone"
	// LeftBehind: something is left when the samples are deleted.
	LeftBehind Class = "left behind"
	// PathDependent: the same desired state leads to other objects, depending on what was before.
	PathDependent Class = "depends on the path"
	// Restless: the program does not come to rest.
	Restless Class = "no rest"
	// Violates: an invariant of package kit is violated.
	Violates Class = "violates an invariant"
)

// severity orders classes.
func (c Class) severity() int {
	return slices.Index([]Class{Panicked, LosesState, TooMany, SpecFails, OtherEnd, NotUndone, LeftBehind, PathDependent, Restless, MadeAnew, Violates}, c)
}

// verdict is one thing that is wrong in a run.
type verdict struct {
	class Class
	what  string // the object or the rule, as verdicts are compared by
	parts string // the fields
	text  string
	of    ref // zero: no object
}

// key identifies a verdict among those of other runs.
func (v verdict) key() string { return string(v.class) + " " + v.what + " " + v.parts }

var digits = regexp.MustCompile(`\d+`)

// alike reports whether another run shows the same. It may do so on another one of several objects with numbers.
func (v verdict) alike(other verdict) bool {
	return v.class == other.class && v.parts == other.parts && digits.ReplaceAllString(v.what, "0") == digits.ReplaceAllString(other.what, "0")
}

// reference is a walk without faults.
type reference struct {
	walk  walk
	runs  []*trial // the first one is as those with faults: its plans' writes have the same numbers
	view  *view
	plans []plan // for the last step
}

func (r *reference) first() *trial { return r.runs[0] }

// judge returns what is wrong in a run of the walk.
func (r *reference) judge(t *trial) (out []verdict) {
	if !t.aimed() || t.refused != "" || t.isBlind() {
		return nil
	}
	if r.walk.suite {
		return r.judgeSuite(t)
	}
	out = append(out, r.judgeRules(t)...)
	if r.walk.gone == nil { // else nothing is wanted in the end, and what is made for it is garbage
		deleted := r.judgeDeletions(t)
		out = append(append(out, deleted...), r.judgeRepetitions(t, deleted)...)
		out = append(out, r.judgeCounts(t)...)
	}
	if t.last != nil && r.first().last != nil && !slices.ContainsFunc(out, func(v verdict) bool { return v.class == Restless }) {
		for _, u := range r.view.unlike(r.first().last, t.last) {
			if r.walk.gone != nil && u.extra < 0 { // the program may not even have seen the samples
				continue
			}
			out = append(out, verdict{OtherEnd, u.name, fieldsOf(u), "at the end " + u.String(), u.of})
		}
	}
	if !slices.ContainsFunc(out, func(v verdict) bool { return v.class == Restless }) {
		hot := r.judgeRequests(t, fmt.Sprintf(" within %s", window))
		if len(hot) == 0 {
			hot = r.judgePolls(t)
		}
		out = append(out, hot...)
	}
	return out
}

// judgePolls returns what the program asks for again and again although nothing changes, after a fault also more often
// than without it, where few may not have been counted. It finds loops that the rate limits of clients slow down.
func (r *reference) judgePolls(t *trial) (out []verdict) {
	more, than, most := manyPolls, "", map[string]int{}
	for _, run := range r.runs {
		upTo(most, run.polls)
	}
	for _, sort := range slices.Sorted(maps.Keys(t.polls)) {
		if len(t.plan.Faults) > 0 {
			more, than = max(manyPolls, 2*most[sort]+morePolls), fmt.Sprintf(", and at most %d without the fault", most[sort])
		}
		if n := t.polls[sort]; n > more {
			out = append(out, verdict{Restless, sort, "polls", fmt.Sprintf("nothing changes, and there are %d requests to %s for the same within %s%s", n, sort, window, than), ref{}})
		}
	}
	return out
}

// judgeRequests returns the sorts of requests of which there are many more than without faults, within some time.
func (r *reference) judgeRequests(t *trial, within string) (out []verdict) {
	most := map[string]int{}
	for _, run := range r.runs {
		upTo(most, run.requests)
	}
	for _, sort := range slices.Sorted(maps.Keys(t.requests)) {
		if n := t.requests[sort]; n > busy*most[sort]+manyRequests {
			out = append(out, verdict{Restless, sort, "", fmt.Sprintf("there are %d requests to %s%s, and at most %d without the fault", n, sort, within, most[sort]), ref{}})
		}
	}
	return out
}

// fieldsOf names the fields in which an object differs, or that it is missing or too much.
func fieldsOf(u unlike) string {
	switch {
	case u.extra > 0:
		return "extra"
	case u.extra < 0:
		return "missing"
	}
	names := map[string]bool{}
	for _, d := range u.fields {
		names[anywhere(d.Path)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), ",")
}

// judgeRules returns the invariants that the run violates and those without faults do not.
func (r *reference) judgeRules(t *trial) (out []verdict) {
	known := map[string]bool{}
	for _, run := range r.runs {
		if run == t {
			continue
		}
		for _, w := range run.allWrongs() {
			known[w.rule] = true
		}
	}
	for _, w := range t.allWrongs() {
		// V14 is about informers, and a program may list by itself too.
		if known[w.rule] || w.rule == "V17" || w.rule == "scenario" || w.rule == "V14" {
			continue
		}
		known[w.rule] = true
		class := Violates
		switch {
		case w.rule == "panic":
			class = Panicked
		case w.rule == neverRests:
			class = Restless
			w.text += t.busiest()
		case w.rule == "V7":
			class = Restless
		case strings.HasPrefix(w.rule, specRule):
			class = SpecFails
		}
		out = append(out, verdict{class, w.rule, "", w.text, ref{}})
	}
	return out
}

// ofDeletion returns the class of a deletion: some kinds hold what cannot be made again.
func ofDeletion(kind string) Class {
	switch kind {
	case "PersistentVolumeClaim", "Secret", "StatefulSet.apps", "Job.batch", "Namespace", "Pod":
		return LosesState
	}
	return MadeAnew
}

// judgeDeletions returns objects that the program has deleted more often than without faults.
func (r *reference) judgeDeletions(t *trial) (out []verdict) {
	for _, e := range r.excesses(t, isDeletion) {
		out = append(out, verdict{ofDeletion(e.last.Of.Kind), e.name, "", fmt.Sprintf("%s is deleted %s, and %s without the fault%s", e.name, times(e.here), times(e.most), at(e.last.Line)), e.last.Of})
	}
	return out
}

// judgeRepetitions returns Jobs of the program that have run more often than without faults, and not because it has deleted
// them: their work is done again. One that is collected before anything acts on it, because its owner is gone, has not run.
func (r *reference) judgeRepetitions(t *trial, deleted []verdict) (out []verdict) {
	made := map[string]string{} // the lines by the UIDs of Jobs
	runs := func(c change) bool {
		if c.Of.Kind != "Job.batch" {
			return false
		}
		if c.Verb == "created" && c.Who == operator {
			made[c.UID] = c.Line
		}
		_, ours := made[c.UID]
		return ours && c.Verb == "updated" && c.Who == cluster && !t.touched(c)
	}
	for _, e := range r.excesses(t, runs) {
		if !slices.ContainsFunc(deleted, func(v verdict) bool { return v.what == e.name }) {
			text := fmt.Sprintf("%s is run %s, and %s without the fault%s", e.name, times(e.here), times(e.most), at(made[e.last.UID]))
			out = append(out, verdict{TooMany, e.name, "runs", text, e.last.Of})
		}
	}
	return out
}

// touched reports whether a fault has made a change, which marks the object.
func (t *trial) touched(c change) bool {
	return strings.HasPrefix(c.Fields, "metadata.annotations") || slices.ContainsFunc(t.faults, func(fault happening) bool { return fault.at == c.At })
}

// excess is that something has happened to objects of one name more often than without faults.
type excess struct {
	name       string
	here, most int
	last       change
}

// excesses returns the names to whose objects it has happened more often than without faults, once for each object.
func (r *reference) excesses(t *trial, it func(change) bool) (out []excess) {
	count := func(run *trial) (counts map[string]int, last map[string]change) {
		counts, last = map[string]int{}, map[string]change{}
		known := map[string]bool{}
		for _, c := range run.changes {
			if name := r.view.name(c.Of); name != "" && it(c) && !strings.HasSuffix(name, "*") {
				last[name] = c
				if !known[c.UID] {
					counts[name]++
				}
				known[c.UID] = true
			}
		}
		return counts, last
	}
	most := map[string]int{}
	for _, run := range r.runs {
		counts, _ := count(run)
		upTo(most, counts)
	}
	here, last := count(t)
	for _, name := range slices.Sorted(maps.Keys(here)) {
		if here[name] > most[name] {
			out = append(out, excess{name, here[name], most[name], last[name]})
		}
	}
	return out
}

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprint(n, " times")
}

// judgeCounts returns objects of which there were more at one time than ever without faults.
func (r *reference) judgeCounts(t *trial) (out []verdict) {
	named := func(of ref, _ bool) string { return r.view.name(of) }
	most := map[string]int{}
	for _, run := range r.runs {
		upTo(most, run.most(named))
	}
	here := t.most(named)
	for _, name := range slices.Sorted(maps.Keys(here)) {
		if t.plan.Pattern == LostAnswer { // nobody can know the name that was generated; what is left at the end is another question
			break
		}
		if strings.HasSuffix(name, "*") && here[name] > most[name] && most[name] > 0 && !r.view.masks[name] {
			out = append(out, verdict{TooMany, name, "", fmt.Sprintf("there are %d of %s at one time, and at most %d without the fault", here[name], name, most[name]), ref{}})
		}
	}
	for _, of := range slices.SortedFunc(maps.Keys(t.peaks), func(a, b ref) int { return cmp.Compare(a.String(), b.String()) }) {
		wanted := int64(0)
		for _, run := range r.runs {
			wanted = max(wanted, run.peaks[of])
		}
		if wanted > 0 && t.peaks[of] > wanted {
			out = append(out, verdict{TooMany, of.String(), "spec.replicas", fmt.Sprintf("%s has %d replicas for a time, and at most %d were ever wanted", of, t.peaks[of], wanted), of})
		}
	}
	return out
}

// judgeDeclarations returns what is wrong in the reference itself: what a change leaves behind when it is
// undone, and what depends on how a state was reached. fresh is the walk that creates that state; nil: there
// is none.
func (r *reference) judgeDeclarations(fresh *reference) (out []verdict) {
	ends := r.first().ends
	if !r.isComplete() {
		return nil
	}
	if r.walk.gone != nil {
		return r.judgeLeftovers()
	}
	mentioned := func(class Class, found []unlike, text string) {
		for _, u := range found {
			// Times that are on one side alone tell how the state was reached.
			u.fields = slices.DeleteFunc(u.fields, func(d difference) bool { return d.Want+d.Got == aTime })
			if u.extra == 0 && len(u.fields) == 0 {
				continue
			}
			out = append(out, verdict{class, u.name, fieldsOf(u), text + " " + u.String(), u.of})
		}
	}
	if r.walk.returns && !rejected(ends[len(ends)-1]) {
		mentioned(NotUndone, r.view.unlike(ends[0], ends[len(ends)-1]), fmt.Sprintf("after '%s' the state is not that after '%s':", r.walk.steps[len(ends)-1].text, r.walk.steps[0].text))
	}
	if fresh == nil || r.walk.field != nil && r.walk.field.pauses() || len(fresh.first().ends) == 0 || fresh.first().ends[0] == nil || rejected(ends[1]) {
		return out
	}
	both := learn(append(slices.Clone(r.runs), fresh.runs...))
	both.masks = maps.Clone(r.view.masks)
	maps.Copy(both.masks, fresh.view.masks)
	mentioned(PathDependent, both.unlike(fresh.first().ends[0], ends[1]), fmt.Sprintf("after '%s' the state is not that after '%s':", r.walk.steps[1].text, fresh.walk.steps[0].text))
	return out
}

// judgeLeftovers returns the samples that are not gone, and what the program has made for one and nothing deletes, in all
// runs. What keeps data may be left on purpose.
func (r *reference) judgeLeftovers() (out []verdict) {
	for i, run := range r.runs {
		left := map[string]verdict{}
		for _, v := range r.leftIn(run) {
			left[v.what] = v
		}
		if i == 0 {
			out = slices.Collect(maps.Values(left))
		}
		out = slices.DeleteFunc(out, func(v verdict) bool { return left[v.what].what == "" })
	}
	return slices.SortedFunc(slices.Values(out), func(a, b verdict) int { return cmp.Compare(a.what, b.what) })
}

// leftIn returns what one run leaves behind.
func (r *reference) leftIn(t *trial) (out []verdict) {
	if len(t.ends) < len(r.walk.steps) {
		return nil
	}
	end, made := t.ends[len(r.walk.steps)-1], map[string]bool{}
	for _, c := range t.changes {
		made[c.UID] = made[c.UID] || c.Verb == "created" && c.Who == operator && c.At >= t.begun()
	}
	for _, of := range sortedRefs(end) {
		is := &unstructured.Unstructured{Object: end[of]}
		sample := slices.ContainsFunc(r.walk.gone, func(s *unstructured.Unstructured) bool { return of == refTo(s) })
		switch {
		case sample && is.GetDeletionTimestamp() != nil:
			out = append(out, verdict{LeftBehind, of.String(), "", fmt.Sprintf("%s is deleted by the user, and never gone: its finalizers are %q", of, is.GetFinalizers()), of})
		case !sample && made[string(is.GetUID())] && len(is.GetOwnerReferences()) == 0 && !keepsData(of.Kind) && r.isFor(is):
			text := fmt.Sprintf("%s is left after '%s', and has no owner", of, r.walk.steps[len(r.walk.steps)-1].text)
			out = append(out, verdict{LeftBehind, r.view.name(of), "", text, of})
		}
	}
	return out
}

// isFor reports whether the name or a label of an object says that it is for one of the samples that are deleted.
func (r *reference) isFor(obj *unstructured.Unstructured) bool {
	return slices.ContainsFunc(r.walk.gone, func(sample *unstructured.Unstructured) bool {
		name := sample.GetName()
		return obj.GetName() == name || strings.HasPrefix(obj.GetName(), name+"-") || strings.HasSuffix(obj.GetName(), "-"+name) ||
			slices.Contains(slices.Collect(maps.Values(obj.GetLabels())), name)
	})
}

// keepsData reports whether objects of a kind may be left when nothing needs them any more.
func keepsData(kind string) bool {
	return kind == "PersistentVolumeClaim" || kind == "PersistentVolume" || kind == "Secret" || kind == "Namespace"
}

// isComplete reports whether there is a state after each step of the first run, and the user's object is still there after its change:
// a change may ask the program to delete it, such as of a time to live, and cannot be undone then.
func (r *reference) isComplete() bool {
	ends := r.first().ends
	if len(ends) != len(r.walk.steps) || slices.ContainsFunc(ends, func(o objects) bool { return o == nil }) {
		return false
	}
	return r.walk.field == nil || !isGone(r.walk.field.sample, ends[1])
}

// isGone reports whether an object is not there, or is being deleted.
func isGone(sample *unstructured.Unstructured, all objects) bool {
	tree := all[refTo(sample)]
	ends, _, _ := unstructured.NestedString(tree, "metadata", "deletionTimestamp")
	return tree == nil || ends != ""
}

// rejected reports whether a status says that the program does not accept what is wanted.
func rejected(all objects) bool {
	for _, tree := range all {
		status, _ := tree["status"].(map[string]any)
		conditions, _ := status["conditions"].([]any)
		for _, c := range conditions {
			condition, _ := c.(map[string]any)
			kind, _ := condition["type"].(string)
			is, _ := condition["status"].(string)
			for _, word := range []string{"Error", "Fail", "Degraded", "Invalid", "Stalled", "Reject"} {
				if strings.Contains(kind, word) && is == "True" {
					return true
				}
			}
			for _, word := range []string{"Valid", "Accepted", "Reconcile", "Success"} {
				if strings.Contains(kind, word) && is == "False" {
					return true
				}
			}
		}
	}
	return false
}

// A kind of request is a hot loop with so many more than without faults. At rest it is one with so many for the same, and
// after a fault also with so many more than twice those without it: an exponential backoff from 5 ms has twelve tries
// within window.
const (
	manyRequests = 1000
	manyPolls    = 40
	morePolls    = 20
)
