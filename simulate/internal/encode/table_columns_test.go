// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

func row(t *testing.T, k *kinds.Kind, obj *object.Object) string {
	t.Helper()
	columns := columnsOf(k)
	cells, err := columns.Cells(obj)
	if err != nil || len(cells) != len(columns.Heads) {
		t.Fatalf("%s: got %d cells under %d heads (%v)", k.Kind, len(cells), len(columns.Heads), err)
	}
	return strings.TrimSpace(fmt.Sprintln(cells[:min(5, len(cells))]...))
}

// A row of Pods tells what hinders the Pod, and how often it was restarted.
func TestOf_Pods(t *testing.T) {
	kind := kinds.NewRegistry().Lookup(schema.GroupVersion{Version: "v1"}, "pods")
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for _, c := range []struct {
		want   string
		change func(p *corev1.Pod)
	}{
		{"a 0/1 Pending 0 60s", func(*corev1.Pod) {}},
		{"a 1/1 Running 2 60s", func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Ready: true, RestartCount: 2, State: running}}
		}},
		{"a 0/1 CrashLoopBackOff 0 60s", func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: waiting("CrashLoopBackOff")}}
		}},
		{"a 0/1 Init:ExitCode:3 0 60s", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "i", State: ended}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: waiting("PodInitializing")}}
		}},
		{"a 0/1 Terminating 0 60s", func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.Now()}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
			pod.Spec.Containers = []corev1.Container{{Name: "c"}}
			c.change(pod)
			obj, err := object.ObjectOf(pod)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if got := row(t, kind, obj); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestOf_CustomColumns(t *testing.T) {
	kind := kinds.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Widget"}}
	kind.Columns = []apiextensionsv1.CustomResourceColumnDefinition{
		{Name: "Color", Type: "string", JSONPath: ".spec.color"}, {Name: "Size", Type: "integer", JSONPath: ".spec.size"}, {Name: "None", Type: "string", JSONPath: ".spec.none"},
	}
	obj := &object.Object{Fields: map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"color": "red", "size": int64(3)}}}
	if got, want := row(t, kind.Completed(), obj), "a red 3 <nil>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
