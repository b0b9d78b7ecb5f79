// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate"
)

// objects are the objects of a cluster at one moment.
type objects map[ref]map[string]any

// trial is what one run of a walk has shown.
type trial struct {
	plan    plan
	seed    uint64
	changes []change
	asks    []ask
	watched []string // kinds that the operator watches
	// ends are the objects after each step, at rest; nil: the run did not come to rest there, or the
	// next step did not wait for it.
	ends []objects
	// last are the objects at the end, and initial those before the walk, which no others contain.
	last    objects
	initial map[ref]bool
	// view is what this run has in common with others without faults; nil: it is not known.
	view *view
	// peaks are the highest values of spec.replicas that objects have had.
	peaks map[ref]int64
	// faults that happened, as lines with their times.
	faults []happening
	lives  []happening // when the process starts and ends
	// wrongs are what is wrong whatever the program is for, such as that it does not come to rest.
	wrongs struct {
		sync.Mutex
		all []wrong
	}
	// refused is why the server did not accept a step of the user; empty: it did.
	refused string
	// stubs are why the server refuses the statuses of stubs, by kind.
	stubs  map[string]string
	took   []time.Duration // of each step
	events int             // in the history
	// blindUntil is when the last fault ends, and circled when the run was ended because it went round in
	// circles; 0: it was not.
	blindUntil, circled time.Duration
	// requests by verb and kind, in real time: of a suite all of them, of a process the most within window.
	requests map[string]int
	// polls by verb and kind: how often it asks for the same within window, at rest after all faults.
	polls map[string]int
	// Of a suite: whether it is known who has sent each write; whether the fault has hit a spec itself.
	attributed, own bool
	// write writes the complete history into a directory, and returns the files; nil: there is none.
	write func(dir string) ([]string, error)
}

// happening is something that happened besides changes.
type happening struct {
	at   time.Duration
	text string
}

// wrong is a violation of what every program has to do.
type wrong struct {
	// rule is the name of an invariant of package kit, such as V7, or "panic", or neverRests.
	rule string
	text string
}

const (
	// neverRests is the rule that a program comes to rest after each step of the user.
	neverRests = "rest"
	// specRule begins the rule of a spec that fails.
	specRule = "spec "
)

// refusalsOf returns why a server refuses the statuses of stubs, by kind.
func refusalsOf(s *simulate.Server) map[string]string {
	all := map[string]string{}
	for _, obj := range s.Objects(schema.GroupResource{Resource: "events"}) {
		if event, ok := obj.(*unstructured.Unstructured); ok && event.Object["reason"] == simulate.StatusRefused {
			about, _, _ := unstructured.NestedStringMap(event.Object, "involvedObject")
			all[schema.FromAPIVersionAndKind(about["apiVersion"], about["kind"]).GroupKind().String()], _, _ = unstructured.NestedString(event.Object, "message")
		}
	}
	return all
}

// isWorkloads reports whether an object of a history is not the program's: a workload or a Service controls it, or did
// before that was deleted without it.
func isWorkloads(obj metav1.Object) bool {
	owner := metav1.GetControllerOf(obj)
	return owner == nil || owner.Kind == "Service" || strings.HasPrefix(owner.APIVersion, appsv1.GroupName+"/")
}

// content returns the objects of a server, without those from before the walk.
func (t *trial) content(s *simulate.Server) objects {
	all := objects{}
	for kind, obj := range s.Everything() {
		of := refOf(kind.String(), kube.KeyOf(obj))
		if u, ok := obj.(*unstructured.Unstructured); ok && !t.initial[of] && !of.given() && !ignored(of.Kind) && !(isHistory(of.Kind) && isWorkloads(u)) {
			all[of] = u.Object
		}
	}
	return all
}

// begin takes note of the objects before the walk, of which there may be very many.
func (t *trial) begin(s *simulate.Server) {
	t.initial = map[ref]bool{}
	for of := range t.content(s) {
		t.initial[of] = true
	}
}

// rested reports whether a run without faults has come to rest after each step.
func (t *trial) rested() bool {
	return t.last != nil && !slices.ContainsFunc(t.ends, func(o objects) bool { return o == nil })
}

// expects reports whether the objects after a step are those of t, a run without faults.
func (t *trial) expects(step int, now objects) bool {
	return t != nil && t.view != nil && step < len(t.ends) && t.ends[step] != nil && len(t.view.unlike(t.ends[step], now)) == 0
}

// raise takes note of the number of replicas that a workload wants.
func (t *trial) raise(u *unstructured.Unstructured) {
	of := refTo(u)
	if n, found, err := unstructured.NestedInt64(u.Object, "spec", "replicas"); found && err == nil && (of.Kind == "StatefulSet.apps" || of.Kind == "Deployment.apps") {
		t.peaks[of] = max(t.peaks[of], n)
	}
}

// aimed reports whether all faults of the plan have happened.
func (t *trial) aimed() bool { return len(t.plan.Faults) == 0 || len(t.faults) > 0 }

// isBlind reports whether the run was ended while a fault kept the program from seeing what it does. It is not
// judged: when the fault ends the program may be right.
func (t *trial) isBlind() bool { return t.circled > 0 && t.circled <= t.blindUntil }

// busiest names what the program does most often.
func (t *trial) busiest() string {
	times := map[string]int{}
	for _, c := range t.changes {
		if c.Who == operator {
			times[c.String()]++
		}
	}
	most := mostOf(times)
	if times[most] < 2 { // it changes nothing
		for _, a := range t.asks {
			if a.Who == operator {
				times[fmt.Sprintf("operator asks to %s %s%s", a.Write, a.Of.Key, at(a.Line))]++
			}
		}
		most = mostOf(times)
	}
	if most == "" {
		return ""
	}
	return fmt.Sprintf("; %s, %d times", most, times[most])
}

// mostOf returns what there is most of, the first one in the alphabet; empty: there is nothing.
func mostOf(times map[string]int) (most string) {
	for what, n := range times {
		if n > times[most] || n == times[most] && what < most {
			most = what
		}
	}
	return most
}

// existed reports whether an object was there at a time.
func (t *trial) existed(of ref, at time.Duration) (there bool) {
	for _, c := range t.changes {
		if c.Of == of && c.At < at {
			there = c.Verb != "deleted"
		}
	}
	return there
}

// deletesIn reports whether the program has deleted something in a step.
func (t *trial) deletesIn(step int) bool {
	return slices.ContainsFunc(t.changes, func(c change) bool { return c.Step == step && isDeletion(c) })
}

// changesAgain reports whether an object changes at a time, and soon again, whether or not the program sees the first
// change: then one event can stand for both.
func (t *trial) changesAgain(of ref, at time.Duration) bool {
	const soon = 30 * time.Second
	first := true
	for _, c := range t.changes {
		switch {
		case c.Of != of || c.At < at || c.At > at+soon:
		case first:
			first = false
		default:
			return c.Who != operator
		}
	}
	return false
}

// most returns how many objects of a name there were at most at one time, but for those that the program has made for an
// owner that was gone, and the garbage collector has deleted. name gets whether the program has made the object.
func (t *trial) most(name func(of ref, own bool) string) map[string]int {
	garbage, made, ended := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range t.changes {
		switch {
		case c.Who == operator && c.Verb == "created":
			made[c.UID] = true
		case c.Who == operator && isDeletion(c): // what a kubelet ends then was wanted until here
			ended[c.UID] = true
		case c.Who == cluster && c.Verb == "deleted":
			garbage[c.UID] = made[c.UID] && !ended[c.UID]
		}
	}
	now, most := map[string]int{}, map[string]int{}
	for _, c := range t.changes {
		as := name(c.Of, made[c.UID])
		switch {
		case as == "", isHistory(c.Of.Kind) && c.Who == cluster, garbage[c.UID]:
		case c.Verb == "created":
			now[as]++
			most[as] = max(most[as], now[as])
		case c.Verb == "deleted":
			now[as]--
		}
	}
	return most
}

// allWrongs returns the wrongs so far.
func (t *trial) allWrongs() []wrong {
	t.wrongs.Lock()
	defer t.wrongs.Unlock()
	return slices.Clone(t.wrongs.all)
}

func (t *trial) addWrong(w wrong) {
	t.wrongs.Lock()
	defer t.wrongs.Unlock()
	t.wrongs.all = append(t.wrongs.all, w)
}

// begun is when the user first did something. What the cluster does before is the same in each run.
func (t *trial) begun() time.Duration {
	if i := slices.IndexFunc(t.changes, func(c change) bool { return c.Who == user }); i >= 0 {
		return t.changes[i].At
	}
	return 0
}
