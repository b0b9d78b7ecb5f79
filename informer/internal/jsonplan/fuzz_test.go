// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
)

// examplePod returns a Pod in JSON that has most of what Pods have.
func examplePod(t testing.TB) string {
	pod := fixture.SeedPod("web-5d4f8c7b9-00001")
	now := metav1.Now().Rfc3339Copy()
	seconds, yes := int64(30), true
	pod.UID, pod.ResourceVersion, pod.CreationTimestamp = "0b1c5e42-3a1c-4a4b-8a4b-0d7a4c9a3f77", "12345", now
	pod.Labels = map[string]string{"app": "web", "tier": "front", "größe": "ÿ\u2028"}
	pod.Annotations = map[string]string{"note": "a \"quoted\" <text>\n"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d4f8c7b9", UID: "u", Controller: &yes}}
	pod.Spec.TerminationGracePeriodSeconds = &seconds
	pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers = []corev1.Container{{
		Name: "web", Image: "registry.example.com/team/web:v1", Args: []string{"-a", ""},
		Env:            []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}},
		Ports:          []corev1.ContainerPort{{ContainerPort: 8080, Protocol: "TCP"}},
		Resources:      corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("1Gi")}},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")}}},
		LivenessProbe:  &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(8080)}}},
	}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", StartTime: &now, Conditions: []corev1.PodCondition{{Type: "Ready", Status: "True", LastTransitionTime: now}}}
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const exampleFleet = `{"apiVersion":"fleet.example.com/v1","kind":"Fleet","metadata":{"name":"a","namespace":"b","labels":{"app":"web"},"generation":3,"creationTimestamp":"2024-05-06T07:08:09Z"},` +
	`"spec":{"image":"x:1","options":{"a":"b"},"replicas":3,"resources":{"limits":{"cpu":"1"}},"selector":{"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]},"template":{"a":[1,{}]},"weights":[1,0.5,1e3],` +
	`"windows":[{"for":"1h","from":"2024-05-06T07:08:09Z"},{}]},"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2024-05-06T07:08:09+02:00","reason":"","message":"\u00e9"}],"observedGeneration":3}}`

func fuzz(f *testing.F, n int) {
	f.Add(examplePod(f))
	f.Add(exampleFleet)
	names := fieldNames(subjects(f)[n].plan.typ)
	for i := n; i < len(values); i += 4 {
		f.Add(`{"` + names[i%len(names)] + `":` + values[i] + `,"` + names[i*7%len(names)] + `":` + values[i*5%len(values)] + `}`)
	}
	s := subjects(f)[n]
	f.Fuzz(func(t *testing.T, text string) { s.agrees(t, text) })
}

func FuzzPlan_OddAsTheReference_D1(f *testing.F)          { fuzz(f, 0) }
func FuzzPlan_PodAsTheReference_D1(f *testing.F)          { fuzz(f, 1) }
func FuzzPlan_CustomAsTheReference_D1(f *testing.F)       { fuzz(f, 2) }
func FuzzPlan_UnstructuredAsTheReference_D1(f *testing.F) { fuzz(f, 3) }
