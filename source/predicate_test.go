// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/kube"
)

type event = kube.Event[kube.Object]

// deployment returns a Deployment of generation 1 with changes.
func deployment(changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "prod", Name: "a", UID: "1", Generation: 1,
		Labels: map[string]string{"app": "a"}, Finalizers: []string{"x/y"},
	}}
	for _, change := range changes {
		change(d)
	}
	return d
}

func spec(d *appsv1.Deployment)       { d.Generation++ }
func status(d *appsv1.Deployment)     { d.Status.Replicas++ }
func label(d *appsv1.Deployment)      { d.Labels = map[string]string{"app": "b"} }
func annotation(d *appsv1.Deployment) { d.Annotations = map[string]string{"note": "n"} }
func finalizer(d *appsv1.Deployment)  { d.Finalizers = nil }
func uid(d *appsv1.Deployment)        { d.UID = "2" }
func deletion(d *appsv1.Deployment)   { d.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
func orphaned(d *appsv1.Deployment) {
	d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Website", Name: "w"}}
}

func added(changes ...func(*appsv1.Deployment)) event {
	return event{Type: kube.Added, New: deployment(changes...)}
}

func updated(changes ...func(*appsv1.Deployment)) event {
	return event{Type: kube.Updated, Old: deployment(), New: deployment(changes...)}
}

func deleted(changes ...func(*appsv1.Deployment)) event {
	return event{Type: kube.Deleted, Old: deployment(changes...)}
}

func resync() event {
	return event{Type: kube.Updated, Old: deployment(), New: deployment(), Resync: true}
}

// healed is an update after undecodable versions.
func healed() event {
	return event{Type: kube.Updated, Old: deployment(), New: deployment(), Healed: true}
}

func TestPredicate_PassesWhatItNames_R1(t *testing.T) {
	appA := Where(func(d *appsv1.Deployment) bool { return d.Labels["app"] == "a" })
	appB := Where(func(d *appsv1.Deployment) bool { return d.Labels["app"] == "b" })
	never := When(func(event) bool { return false })
	replicas := Changed(func(d *appsv1.Deployment) any { return d.Status.Replicas })
	for _, tc := range []struct {
		name string
		p    Predicate
		e    event
		want bool
	}{
		{"spec, spec", SpecChanged, updated(spec), true},
		{"spec, status", SpecChanged, updated(status), false},
		{"status, status", StatusChanged, updated(status), true},
		{"status, spec", StatusChanged, updated(spec), false},
		{"labels, label", LabelsChanged, updated(label), true},
		{"labels, annotation", LabelsChanged, updated(annotation), false},
		{"annotations, annotation", AnnotationsChanged, updated(annotation), true},
		{"annotations, label", AnnotationsChanged, updated(label), false},
		{"deletion, spec", DeletionChanged, updated(spec), false},
		{"changed, its field", replicas, updated(status), true},
		{"changed, another", replicas, updated(spec), false},

		{"spec, added", SpecChanged, added(), true},
		{"spec, resync", SpecChanged, resync(), true},
		{"spec, healed", SpecChanged, healed(), true},
		{"where outside, healed", appB, healed(), false},
		{"spec, deleted", SpecChanged, deleted(), true},
		{"spec, deletionTimestamp", SpecChanged, updated(deletion), true},
		{"spec, finalizer", SpecChanged, updated(finalizer), true},
		{"spec, owner", SpecChanged, updated(orphaned), true},
		{"spec, another UID", SpecChanged, updated(uid), true},
		{"not spec, spec", Not(SpecChanged), updated(spec), false},
		{"not spec, status", Not(SpecChanged), updated(status), true},
		{"not spec, added", Not(SpecChanged), added(), true},
		{"not spec, deleted", Not(SpecChanged), deleted(), true},
		{"not spec, finalizer", Not(SpecChanged), updated(finalizer), true},
		{"spec but not labels, deleted", And(SpecChanged, Not(LabelsChanged)), deleted(), true},

		{"when, added", never, added(), false},
		{"when, spec", never, updated(spec), false},
		{"when, resync", never, resync(), false},
		{"when, deleted", never, deleted(), true},
		{"when, finalizer", never, updated(finalizer), true},
		{"not when, deleted", Not(never), deleted(), true},

		{"where inside, added", appA, added(), true},
		{"where outside, added", appB, added(), false},
		{"where inside, status", appA, updated(status), true},
		{"where enters", appB, updated(label), true},
		{"where leaves", appA, updated(label), true},
		{"where outside, deleted", appB, deleted(), false},
		{"where outside, finalizer", appB, updated(finalizer), false},
		{"where inside, deleted", appA, deleted(), true},
		{"not where, added outside", Not(appA), added(), false},
		{"not where, leaves", Not(appB), updated(label), true},
		{"not where, enters", Not(appA), updated(label), true},
		{"where and spec, status", And(appA, SpecChanged), updated(status), false},
		{"where and spec, outside, deleted", And(appB, SpecChanged), deleted(), false},
		{"where or spec, outside, deleted", Or(appB, SpecChanged), deleted(), true},
		{"two wheres, one each", And(appA, appB), updated(label), false},

		{"and of none", And(), updated(status), true},
		{"or, second", Or(SpecChanged, LabelsChanged), updated(label), true},
		{"or, neither", Or(SpecChanged, LabelsChanged), updated(status), false},
		{"and, both", And(SpecChanged, LabelsChanged), updated(spec, label), true},
		{"and, one", And(SpecChanged, LabelsChanged), updated(spec), false},
	} {
		if got := passes(tc.p, tc.e); got != tc.want {
			t.Errorf("%s: passes %t, want %t", tc.name, got, tc.want)
		}
	}
}

func TestPredicate_PassesWhereItCannotSee(t *testing.T) {
	configMap := func(value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{Data: map[string]string{"k": value}}
	}
	e := event{Type: kube.Updated, Old: configMap("1"), New: configMap("2")}
	if !passes(SpecChanged, e) {
		t.Error("SpecChanged drops the change of a ConfigMap, which has no generation; its news would be lost")
	}
	if !passes(StatusChanged, e) {
		t.Error("StatusChanged drops the change of an object whose status cannot be seen")
	}
	metadata := event{Type: kube.Updated, Old: &metav1.PartialObjectMetadata{}, New: &metav1.PartialObjectMetadata{}}
	if !passes(StatusChanged, metadata) {
		t.Error("StatusChanged drops the change of an object of which only metadata is there")
	}
	free := func(ready bool) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"ready": ready}}}
	}
	if !passes(StatusChanged, event{Type: kube.Updated, Old: free(false), New: free(true)}) {
		t.Error("StatusChanged drops the change of an unstructured object's status")
	}
	if passes(StatusChanged, event{Type: kube.Updated, Old: free(true), New: free(true)}) {
		t.Error("StatusChanged passes an unstructured object whose status is the same")
	}
}

// No combination of interests, functions, And, Or and Not drops an event that
// must not be lost.
func TestPredicate_NoCompositionDropsADeletion_R1(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	vital := []event{
		deleted(), updated(deletion), updated(finalizer), updated(orphaned), updated(uid),
		updated(finalizer, status, label), updated(deletion, spec), healed(),
	}
	for range 20000 {
		p := randomPredicate(random, 4)
		for i, e := range vital {
			if !passes(p, e) {
				t.Fatalf("%#v drops vital event %d", p, i)
			}
		}
	}
}

func randomPredicate(random *rand.Rand, depth int) Predicate {
	kind := random.IntN(8)
	if depth == 0 {
		kind = random.IntN(5)
	}
	switch kind {
	case 0, 1, 2:
		return Interest(1 + random.IntN(int(DeletionChanged)))
	case 3:
		answer := random.IntN(2) == 0
		return When(func(event) bool { return answer })
	case 4:
		return Changed(func(d *appsv1.Deployment) any { return d.Annotations })
	case 5:
		return Not(randomPredicate(random, depth-1))
	case 6:
		return And(randomPredicate(random, depth-1), randomPredicate(random, depth-1))
	}
	return Or(randomPredicate(random, depth-1), randomPredicate(random, depth-1))
}

func TestPredicate_MisuseIsNamed(t *testing.T) {
	like := (*appsv1.Deployment)(nil)
	for name, tc := range map[string]struct {
		p    Predicate
		want string
	}{
		"nil":            {And(nil), "a predicate is nil"},
		"nil in not":     {And(Not(nil)), "a predicate is nil"},
		"empty or":       {Or(), "has no parts"},
		"nil where":      {Where[*appsv1.Deployment](nil), "function of predicate Where is nil"},
		"nil when":       {When(nil), "function of predicate When is nil"},
		"nil changed":    {Changed[*appsv1.Deployment](nil), "function of predicate Changed is nil"},
		"other type":     {Or(Where(func(*corev1.Pod) bool { return true }), SpecChanged), "is for *v1.Pod, but the informer's objects are *v1.Deployment"},
		"other interest": {Interest(99), "is not one of package source"},
	} {
		if err := tc.p.check(objects{like: like}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q in it", name, err, tc.want)
		}
	}
	if err := And(SpecChanged, Where(func(*appsv1.Deployment) bool { return true })).check(objects{like: like}); err != nil {
		t.Errorf("a sound predicate is called misuse: %v", err)
	}
}

// An interest in what the informer drops would miss every change.
func TestInterest_NeedsWhatTheInformerKeeps_D4(t *testing.T) {
	for _, tc := range []struct {
		i    Interest
		kept []string
		want string // empty: no misuse
	}{
		{StatusChanged, nil, ""},
		{StatusChanged, []string{"spec"}, `add "status" to the Fields`},
		{StatusChanged, []string{"status"}, ""},
		{StatusChanged, []string{"status.phase"}, ""},
		{AnnotationsChanged, []string{"spec"}, `add "metadata.annotations" to the Fields`},
		{AnnotationsChanged, []string{"metadata"}, ""},
		{LabelsChanged, []string{}, ""},
		{SpecChanged, []string{}, ""}, // by the generation
		{DeletionChanged, []string{}, ""},
	} {
		err := And(Or(Not(tc.i))).check(objects{like: (*appsv1.Deployment)(nil), kept: tc.kept})
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s with the fields %q: %v, want %q", tc.i, tc.kept, err, tc.want)
		}
	}
}
