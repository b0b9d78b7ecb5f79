// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
	"github.com/flyball-dev/flyball/source"
)

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"k": "v"}}
}

// site is a kind that no server has.
type site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              string `json:"spec"`
}

func (s *site) DeepCopyObject() runtime.Object {
	out := *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func withSites(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Site"}, &site{})
	return scheme
}

func TestNew_HasTheObjectsAndAnswers(t *testing.T) {
	given := configMap("shop", "a")
	server := simtest.New(t, withSites(t), given, &site{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s"}, Spec: "x"})
	got := configMap("shop", "a")
	if err := server.Client.Get(t.Context(), kube.KeyOf(got), got); err != nil || got.UID == "" || given.UID != "" {
		t.Errorf("the object is %v, %v, want it with a UID, and the given one as it was", got, err)
	}
	s := &site{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s"}}
	if err := server.Client.Get(t.Context(), kube.KeyOf(s), s); err != nil || s.Spec != "x" {
		t.Errorf("an object of a kind of the scheme is %+v, %v", s, err)
	}
	if err := server.Client.Create(t.Context(), configMap("shop", "b")); err != nil {
		t.Error(err)
	}
}

// Programs put values into unstructured objects that no decoder makes, and every write takes them.
func TestNew_TakesEveryValueThatAWriteTakes_B25(t *testing.T) {
	site := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "a", "labels": map[string]string{"app": "a"}},
		"spec": map[string]any{"replicas": 2, "selector": map[string]any{"matchLabels": map[string]string{"app": "a"}}},
	}}
	server := simtest.New(t, nil, site)
	again := kube.Copy(site)
	again.SetName("b")
	again.Object["spec"].(map[string]any)["replicas"] = 3
	if _, err := server.Put(again); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int32{"a": 2, "b": 3} {
		got := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		if err := server.Client.Get(t.Context(), kube.KeyOf(got), got); err != nil || *got.Spec.Replicas != want || got.Spec.Selector.MatchLabels["app"] != "a" {
			t.Errorf("%s is %v, %v, want %d replicas", name, got.Spec, err, want)
		}
	}
}

// A manager runs on it in a bubble, and nothing is left when the test ends.
func TestNew_InABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, nil, configMap("default", "a"))
		mgr, err := manager.New(manager.Options{Config: server.Config, MetricsAddress: "0", HealthAddress: "0"})
		if err != nil {
			t.Fatal(err)
		}
		seen := make(chan reconcile.Key, 10)
		c := reconcile.New("seer", func(_ context.Context, key reconcile.Key) (reconcile.Result, error) {
			seen <- key
			return reconcile.Result{}, nil
		}, reconcile.Options{})
		c.Watch(source.Kind(informer.For[*corev1.ConfigMap](mgr.Informers()), source.Self))
		if err := mgr.Add(c); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- mgr.Run(ctx) }()
		select {
		case key := <-seen:
			if key.Name != "a" {
				t.Errorf("reconciled %s, want a", key)
			}
		case <-time.After(time.Minute):
			t.Error("nothing is reconciled in a minute")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
