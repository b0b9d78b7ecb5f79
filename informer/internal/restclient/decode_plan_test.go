// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/internal/decodelimit"
)

// podBytes returns the protobuf of Pods that differ in their names.
func podBytes(t testing.TB, n int) (raws [][]byte) {
	for i := range n {
		pod := benchPod(i)
		pod.Status.Conditions = nil // they have the time of the test
		pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		raw, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		raws = append(raws, raw)
	}
	return raws
}

func podDecoder(t testing.TB) *Decoder {
	d, err := NewDecoder(reflect.TypeFor[*corev1.Pod](), corev1.SchemeGroupVersion.WithKind("Pod"), false)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func decodePod(t testing.TB, d *Decoder, raw []byte) *corev1.Pod {
	item := d.protobufItem(raw, decodelimit.Alone())
	if item.Err != nil {
		t.Fatal(item.Err)
	}
	return item.Object.(*corev1.Pod)
}

func TestDecoder_ObjectsShareTheirParts_D2(t *testing.T) {
	d := podDecoder(t)
	var last, earlier *corev1.Pod
	var first, later uint32
	for i, raw := range podBytes(t, 6) {
		item := d.protobufItem(raw, decodelimit.Alone())
		if item.Err != nil || item.Heap == 0 {
			t.Fatalf("item %+v, want an object and its memory", item)
		}
		if i == 0 {
			first = item.Heap
		}
		earlier, last, later = last, item.Object.(*corev1.Pod), item.Heap
	}
	if reflect.ValueOf(last.Labels).Pointer() != reflect.ValueOf(earlier.Labels).Pointer() || &last.Spec.Containers[0] != &earlier.Spec.Containers[0] {
		t.Error("Pods of one owner do not share labels and containers")
	}
	if later > first/2 {
		t.Errorf("the last Pod takes %d bytes, the first %d: it is to take less than half", later, first)
	}
}

// A transform may write to its object.
func TestDecoder_ObjectsToBeModifiedShareOnlyStrings_D2(t *testing.T) {
	d := podDecoder(t).keeping(Kept{})
	raws := podBytes(t, 6)
	for _, raw := range raws {
		pod := decodePod(t, d, raw)
		pod.Labels["app"], pod.Spec.NodeSelector["disk"], pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Env[0].Value = "x", "x", "x", "x"
	}
	pod, want := decodePod(t, d, raws[5]), new(corev1.Pod)
	if err := want.Unmarshal(raws[5]); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(pod.Labels, want.Labels) || !reflect.DeepEqual(pod.Spec, want.Spec) {
		t.Error("what a transform did to one Pod is in the next")
	}
}

func TestDecoder_ModifiedPartIsNotInTheNextObject_D2(t *testing.T) {
	for name, test := range map[string]struct {
		kept  Kept
		found func(*Decoder)
	}{
		"after it was detected":     {Kept{Parts: true}, func(d *Decoder) { d.plans.table.Reset() }},
		"in a test that checks all": {Kept{Parts: true, Checked: true}, func(*Decoder) {}},
	} {
		d := podDecoder(t).keeping(test.kept)
		raws := podBytes(t, 6)
		for _, raw := range raws[:4] {
			decodePod(t, d, raw)
		}
		pod := decodePod(t, d, raws[4])
		pod.Labels["app"] = "modified"
		test.found(d)
		if next := decodePod(t, d, raws[5]); next.Labels["app"] != "web" {
			t.Errorf("%s: the next Pod has the label %q, want that of its bytes", name, next.Labels["app"])
		}
	}
}

// What the plan leaves to the type reads as before: fields in another order, and
// metadata in two pieces.
func TestDecoder_UnusualMessageIsLeftToTheType_D1(t *testing.T) {
	d := podDecoder(t)
	raw := podBytes(t, 1)[0]
	meta := metav1.ObjectMeta{Name: "web", Namespace: "other", Labels: map[string]string{"b": "c"}}
	more, err := meta.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	unusual := slices.Concat(raw, []byte{10, byte(len(more))}, more)
	var want corev1.Pod
	if err := want.Unmarshal(unusual); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := d.byPlan(unusual); ok {
		t.Fatal("the plan reads it; this tests nothing")
	}
	item := d.protobufItem(unusual, decodelimit.Alone())
	want.ManagedFields, want.TypeMeta = nil, metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	if item.Err != nil || item.Key.Namespace != want.Namespace || !reflect.DeepEqual(item.Object, &want) {
		t.Errorf("decoded %v, error %v, want %v", item.Object, item.Err, &want)
	}
}

func TestDecoder_RefusalIsThatOfTheType_D1(t *testing.T) {
	d := podDecoder(t)
	raw := podBytes(t, 1)[0]
	broken := slices.Concat(raw, []byte{24, 1}) // a status that is a number
	var pod corev1.Pod
	want := pod.Unmarshal(broken)
	item := d.protobufItem(broken, decodelimit.Alone())
	if want == nil || item.Err == nil || !strings.Contains(item.Err.Error(), want.Error()) || item.Key.Name == "" || item.Metadata == nil {
		t.Errorf("item %s with error %v, want the key, the metadata and the error %v", item.Key, item.Err, want)
	}
}

// The kinds of one server have their parts in common.
func TestDecoder_KindsShareParts_D2(t *testing.T) {
	plans := newPlans()
	pods, err := newDecoder(reflect.TypeFor[*corev1.Pod](), corev1.SchemeGroupVersion.WithKind("Pod"), Kept{Parts: true}, plans)
	if err != nil {
		t.Fatal(err)
	}
	deployments, err := newDecoder(reflect.TypeFor[*appsv1.Deployment](), appsv1.SchemeGroupVersion.WithKind("Deployment"), Kept{Parts: true}, plans)
	if err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	deployment.Spec.Template.Spec = fixture.SeedPod("web").Spec
	deployment.Spec.Template.Spec.Containers = benchPod(0).Spec.Containers
	of, err := deployment.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var pod *corev1.Pod
	for _, raw := range podBytes(t, 3) {
		pod = decodePod(t, pods, raw)
	}
	item := deployments.protobufItem(of, decodelimit.Alone())
	if item.Err != nil || &item.Object.(*appsv1.Deployment).Spec.Template.Spec.Containers[0] != &pod.Spec.Containers[0] {
		t.Errorf("the template's containers are not those of its Pods (%v)", item.Err)
	}
}
