// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package applied_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/applied"
	"github.com/flyball-dev/flyball/kube"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func keyOf(name string) applied.Key {
	return applied.Key{Kind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Object: kube.Key{Namespace: "prod", Name: name}, Owner: "website"}
}

// deployment is in version 7, and then changed.
func deployment(changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "prod", Name: "web", UID: "u", ResourceVersion: "7", Generation: 1, Labels: map[string]string{"a": "b"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "website"}},
	}}
	d.Spec.Replicas = new(int32(2))
	for _, change := range changes {
		change(d)
	}
	return d
}

func version(v string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.ResourceVersion = v }
}

func ready(n int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Status.ReadyReplicas = n }
}

func replicas(n int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = &n }
}

func stateOf(t testing.TB, obj kube.Object, part applied.Part) applied.State {
	t.Helper()
	s, ok := applied.StateOf(obj, part)
	if !ok {
		t.Fatalf("%T does not marshal", obj)
	}
	return s
}

func unstructuredOf(t testing.TB, obj kube.Object) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: fields}
}

// remembered is a Memory of one apply, answered with obj.
func remembered(t testing.TB, body string, obj kube.Object, part applied.Part) *applied.Memory {
	t.Helper()
	var m applied.Memory
	m.Begin(keyOf("web"), began)(&applied.Known{Wanted: wants(body), Answered: stateOf(t, obj, part), At: began})
	return &m
}

func wants(body string) applied.Digest { return applied.WantedOf([]byte(body), true, "Strict") }

func TestMemory_KnowsWhatWouldChangeNothing_C16(t *testing.T) {
	generation := func(d *appsv1.Deployment) { d.Generation++ }
	for _, row := range []struct {
		name string
		part applied.Part
		now  *appsv1.Deployment // nil: as answered
		want bool
	}{
		{"as answered", applied.Main, deployment(), true},
		{"other bookkeeping", applied.Main, deployment(func(d *appsv1.Deployment) { d.ManagedFields = nil }), true},
		{"another status", applied.Main, deployment(version("8"), ready(1)), true},
		{"only another version: perhaps another owner", applied.Main, deployment(version("8")), false},
		{"a field changed", applied.Main, deployment(version("8"), generation, replicas(3)), false},
		{"a field and the status changed", applied.Main, deployment(version("8"), generation, replicas(3), ready(1)), false},
		{"changed, and changed back", applied.Main, deployment(version("9"), generation, generation, ready(1)), false},
		{"a foreign label", applied.Main, deployment(version("8"), ready(1), func(d *appsv1.Deployment) { d.Labels["x"] = "y" }), false},
		{"other owners of the object", applied.Main, deployment(version("8"), ready(1), func(d *appsv1.Deployment) { d.OwnerReferences = []metav1.OwnerReference{{UID: "p"}} }), false},
		{"being deleted", applied.Main, deployment(version("8"), ready(1), func(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{Time: began} }), false},
		{"another object", applied.Main, deployment(func(d *appsv1.Deployment) { d.UID = "v" }), false},
		{"without a UID", applied.Main, deployment(func(d *appsv1.Deployment) { d.UID = "" }), false},
		{"older", applied.Main, deployment(version("6"), ready(1)), false},
		{"a version without order", applied.Main, deployment(version("x"), ready(1)), false},
		{"the same version of other content, after a rewind", applied.Main, deployment(replicas(3)), false},

		{"status: as answered", applied.Status, deployment(), true},
		{"status: another object around it", applied.Status, deployment(version("8"), generation, replicas(3)), true},
		{"status: changed", applied.Status, deployment(version("8"), ready(1)), false},
		{"status: both changed", applied.Status, deployment(version("8"), generation, replicas(3), ready(1)), false},
		{"status: only another version", applied.Status, deployment(version("8")), false},

		{"whole: as answered", applied.Whole, deployment(), true},
		{"whole: another status", applied.Whole, deployment(version("8"), ready(1)), false},
		{"whole: only another version", applied.Whole, deployment(version("8")), false},
	} {
		m := remembered(t, "{}", deployment(), row.part)
		if !m.Wants(keyOf("web"), wants("{}"), began) {
			t.Errorf("%s: the apply is not remembered", row.name)
		}
		if got := m.Knows(keyOf("web"), wants("{}"), stateOf(t, row.now, row.part), began); got != row.want {
			t.Errorf("%s: known is %t, want %t", row.name, got, row.want)
		}
		m = remembered(t, "{}", unstructuredOf(t, deployment()), row.part)
		if got := m.Knows(keyOf("web"), wants("{}"), stateOf(t, unstructuredOf(t, row.now), row.part), began); got != row.want {
			t.Errorf("%s, unstructured: known is %t, want %t", row.name, got, row.want)
		}
	}
}

func TestMemory_VersionsWithoutOrderAreNotKnown_C16(t *testing.T) {
	m := remembered(t, "{}", deployment(version("x")), applied.Main)
	if m.Knows(keyOf("web"), wants("{}"), stateOf(t, deployment(version("x")), applied.Main), began) {
		t.Error("known by a version that is not a number; two of them cannot be compared")
	}
}

func TestMemory_KnowsOnlyWhatWasWanted_C16(t *testing.T) {
	m := remembered(t, `{"a":1}`, deployment(), applied.Main)
	state := stateOf(t, deployment(), applied.Main)
	other := keyOf("web")
	other.Owner = "another"
	status := keyOf("web")
	status.Subresource = "status"
	for _, row := range []struct {
		name   string
		key    applied.Key
		wanted applied.Digest
		now    time.Time
		want   bool
	}{
		{"the same", keyOf("web"), wants(`{"a":1}`), began, true},
		{"the same, an hour later but a second", keyOf("web"), wants(`{"a":1}`), began.Add(time.Hour - time.Second), true},
		{"the same, an hour later", keyOf("web"), wants(`{"a":1}`), began.Add(time.Hour), false},
		{"another body", keyOf("web"), wants(`{"a":2}`), began, false},
		{"not forced", keyOf("web"), applied.WantedOf([]byte(`{"a":1}`), false, "Strict"), began, false},
		{"validated otherwise", keyOf("web"), applied.WantedOf([]byte(`{"a":1}`), true, "Ignore"), began, false},
		{"another owner", other, wants(`{"a":1}`), began, false},
		{"another subresource", status, wants(`{"a":1}`), began, false},
		{"another object", keyOf("site"), wants(`{"a":1}`), began, false},
	} {
		if got := m.Knows(row.key, row.wanted, state, row.now); got != row.want {
			t.Errorf("%s: known is %t, want %t", row.name, got, row.want)
		}
		if got := m.Wants(row.key, row.wanted, row.now); got != row.want {
			t.Errorf("%s: wanted is %t, want %t", row.name, got, row.want)
		}
	}
}

func TestMemory_NothingIsKnownWhileAnApplyIsOnItsWay_C16(t *testing.T) {
	state := stateOf(t, deployment(), applied.Main)
	known := &applied.Known{Wanted: wants("{}"), Answered: state, At: began}
	knows := func(m *applied.Memory) bool { return m.Knows(keyOf("web"), wants("{}"), state, began) }

	m := remembered(t, "{}", deployment(), applied.Main)
	end := m.Begin(keyOf("web"), began)
	if knows(m) {
		t.Error("known while another apply is on its way")
	}
	end(nil)
	if knows(m) || m.Len() != 0 {
		t.Errorf("known after an apply that failed, which may have been carried out; %d entries", m.Len())
	}

	first, second := m.Begin(keyOf("web"), began), m.Begin(keyOf("web"), began)
	first(known)
	if knows(m) {
		t.Error("known while the second is on its way")
	}
	second(known)
	if knows(m) || m.Len() != 0 {
		t.Errorf("known after two at the same time, whose order only the server knows; %d entries", m.Len())
	}

	m.Begin(keyOf("web"), began)(known)
	if !knows(m) {
		t.Error("an apply alone is not known after those that overlapped")
	}
}

func TestMemory_CountsTheNextDifferenceFromTheLastLook_C16(t *testing.T) {
	m := remembered(t, "{}", deployment(), applied.Main)
	for i, step := range []struct {
		now  *appsv1.Deployment
		want bool
	}{
		{deployment(version("8"), ready(1)), true},
		{deployment(version("9"), ready(0)), true}, // as it was answered, but not as it was seen
		{deployment(version("9"), ready(0)), true},
		{deployment(version("10"), ready(0)), false},
	} {
		if got := m.Knows(keyOf("web"), wants("{}"), stateOf(t, step.now, applied.Main), began); got != step.want {
			t.Errorf("step %d: known is %t, want %t", i+1, got, step.want)
		}
	}
}

func TestMemory_IsBounded_C16(t *testing.T) {
	var m applied.Memory
	most, now := 0, began
	for i := range 100_000 { // 1000 in an hour
		now = now.Add(time.Hour / 1000)
		m.Begin(keyOf(fmt.Sprint("web-", i)), now)(&applied.Known{At: now})
		most = max(most, m.Len())
	}
	if most > 2100 {
		t.Errorf("%d applies are remembered, where 1000 were sent within the hour; want at most twice as many", most)
	}
}

func TestStateOf_LeavesTheObjectAlone_C16(t *testing.T) {
	for _, obj := range []kube.Object{deployment(), unstructuredOf(t, deployment())} {
		before, _ := json.Marshal(obj)
		_, _ = applied.StateOf(obj, applied.Main)
		if after, _ := json.Marshal(obj); string(before) != string(after) {
			t.Errorf("%T: it was\n%s\nand is\n%s\nobjects of the cache are shared", obj, before, after)
		}
	}
}

// FuzzStateOf_C16 holds the digests against a comparison of the fields.
func FuzzStateOf_C16(f *testing.F) {
	f.Add("b", int32(1), int32(1), "c", int32(1), int32(2))
	f.Add("", int32(0), int32(0), "", int32(0), int32(0))
	f.Fuzz(func(t *testing.T, label1 string, spec1, status1 int32, label2 string, spec2, status2 int32) {
		make := func(uid types.UID, label string, spec, status int32) kube.Object {
			return deployment(func(d *appsv1.Deployment) { d.UID, d.Labels["l"] = uid, label }, replicas(spec), ready(status))
		}
		a, b := stateOf(t, make("u", label1, spec1, status1), applied.Main), stateOf(t, make("u", label2, spec2, status2), applied.Main)
		text := func(s string) string { data, _ := json.Marshal(s); return string(data) } // invalid UTF-8 is replaced
		if got, want := a.Own == b.Own, text(label1) == text(label2) && spec1 == spec2; got != want {
			t.Errorf("the main parts are alike: %t, want %t", got, want)
		}
		if got, want := a.Rest == b.Rest, status1 == status2; got != want {
			t.Errorf("the statuses are alike: %t, want %t", got, want)
		}
	})
}
