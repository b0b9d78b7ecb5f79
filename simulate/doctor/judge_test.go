// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/kit"
)

// A Job is work: creating it once more than without faults does the work again, although there is never more than one.
func TestReference_AJobThatIsCreatedAgainIsRunAgain(t *testing.T) {
	of := ref{"Job.batch", "default/load"}
	made := func(who, uid string) change { return change{Who: who, Verb: "created", Of: of, UID: uid} }
	ran := func(uid string) change { return change{Who: cluster, Verb: "updated", Of: of, UID: uid} }
	gone := func(who, uid string) change { return change{Who: who, Verb: "deleted", Of: of, UID: uid} }
	for name, c := range map[string]struct {
		changes []change
		want    []Class
	}{
		"once":                     {[]change{made(operator, "1"), ran("1"), gone(cluster, "1")}, nil},
		"again":                    {[]change{made(operator, "1"), ran("1"), gone(cluster, "1"), made(operator, "2"), ran("2"), ran("2")}, []Class{TooMany}},
		"collected at once":        {[]change{made(operator, "1"), gone(cluster, "1"), made(operator, "2"), ran("2")}, nil},
		"again by another":         {[]change{made(operator, "1"), ran("1"), gone(cluster, "1"), made(cluster, "2"), ran("2")}, nil},
		"deleted and so run again": {[]change{made(operator, "1"), ran("1"), gone(operator, "1"), made(operator, "2"), ran("2")}, []Class{LosesState}},
	} {
		t.Run(name, func(t *testing.T) {
			runs := []*trial{{changes: []change{made(operator, "1"), ran("1"), gone(cluster, "1")}}}
			r := &reference{walk: walk{name: "create"}, runs: runs, view: learn(runs)}
			var got []Class
			for _, v := range r.judge(&trial{changes: c.changes}) {
				t.Log(v.text)
				got = append(got, v.class)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("the classes are %q, want %q", got, c.want)
			}
		})
	}
}

// A program may run its Jobs itself. A change by a fault does not run them.
func TestReference_AFaultDoesNotRunAJob(t *testing.T) {
	job := change{Who: operator, Verb: "created", Of: ref{"Job.batch", "default/load"}, UID: "1"}
	annotated := change{Who: cluster, Verb: "updated", Of: job.Of, UID: "1", Fields: "metadata.annotations.touched"}
	touched := change{Who: cluster, Verb: "updated", Of: job.Of, UID: "1", At: time.Second}
	runs := []*trial{{changes: []change{job}}}
	r := &reference{walk: walk{name: "create"}, runs: runs, view: learn(runs)}
	for fault, want := range map[time.Duration]int{time.Second: 0, time.Minute: 1} {
		if got := r.judge(&trial{changes: []change{job, annotated, touched}, faults: []happening{{at: fault}}}); len(got) != want {
			t.Errorf("with a fault after %s got %v, want %d", fault, got, want)
		}
	}
}

// A change may ask the program to delete the object, such as a time to live. It cannot be undone, and that is no mistake.
func TestReference_AChangeThatDeletesTheSampleIsNotUndone(t *testing.T) {
	sample := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.dev/v1", "kind": "Shop", "metadata": map[string]any{"namespace": "default", "name": "corner"},
	}}
	of, made := ref{"Shop.example.dev", "default/corner"}, ref{"ConfigMap", "default/corner"}
	ending := sample.DeepCopy()
	ending.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	start := objects{of: sample.Object, made: {}}
	for name, c := range map[string]struct {
		changed objects
		want    int
	}{
		"it is there":   {objects{of: sample.Object, made: {}}, 1},
		"it is gone":    {objects{made: {}}, 0},
		"it is ending":  {objects{of: ending.Object, made: {}}, 0},
		"all else gone": {objects{of: sample.Object}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			end := objects{of: sample.Object}
			run := &trial{ends: []objects{start, c.changed, end}, last: end}
			w := walk{name: "set", returns: true, steps: make([]step, 3), field: &fieldOf{sample: sample}}
			r := &reference{walk: w, runs: []*trial{run}, view: learn([]*trial{run})}
			if got := r.judgeDeclarations(nil); len(got) != c.want {
				t.Errorf("%d things are wrong, want %d: %v", len(got), c.want, got)
			}
		})
	}
}

// What the program makes for a sample has to go with it, and so has the sample.
func TestReference_WhatIsLeftBehind(t *testing.T) {
	object := func(apiVersion, kind, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
		u.SetName(name)
		u.SetUID(types.UID(kind + name))
		return u
	}
	sample, owned, ending := object("example.dev/v1", "Shop", "corner"), object("v1", "ConfigMap", "corner-b"), object("example.dev/v1", "Shop", "corner")
	ending.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	owned.SetOwnerReferences([]metav1.OwnerReference{{Name: "it"}})
	labelled := object("v1", "ConfigMap", "x")
	labelled.SetLabels(map[string]string{"shop": "corner"})
	for name, c := range map[string]struct {
		left *unstructured.Unstructured
		who  string
		want int
	}{
		"by name": {object("v1", "ConfigMap", "corner-a"), operator, 1}, "by label": {labelled, operator, 1}, "the sample": {ending, user, 1},
		"a new sample": {sample, user, 0}, "of another with the word": {object("v1", "ConfigMap", "corners"), operator, 0},
		"owned": {owned, operator, 0}, "data": {object("v1", "PersistentVolumeClaim", "corner-a"), operator, 0},
		"of all": {object("v1", "ConfigMap", "settings"), operator, 0}, "of another": {object("v1", "ConfigMap", "corner-a"), cluster, 0},
	} {
		of := refTo(c.left)
		run := &trial{ends: []objects{{}, {of: c.left.Object}}, changes: []change{{Who: c.who, Verb: "created", Of: of, UID: string(c.left.GetUID())}}}
		r := &reference{walk: walk{name: "delete", gone: []*unstructured.Unstructured{sample}, steps: make([]step, 2)}, runs: []*trial{run, run}, view: learn([]*trial{run})}
		if got := r.judgeDeclarations(nil); len(got) != c.want {
			t.Errorf("%s: got %v, want %d", name, got, c.want)
		}
		r.runs[1] = &trial{ends: []objects{{}, {}}}
		if got := r.judgeDeclarations(nil); len(got) != 0 {
			t.Errorf("%s: %v is not left in each run", name, got)
		}
	}
}

// A condition that is false says the same as one that is not there.
func TestWithoutFalse_AConditionThatIsNotThere(t *testing.T) {
	at := func(of, field string) string { return "status.conditions[type=" + of + "]." + field }
	kept := []difference{
		{at("Ready", "status"), `"False"`, `"True"`},
		{at("Busy", "status"), "", `"True"`}, {at("Busy", "reason"), "", `"Works"`},
		{"spec.status", "", `"False"`},
	}
	got := withoutFalse(append(slices.Clone(kept), difference{at("Old", "status"), "", `"False"`}, difference{at("Old", "reason"), "", `"Done"`},
		difference{at("New", "status"), `"False"`, ""}))
	if !slices.Equal(got, kept) {
		t.Errorf("got %v, want %v", got, kept)
	}
}

// Names of a workload's history, and annotations of faults that a program has copied, say nothing.
func TestFlatten_WhatTheClusterAndFaultsWrite(t *testing.T) {
	set := map[string]any{"kind": "StatefulSet", "status": map[string]any{"currentRevision": "a", "updateRevision": "b", "replicas": int64(1)},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{"kit.flyball.dev/foreign-write": "1"}}}}}
	pod := map[string]any{"kind": "Pod", "metadata": map[string]any{"labels": map[string]any{"controller-revision-hash": "a", "app": "b"}}}
	same := func(text string) string { return text }
	for _, got := range []flat{flatten(set, same), flatten(pod, same)} {
		if len(got) != 1 {
			t.Errorf("got %v, want one field", got)
		}
	}
}

// What a program asks for at the end counts, after the last change and the last fault.
func TestPollsOf_TheEndOfAHistory(t *testing.T) {
	at := func(what string, after time.Duration) kit.Event {
		return kit.Event{What: what, At: after, Who: operator, Kind: "Pod"}
	}
	for name, c := range map[string]struct {
		last kit.Event
		want int
	}{
		"nothing": {at(kit.Delivered, 0), 100}, "a change": {at(kit.Changed, 19*time.Second), 11}, "a fault": {at(kit.Fault, 18*time.Second), 21},
		"the end of the faults": {at(kit.Healed, 18*time.Second), 21}, "a change of an Event": {kit.Event{What: kit.Changed, At: 19 * time.Second, Kind: "Event"}, 100},
	} {
		events := []kit.Event{c.last}
		for i := range 200 {
			asked := kit.Event{What: kit.Asked, At: time.Duration(i+1) * time.Second / 10, Who: operator + "-1", Name: "get", Kind: "Pod", Text: "/a"}
			other := asked
			other.Who = user
			events = append(events, asked, other)
		}
		slices.SortStableFunc(events, func(a, b kit.Event) int { return cmp.Compare(a.At, b.At) })
		events = append(events, at(kit.Stopping, 20*time.Second), at(kit.Changed, 21*time.Second))
		if got := mostPolls(pollsOf(events)); got["get Pod"] != c.want {
			t.Errorf("%s: the polls are %v, want %d", name, got, c.want)
		}
	}
}

// A Pod that the program deletes, and a kubelet ends, has been there. What the garbage collector deletes has not been wanted.
func TestTrial_MostCountsWhatTheProgramDeletes(t *testing.T) {
	of := ref{"Pod", "default/web-aaaaa"}
	made, ended := change{Who: operator, Verb: "created", Of: of, UID: "1"}, change{Who: cluster, Verb: "deleted", Of: of, UID: "1"}
	asked := change{Who: operator, Verb: "updated", Of: of, UID: "1", Fields: "metadata.deletionTimestamp"}
	for want, changes := range [][]change{{made, ended}, {made, asked, ended}} {
		if got := (&trial{changes: changes}).most(func(of ref, _ bool) string { return of.String() })[of.String()]; got != want {
			t.Errorf("after %v there were %d, want %d", changes, got, want)
		}
	}
}

// What ran before a pause is still there after it, and a program that is paused from the start makes nothing.
func TestReference_APauseDependsOnThePath(t *testing.T) {
	there, fresh := objects{{"Pod", "default/web"}: {}}, &reference{walk: walk{steps: make([]step, 1)}, runs: []*trial{{ends: []objects{{}}}}}
	run := &trial{ends: []objects{there, there}, last: there}
	for name, want := range map[string]int{"suspend": 0, "debug": 1} {
		sample := &unstructured.Unstructured{Object: map[string]any{"kind": "Pod", "metadata": map[string]any{"namespace": "default", "name": "web"}}}
		field := &fieldOf{sample: sample, mutation: mutation{path: path{"spec", name}, value: true}}
		r := &reference{walk: walk{steps: make([]step, 2), field: field}, runs: []*trial{run}}
		r.view, fresh.view = learn(r.runs), learn(fresh.runs)
		if got := r.judgeDeclarations(fresh); len(got) != want {
			t.Errorf("%s: %v, want %d", name, got, want)
		}
	}
}

// Which of several volumes a fault hits is chance.
func TestVerdict_AnotherObjectWithANumberIsAlike(t *testing.T) {
	one := verdict{class: OtherEnd, what: "PersistentVolumeClaim default/data-zoo-1", parts: "spec.resources"}
	for _, c := range []struct {
		other verdict
		want  bool
	}{
		{verdict{class: OtherEnd, what: "PersistentVolumeClaim default/data-zoo-12", parts: one.parts}, true},
		{verdict{class: OtherEnd, what: "PersistentVolumeClaim default/log-zoo-1", parts: one.parts}, false},
		{verdict{class: OtherEnd, what: one.what, parts: "missing"}, false},
	} {
		if got := one.alike(c.other); got != c.want {
			t.Errorf("%v is alike: %t, want %t", c.other, got, c.want)
		}
	}
}
