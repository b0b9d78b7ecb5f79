// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"runtime"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/kube"
)

var (
	deployments    = schema.GroupResource{Group: "apps", Resource: "deployments"}
	deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")
)

func deployment(name string) *appsv1.Deployment {
	app := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: app},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: app},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main"}}},
			},
		},
	}
}

// forms returns an empty Deployment in each form.
func forms() []client.Object {
	loose, metadata := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
	loose.SetGroupVersionKind(deploymentKind)
	metadata.SetGroupVersionKind(deploymentKind)
	return []client.Object{&appsv1.Deployment{}, loose, metadata}
}

// While the watches show nothing new, each form of the cache has each write at once, and a dry
// run never. An unstructured one asks the server first about an answer in protobuf, which does
// not show all fields.
func TestClient_ReadsItsWritesWhileTheWatchLags(t *testing.T) {
	server, c, cl := started(t, cache.Options{})
	for _, form := range forms() {
		if _, err := c.GetInformer(t.Context(), form); err != nil {
			t.Fatal(err)
		}
	}
	server.LagKindTo(deployments, server.Revision())
	d := deployment("web")
	apply := appsac.Deployment("web", "default").WithLabels(map[string]string{"applied": "yes"}).
		WithSpec(appsac.DeploymentSpec().WithSelector(metaac.LabelSelector().WithMatchLabels(d.Labels)).
			WithTemplate(coreac.PodTemplateSpec().WithLabels(d.Labels).WithSpec(coreac.PodSpec().WithContainers(coreac.Container().WithName("main").WithImage("main")))))
	ctx := t.Context()
	for _, step := range []struct {
		name  string
		write func() error
		gone  bool
	}{
		{"create", func() error { return cl.Create(ctx, d) }, false},
		{"update", func() error { d.Labels["updated"] = "yes"; return cl.Update(ctx, d) }, false},
		{"patch", func() error {
			before := d.DeepCopy()
			d.Labels["patched"] = "yes"
			return cl.Patch(ctx, d, client.MergeFrom(before))
		}, false},
		{"update of the status", func() error { d.Status.ObservedGeneration = 7; return cl.Status().Update(ctx, d) }, false},
		{"patch of the status", func() error {
			before := d.DeepCopy()
			d.Status.ObservedGeneration = 8
			return cl.Status().Patch(ctx, d, client.MergeFrom(before))
		}, false},
		{"apply", func() error {
			if err := cl.Apply(ctx, apply, client.FieldOwner("test"), client.ForceOwnership); err != nil {
				return err
			}
			d.ResourceVersion = *apply.ResourceVersion
			return nil
		}, false},
		{"dry run", func() error { return cl.Update(ctx, d.DeepCopy(), client.DryRunAll) }, false},
		{"finalizer", func() error { d.Finalizers = []string{"example.org/hold"}; return cl.Update(ctx, d) }, false},
		{"delete that waits", func() error {
			if err := cl.Delete(ctx, d.DeepCopy()); err != nil {
				return err
			}
			return cl.Get(ctx, client.ObjectKeyFromObject(d), d)
		}, false},
		{"last finalizer", func() error { d.Finalizers = nil; return cl.Update(ctx, d) }, true},
		{"create again", func() error { d = deployment("web"); return cl.Create(ctx, d) }, false},
		{"delete", func() error { return cl.Delete(ctx, d) }, true},
		{"create once more", func() error { d = deployment("web"); return cl.Create(ctx, d) }, false},
		{"delete all of", func() error { return cl.DeleteAllOf(ctx, d, client.InNamespace("default")) }, true},
	} {
		if err := step.write(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		for _, form := range forms() {
			err := cl.Get(ctx, client.ObjectKeyFromObject(d), form)
			for _, loose := form.(*unstructured.Unstructured); loose && errors.As(err, new(*kube.NotSettledError)) && ctx.Err() == nil; {
				runtime.Gosched()
				err = cl.Get(ctx, client.ObjectKeyFromObject(d), form)
			}
			switch {
			case step.gone && !apierrors.IsNotFound(err):
				t.Errorf("after %s the %T is read with %v, want that it is not found", step.name, form, err)
			case !step.gone && (err != nil || form.GetResourceVersion() != d.ResourceVersion):
				t.Errorf("after %s the %T is at version %q with %v, want %q", step.name, form, form.GetResourceVersion(), err, d.ResourceVersion)
			}
		}
	}
	if d.DeletionTimestamp == nil && d.UID == "" {
		t.Error("nothing was written; the test looks at nothing")
	}
}

// controller-runtime's own mode makes reads wait for the watch. The bridge needs it not, so no read waits.
func TestClient_NoReadWaitsForAWrite(t *testing.T) {
	server, c, _ := started(t, cache.Options{})
	if _, err := c.GetInformer(t.Context(), &corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	reads := &client.CacheOptions{Reader: c}
	(&waiting{CacheOptions: reads}).EnableReadYourWritesConsistency = new(true)
	cl, err := NewClient(server.Config, client.Options{Cache: reads})
	if err != nil {
		t.Fatal(err)
	}
	server.LagKindTo(configMaps, server.Revision())
	made := configMap("default", "a", nil)
	if err := cl.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := cl.Get(ended, client.ObjectKeyFromObject(made), made); err != nil {
		t.Errorf("a read after a write waits: %v", err)
	}
}
