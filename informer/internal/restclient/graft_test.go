// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"encoding/json"
	"reflect"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/kube"
)

// transforms are what operators do to cached objects, and what they should not do.
func transforms() map[string]func(kube.Object) {
	kept := map[string]string{"team": "a", "tier": "b"} // one map in all objects
	var before []kube.Object
	annotations := func(o kube.Object, change func(map[string]string)) {
		m := o.GetAnnotations()
		change(m)
		o.SetAnnotations(m)
	}
	return map[string]func(kube.Object){
		"nothing":               func(kube.Object) {},
		"strips managed fields": func(o kube.Object) { o.SetManagedFields(nil) },
		"strips the kind": func(o kube.Object) {
			o.GetObjectKind().SetGroupVersionKind(fixture.PodKind.GroupVersion().WithKind(""))
		},
		"removes annotations":     func(o kube.Object) { o.SetAnnotations(nil) },
		"deletes one in place":    func(o kube.Object) { annotations(o, func(m map[string]string) { delete(m, "note") }) },
		"gives all the same map":  func(o kube.Object) { o.SetLabels(kept) },
		"changes some in place":   changeInPlace,
		"keeps the object before": func(o kube.Object) { before = append(before, o) },
	}
}

// changeInPlace changes what is deep inside of the objects whose names end in 3.
func changeInPlace(o kube.Object) {
	if name := o.GetName(); name[len(name)-1] != '3' {
		return
	}
	switch o := o.(type) {
	case *corev1.Pod:
		o.Spec.Containers[0].Image = "changed"
		o.Spec.NodeSelector["disk"] = "changed"
	case *unstructured.Unstructured:
		spec := o.Object["spec"].(map[string]any)
		spec["containers"].([]any)[0].(map[string]any)["image"] = "changed"
		spec["nodeSelector"].(map[string]any)["disk"] = "changed"
	}
}

// Whatever a transform does, an object is what the transform made of it alone, and shares the parts
// that are as they were.
func TestGrafter_TransformedObjectsShareTheirParts_D2(t *testing.T) {
	const n = 12
	for name, transform := range transforms() {
		for _, form := range []string{"protobuf", "JSON", "unstructured"} {
			t.Run(name+" "+form, func(t *testing.T) {
				typ := reflect.TypeFor[*corev1.Pod]()
				if form == "unstructured" {
					typ = reflect.TypeFor[*unstructured.Unstructured]()
				}
				d, err := newDecoder(typ, fixture.PodKind, Kept{ManagedFields: true, Alone: true}, newPlans())
				if err != nil {
					t.Fatal(err)
				}
				g := &Grafter{decoder: d.keeping(Kept{ManagedFields: true, Parts: true}), own: map[unsafe.Pointer]bool{}}
				var got, want [n]kube.Object
				for i := range n {
					raw := graftedBytes(t, i, form)
					decode := func() kube.Object {
						item := d.jsonItem(raw, false, decodelimit.Alone())
						if form == "protobuf" {
							item = d.protobufItem(raw, decodelimit.Alone())
						}
						if item.Err != nil {
							t.Fatal(item.Err)
						}
						return item.Object
					}
					want[i] = decode()
					transform(want[i])
					item := d.item(decode(), len(raw), raw, nil)
					g.Begin(item)
					transform(item.Object)
					got[i] = g.End(item).Object
				}
				for i := range n {
					if !reflect.DeepEqual(got[i], want[i]) {
						t.Fatalf("object %d is\n%+v, want what the transform makes of it alone\n%+v", i, got[i], want[i])
					}
				}
				if a, b := containersOf(got[n-2]), containersOf(got[n-1]); a != b {
					t.Error("two unchanged objects do not share their containers")
				}
				if a, b := containersOf(got[3]), containersOf(got[n-1]); a == b && name == "changes some in place" {
					t.Error("an object that was changed shares its containers")
				}
			})
		}
	}
}

// graftedBytes returns Pod i, of an owner whose Pods differ in their names alone.
func graftedBytes(t *testing.T, i int, form string) []byte {
	pod := benchPod(i)
	pod.Status.Conditions = nil
	pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	pod.Annotations = map[string]string{"note": "n", "other": "o"}
	pod.APIVersion, pod.Kind = "v1", "Pod"
	raw, err := json.Marshal(pod)
	if form == "protobuf" {
		raw, err = pod.Marshal()
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func containersOf(o kube.Object) unsafe.Pointer {
	if pod, ok := o.(*corev1.Pod); ok {
		return unsafe.Pointer(unsafe.SliceData(pod.Spec.Containers))
	}
	return reflect.ValueOf(o.(*unstructured.Unstructured).Object["spec"].(map[string]any)["containers"]).UnsafePointer()
}

// An object that the transform has made is not touched.
func TestGrafter_OtherObjectsStay_D2(t *testing.T) {
	d, err := newDecoder(reflect.TypeFor[*corev1.Pod](), fixture.PodKind, Kept{Alone: true}, newPlans())
	if err != nil {
		t.Fatal(err)
	}
	g := &Grafter{decoder: d.keeping(Kept{Parts: true}), own: map[unsafe.Pointer]bool{}}
	var labels map[string]string
	for i := range 4 {
		item := d.protobufItem(graftedBytes(t, i, "protobuf"), decodelimit.Alone())
		g.Begin(item)
		copied := kube.Copy(item.Object).(*corev1.Pod)
		labels = copied.Labels
		item.Object = copied
		if got := g.End(item).Object.(*corev1.Pod); got != copied || reflect.ValueOf(got.Labels).Pointer() != reflect.ValueOf(labels).Pointer() {
			t.Fatal("an object that is the transform's own was given shared parts")
		}
	}
}
