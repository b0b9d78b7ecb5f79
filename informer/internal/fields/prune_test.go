// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package fields_test

import (
	"encoding/json"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/informer/internal/fields"
)

func pod() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Namespace: "prod", UID: "u", ResourceVersion: "7", Generation: 2, Labels: map[string]string{"app": "a"},
			Annotations: map[string]string{"note": "long"}, Finalizers: []string{"f"}, OwnerReferences: []metav1.OwnerReference{{Name: "o", Kind: "ReplicaSet"}},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: corev1.PodSpec{
			NodeName: "n1",
			Containers: []corev1.Container{
				{Name: "c", Image: "i:1", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}}},
				{Name: "d", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}},
			},
			Volumes:         []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}, Optional: new(true)}}}},
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(5))},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"},
	}
}

func TestPrune_KeepsWhatIsNamed_D4(t *testing.T) {
	kept := func(change func(p *corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{TypeMeta: pod().TypeMeta, ObjectMeta: pod().ObjectMeta}
		p.Annotations, p.ManagedFields = nil, nil
		change(p)
		return p
	}
	for _, c := range []struct {
		paths []string
		want  *corev1.Pod
	}{
		{nil, kept(func(*corev1.Pod) {})},
		{[]string{"spec.nodeName", "status.phase"}, kept(func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning })},
		{[]string{"metadata.annotations"}, kept(func(p *corev1.Pod) { p.Annotations = pod().Annotations })},
		{[]string{"metadata"}, kept(func(p *corev1.Pod) { p.ObjectMeta = pod().ObjectMeta })},
		{[]string{"status"}, kept(func(p *corev1.Pod) { p.Status = pod().Status })},
		{[]string{"spec.containers.image"}, kept(func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{{Image: "i:1"}, {}} })},
		{[]string{"spec.containers.resources.limits"}, kept(func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}}}, {}}
		})},
		{[]string{"spec.volumes.configMap.name"}, kept(func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}}}
		})},
		{[]string{"spec.securityContext.runAsGroup"}, kept(func(p *corev1.Pod) { p.Spec.SecurityContext = &corev1.PodSecurityContext{} })},
	} {
		got := pod()
		fields.Prune(got, parsed(t, c.paths...))
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("pruned to %q:\n%s\nwant\n%s", c.paths, asJSON(t, got), asJSON(t, c.want))
		}
	}
	whole := pod()
	if fields.Prune(whole, nil); !reflect.DeepEqual(whole, pod()) {
		t.Errorf("pruned to everything: %s", asJSON(t, whole))
	}
}

func TestPrune_TreeAsType_D4(t *testing.T) {
	for _, paths := range [][]string{
		nil, {"spec.nodeName"}, {"spec.containers.image", "status.phase"}, {"metadata.annotations"}, {"metadata"}, {"spec"}, {"spec.containers.resources.limits"},
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod())
		if err != nil {
			t.Fatal(err)
		}
		tree := &unstructured.Unstructured{Object: content}
		s := parsed(t, paths...)
		fields.Prune(tree, s)
		typed, fromTree := pod(), &corev1.Pod{}
		fields.Prune(typed, s)
		if err := json.Unmarshal([]byte(asJSON(t, tree)), fromTree); err != nil {
			t.Fatal(err)
		}
		if got, want := asJSON(t, fromTree), asJSON(t, typed); got != want {
			t.Errorf("pruned to %q the tree is\n%s\nand the Pod\n%s", paths, got, want)
		}
	}
}

func TestPrune_KeepsAnnotationOfTree_D4(t *testing.T) {
	tree := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "a", "annotations": map[string]any{"example.com/a": "1", "b": "2"}},
		"spec":     []any{map[string]any{"x": "1", "y": "2"}, "word", nil},
	}}
	fields.Prune(tree, parsed(t, `metadata.annotations.example\.com/a`, "spec.x"))
	want := map[string]any{
		"metadata": map[string]any{"name": "a", "annotations": map[string]any{"example.com/a": "1"}},
		"spec":     []any{map[string]any{"x": "1"}, "word", nil},
	}
	if !reflect.DeepEqual(tree.Object, want) {
		t.Errorf("pruned tree is %v, want %v", tree.Object, want)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
