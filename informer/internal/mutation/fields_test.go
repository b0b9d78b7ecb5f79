// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/internal/fielddiff"
)

func podOfAllKinds() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Labels: map[string]string{"app": "a"}, Finalizers: []string{"x"},
			CreationTimestamp: metav1.NewTime(time.Unix(1000, 0)),
		},
		Spec: corev1.PodSpec{
			NodeName: "n",
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi")},
			}}},
			TerminationGracePeriodSeconds: new(int64(30)),
		},
	}
}

func TestDifferences_NameTheFields_B4(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"nothing":          {func(*corev1.Pod) {}, ""},
		"a label":          {func(p *corev1.Pod) { p.Labels["app"] = "b" }, `.metadata.labels["app"]`},
		"a new label":      {func(p *corev1.Pod) { p.Labels["a.b/c"] = "" }, `.metadata.labels["a.b/c"]`},
		"no label":         {func(p *corev1.Pod) { delete(p.Labels, "app") }, `.metadata.labels["app"]`},
		"empty is nothing": {func(p *corev1.Pod) { p.Annotations, p.Spec.Volumes = map[string]string{}, []corev1.Volume{} }, ""},
		"a list":           {func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "y") }, ".metadata.finalizers"},
		"in a list":        {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "i" }, ".spec.containers[0].image"},
		"behind a pointer": {func(p *corev1.Pod) { *p.Spec.TerminationGracePeriodSeconds = 1 }, ".spec.terminationGracePeriodSeconds"},
		"no pointer":       {func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = nil }, ".spec.terminationGracePeriodSeconds"},
		"a time":           {func(p *corev1.Pod) { p.CreationTimestamp.Time = time.Unix(1001, 0) }, ".metadata.creationTimestamp"},
		"a quantity": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
		}, `.spec.containers[0].resources.limits["cpu"]`},
		"a quantity in other words": {func(p *corev1.Pod) {
			q := p.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU]
			_ = q.AsDec() // as its methods do
			p.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = q
		}, ""},
		"two": {func(p *corev1.Pod) { p.Name, p.Spec.NodeName = "b", "m" }, ".metadata.name .spec.nodeName"},
	} {
		was, is := podOfAllKinds(), podOfAllKinds()
		test.change(is)
		if got := strings.Join(differences(was, is), " "); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	was, is := podOfAllKinds(), podOfAllKinds()
	for i := range 100 {
		is.Labels[fmt.Sprint(i)] = ""
	}
	if got := len(differences(was, is)); got != fielddiff.Most {
		t.Errorf("%d fields are named, want %d at most", got, fielddiff.Most)
	}
}

func TestDifferences_OfUnstructuredReadAsJSON_B4(t *testing.T) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(podOfAllKinds())
	if err != nil {
		t.Fatal(err)
	}
	was := &unstructured.Unstructured{Object: content}
	is := was.DeepCopy()
	if got := differences(was, is); got != nil {
		t.Errorf("got %q, want none of a copy", got)
	}
	_ = unstructured.SetNestedField(is.Object, "m", "spec", "nodeName")
	_ = unstructured.SetNestedField(is.Object, "m", "metadata", "labels", "a.b/c")
	got := strings.Join(differences(was, is), " ")
	if !strings.Contains(got, ".spec.nodeName") || !strings.Contains(got, `.metadata.labels["a.b/c"]`) {
		t.Errorf("got %q, want .spec.nodeName and the label", got)
	}
}

func BenchmarkDifferences(b *testing.B) {
	was, is := podOfAllKinds(), podOfAllKinds()
	b.ReportAllocs()
	for b.Loop() {
		if differences(was, is) != nil {
			b.Fatal("they differ")
		}
	}
}
