// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/kube"
)

// Website is a custom resource.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WebsiteSpec   `json:"spec"`
	Status WebsiteStatus `json:"status,omitempty"`
}

type WebsiteSpec struct {
	Content  string `json:"content"`
	Host     string `json:"host,omitempty"`
	Replicas *int32 `json:"replicas,omitempty"`
}

type WebsiteStatus struct {
	Replicas int32  `json:"replicas"`
	URL      string `json:"url,omitempty"`
}

func (w *Website) DeepCopyObject() runtime.Object {
	c := *w
	c.ObjectMeta = *w.ObjectMeta.DeepCopy()
	if w.Spec.Replicas != nil {
		replicas := *w.Spec.Replicas
		c.Spec.Replicas = &replicas
	}
	return &c
}

var (
	websiteKind    = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Website"}
	plainKind      = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Plain"}
	configMapKind  = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	podKind        = corev1.SchemeGroupVersion.WithKind("Pod")
	namespaceKind  = corev1.SchemeGroupVersion.WithKind("Namespace")
	deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")
)

func addWebsites(scheme *runtime.Scheme) {
	scheme.AddKnownTypeWithName(websiteKind, &Website{})
}

func at(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// asRead returns obj as it was read from the server.
func asRead[T kube.Object](obj T) T {
	obj.SetResourceVersion("6")
	return obj
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: at("", name)}
}

func configMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: at(namespace, name), Data: data}
}

func website(namespace, name string) *Website {
	return &Website{ObjectMeta: at(namespace, name), Spec: WebsiteSpec{Content: "hello"}}
}

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: at(namespace, name), Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}},
	}}
}

func deployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: at(namespace, name), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       pod("", "").Spec,
		},
	}}
}

// recorder is an Observer that records the writes it receives.
type recorder struct {
	mu struct {
		sync.Mutex
		got     []kube.Written
		waiting []waiting
	}
}

type waiting struct {
	kind schema.GroupVersionKind
	key  kube.Key
	than kube.Version
	do   func()
}

func (r *recorder) Observe(w kube.Written) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.got = append(r.mu.got, w)
}

func (r *recorder) WhenPassed(kind schema.GroupVersionKind, key kube.Key, than kube.Version, do func()) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.waiting = append(r.mu.waiting, waiting{kind, key, than, do})
	return func() {}
}

// take returns the writes received since the last take.
func (r *recorder) take() []kube.Written {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := slices.Clone(r.mu.got)
	r.mu.got = nil
	return got
}

func (r *recorder) waits() []waiting {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.mu.waiting)
}
