// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decodelimit_test

import (
	"encoding/json"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/internal/decodelimit"
)

func TestPlan_BoundIsOfUseForOrdinaryObjects(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Name, pod.Labels = "web-5d4f8c7b9-00001", map[string]string{"app": "web", "tier": "front"}
	pod.Spec.Containers = []corev1.Container{{Name: "web", Image: "example.com/web:v1", Env: []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", Value: "b"}}}}
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	plan := decodelimit.JSONPlanOf(reflect.TypeOf(pod))
	w, err := plan.Weigh(text, decodelimit.Unlimited, nil)
	if bound := plan.Bound(text); err != nil || bound < w.Decoded || bound > 100*w.Decoded {
		t.Errorf("a Pod of %d bytes weighs %d, and the bound is %d (%v); want one that is above, and not by far", len(text), w.Decoded, bound, err)
	}
}

func BenchmarkPlan(b *testing.B) {
	pod := &corev1.Pod{}
	pod.Name, pod.Labels = "web-5d4f8c7b9-00001", map[string]string{"app": "web", "tier": "front"}
	for range 8 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "web", Image: "example.com/web:v1", Env: []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", Value: "b"}}})
	}
	text, _ := json.Marshal(pod)
	plan := decodelimit.JSONPlanOf(reflect.TypeOf(pod))
	for name, f := range map[string]func(){
		"compile": func() { decodelimit.JSONPlanToDecode(reflect.TypeOf(pod)) },
		"bound":   func() { plan.Bound(text) },
		"weigh":   func() { _, _ = plan.Weigh(text, decodelimit.Unlimited, nil) },
		"decode":  func() { _ = json.Unmarshal(text, &corev1.Pod{}) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				f()
			}
		})
	}
}
