// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package fielddiff_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flyball-dev/flyball/internal/fielddiff"
	"github.com/flyball-dev/flyball/kube"
)

const secret = "s3cr3t"

func deployment() *appsv1.Deployment {
	one := intstr.FromInt32(1)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "prod", Name: "web", ResourceVersion: "7", Generation: 1, Labels: map[string]string{"app": "web"},
		CreationTimestamp: metav1.Unix(1000, 0), Finalizers: []string{"a"},
	}}
	d.Spec.Replicas = new(int32(2))
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &one}
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "web", Image: "web:1",
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("500m")}},
	}}
	return d
}

func said(f fielddiff.Fields) string {
	text := strings.Join(f.Paths, " ")
	if f.More > 0 {
		text += fmt.Sprint(" +", f.More)
	}
	return strings.TrimSpace(text)
}

func TestBetween_NamesWhatHasChanged_R29(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(d *appsv1.Deployment)
		want   string
	}{
		{"nothing", func(*appsv1.Deployment) {}, ""},
		{"a field", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) }, "spec.replicas"},
		{"a field that was not set", func(d *appsv1.Deployment) { d.Spec.Paused = true }, "spec.paused"},
		{"a label", func(d *appsv1.Deployment) { d.Labels["app.kubernetes.io/name"] = secret }, `metadata.labels["app.kubernetes.io/name"]`},
		{"no labels", func(d *appsv1.Deployment) { d.Labels = nil }, `metadata.labels["app"]`},
		{"in a list", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = secret }, "spec.template.spec.containers[0].image"},
		{"a longer list", func(d *appsv1.Deployment) { d.Finalizers = append(d.Finalizers, secret) }, "metadata.finalizers"},
		{"status and spec", func(d *appsv1.Deployment) { d.Status.Replicas, d.Spec.Replicas = 1, nil }, "spec.replicas status.replicas"},
		{"an IntOrString", func(d *appsv1.Deployment) {
			percent := intstr.FromString("10%")
			d.Spec.Strategy.RollingUpdate.MaxSurge = &percent
		}, "spec.strategy.rollingUpdate.maxSurge"},
		{"a time", func(d *appsv1.Deployment) { d.CreationTimestamp = metav1.Unix(1001, 0) }, "metadata.creationTimestamp"},
		{"a time in another zone", func(d *appsv1.Deployment) {
			d.CreationTimestamp = metav1.NewTime(d.CreationTimestamp.In(time.FixedZone("", 3600)))
		}, ""},
		{"a quantity in other words", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("0.5")
		}, ""},
		{"empty is nil", func(d *appsv1.Deployment) {
			d.Annotations, d.OwnerReferences = map[string]string{}, []metav1.OwnerReference{}
		}, ""},
		{"bookkeeping", func(d *appsv1.Deployment) {
			d.ResourceVersion, d.Generation, d.ManagedFields = "8", 2, []metav1.ManagedFieldsEntry{{Manager: "x"}}
			d.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		}, ""},
		{"the bookkeeping of a part", func(d *appsv1.Deployment) { d.Spec.Template.Generation = 2 }, "spec.template.metadata.generation"},
		{"more than eight", func(d *appsv1.Deployment) {
			for i := range 12 {
				d.Labels[fmt.Sprintf("l%02d", i)] = secret
			}
		}, `metadata.labels["l00"] metadata.labels["l01"] metadata.labels["l02"] metadata.labels["l03"] ` +
			`metadata.labels["l04"] metadata.labels["l05"] metadata.labels["l06"] metadata.labels["l07"] +4`},
		{"a long name", func(d *appsv1.Deployment) { d.Labels[strings.Repeat("x", 500)] = "" }, `metadata.labels["` + strings.Repeat("x", 80) + `"]`},
	} {
		was, is := deployment(), deployment()
		row.change(is)
		if got := said(fielddiff.Between(was, is)); got != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
		a, b := tree(t, was), tree(t, is)
		got, want := said(fielddiff.Between(a, b)), row.want
		switch row.name {
		case "no labels":
			want = "metadata.labels" // the whole map is missing
		case "a time in another zone", "a quantity in other words":
			continue // text in a tree
		}
		// Maps of a tree are structs and maps alike, and their keys are sorted.
		plain := strings.NewReplacer(`labels["app"]`, "labels.app", `["l`, ".l", `"]`, "").Replace
		if row.name == "a label" || row.name == "a long name" {
			plain = func(s string) string { return s }
		}
		if row.name == "a long name" {
			continue
		}
		if plain(got) != plain(want) {
			t.Errorf("%s, unstructured: got %q, want %q", row.name, got, want)
		}
	}
}

func tree(t *testing.T, obj kube.Object) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: fields}
}

// The names of what a Secret has may be chosen by its user as freely as the values.
func TestBetween_NamesNothingInASecret_R29(t *testing.T) {
	was := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string][]byte{secret: []byte("x")}}
	is := was.DeepCopy()
	is.Data[secret], is.Data["other"], is.Labels, is.Type = []byte("y"), []byte(secret), map[string]string{"a": secret}, "Opaque"
	if got, want := said(fielddiff.Between(was, is)), `metadata.labels["a"] data type`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	a, b := tree(t, was), tree(t, is)
	a.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	b.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if got, want := said(fielddiff.Between(a, b)), "data metadata.labels type"; got != want {
		t.Errorf("unstructured: got %q, want %q", got, want)
	}
}

func TestBetween_IsBounded_R29(t *testing.T) {
	was, is := deployment(), deployment()
	for i := range 100_000 {
		was.Finalizers, is.Finalizers = append(was.Finalizers, fmt.Sprint(i)), append(is.Finalizers, fmt.Sprint(i))
	}
	is.Spec.Replicas = nil
	if got := fielddiff.Between(was, is); got.More == 0 {
		t.Errorf("got %v, want that it says that it has not seen all", got)
	}
	is.Finalizers = was.Finalizers
	if got := said(fielddiff.Between(was, is)); got != "spec.replicas" {
		t.Errorf("got %q for objects that share a large list, want spec.replicas: what is shared is not compared", got)
	}
}

func TestBetween_OtherTypesAndNil_R29(t *testing.T) {
	var none *appsv1.Deployment
	for name, got := range map[string]fielddiff.Fields{
		"two nil interfaces": fielddiff.Between(nil, nil),
		"two nil pointers":   fielddiff.Between(none, none),
	} {
		if said(got) != "" {
			t.Errorf("%s: got %v, want no difference", name, got)
		}
	}
	for name, got := range map[string]fielddiff.Fields{
		"a nil interface": fielddiff.Between(nil, deployment()),
		"a nil pointer":   fielddiff.Between(deployment(), none),
		"other types":     fielddiff.Between(deployment(), tree(t, deployment())),
	} {
		if len(got.Paths) != 1 || got.Paths[0] != "" {
			t.Errorf("%s: got %q, want one empty path", name, got.Paths)
		}
	}
}

func BenchmarkBetween(b *testing.B) {
	was, is := deployment(), deployment()
	is.Spec.Replicas = new(int32(3))
	b.ReportAllocs()
	for b.Loop() {
		fielddiff.Between(was, is)
	}
}

func TestUnion(t *testing.T) {
	a, b := &fielddiff.Fields{Paths: []string{"a", "b"}, More: 2}, &fielddiff.Fields{Paths: []string{"b", "c"}, More: 1}
	if got := fielddiff.Union(a, b); !slices.Equal(got.Paths, []string{"a", "b", "c"}) || got.More != 2 || len(a.Paths) != 2 {
		t.Errorf("the union of %v and %v is %v", a, b, got)
	}
	if fielddiff.Union(nil, nil) != nil || fielddiff.Union(a, nil) != a || fielddiff.Union(nil, b) != b {
		t.Error("the union with nothing is not the other one")
	}
	many := &fielddiff.Fields{Paths: strings.Split("1 2 3 4 5 6 7 8", " ")}
	if got := fielddiff.Union(many, b); len(got.Paths) != fielddiff.Most || got.More != 3 {
		t.Errorf("the union of many is %v", got)
	}
}

// The work is bounded, whatever the objects have.
func TestBetween_LargeMapsAreNotComparedInFull(t *testing.T) {
	was, is := &corev1.ConfigMap{Data: map[string]string{}}, &corev1.ConfigMap{Data: map[string]string{}}
	for i := range 60_000 {
		was.Data[strconv.Itoa(i)], is.Data[strconv.Itoa(i)] = "a", "b"
	}
	if got := fielddiff.Between(was, is); len(got.Paths) != 0 || got.More != 1 {
		t.Errorf("60,000 values differ: %d paths and %d more, want one more", len(got.Paths), got.More)
	}
	a, b := &corev1.Secret{Data: map[string][]byte{}}, &corev1.Secret{Data: map[string][]byte{}}
	for i := range 60_000 {
		a.Data[strconv.Itoa(i)], b.Data[strconv.Itoa(i)] = []byte("a"), []byte("b")
	}
	if got := fielddiff.Between(a, b); !slices.Equal(got.Paths, []string{"data"}) {
		t.Errorf("of a large Secret %v are named, want data", got)
	}
}
