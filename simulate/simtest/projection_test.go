// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// What is written of a projected cache leaves on the server what the cache lacks.
func TestProjection_NothingOnTheServerIsLost_D4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		labels := map[string]string{"app": "web"}
		web := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Annotations: map[string]string{"note": "n"}},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(2)), MinReadySeconds: 7, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i:1"}, {Name: "d", Image: "i:2"}}}},
			},
		}
		server := simtest.New(t, nil, web)
		factory, err := informer.NewSharedInformerFactory(server.Config, clientscheme.Scheme, informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		webs := informer.For[*appsv1.Deployment](factory, informer.Scope{Fields: []string{"spec.replicas", "spec.template.spec.containers.image", "status"}})
		c, err := client.New(server.Config, clientscheme.Scheme, client.Options{Observer: factory, FieldOwner: "website"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = factory.Run(ctx) })
		defer wg.Wait()
		defer cancel()
		<-webs.Synced()
		cached := func() *appsv1.Deployment {
			t.Helper()
			obj, err := webs.Lister().Get(kube.KeyOf(web))
			if err != nil {
				t.Fatal(err)
			}
			if obj.Annotations != nil || obj.Spec.Selector != nil || len(obj.Spec.Template.Spec.Containers) != 2 || obj.Spec.Template.Spec.Containers[0].Name != "" {
				t.Errorf("the cache has %+v, want the fields that are named", obj)
			}
			return obj
		}
		live := func() *appsv1.Deployment {
			t.Helper()
			var obj appsv1.Deployment
			if err := c.Get(ctx, kube.KeyOf(web), &obj); err != nil {
				t.Fatal(err)
			}
			return &obj
		}
		if err := c.Patch(ctx, live(), client.MergePatch([]byte(`{"spec":{"paused":true}}`))); err != nil { // the server sets its defaults
			t.Fatal(err)
		}
		first := live()

		refused := func(what string, err error) {
			t.Helper()
			if _, ok := errors.AsType[*client.ProjectedObjectError](err); !ok {
				t.Errorf("%s: %v, want a *client.ProjectedObjectError", what, err)
			}
		}
		to := kube.Copy(cached())
		to.Spec.Replicas = new(int32(5))
		refused("update", c.Update(ctx, to))
		refused("apply", c.Apply(ctx, to))
		refused("status update", c.Status().Update(ctx, to))
		to.Spec.Template.Spec.Containers[0].Image = "i:3"
		_, err = c.PatchChanges(ctx, cached(), to)
		refused("changes of a part of a list", err)
		if got := live(); got.ResourceVersion != first.ResourceVersion {
			t.Errorf("refused writes have changed the object: %+v", got)
		}

		to = kube.Copy(cached())
		to.Spec.Replicas = new(int32(5))
		if _, err := c.PatchChanges(ctx, cached(), to); err != nil {
			t.Error(err)
		}
		if got := cached(); *got.Spec.Replicas != 5 {
			t.Errorf("after the patch the cache has %d replicas, want 5", *got.Spec.Replicas)
		}
		to = kube.Copy(cached())
		to.Status.Replicas = 5
		if _, err := c.PatchChanges(ctx, cached(), to); err != nil {
			t.Error(err)
		}
		to = kube.Copy(cached())
		to.Status.ReadyReplicas = 4
		if err := c.Status().Apply(ctx, to, client.Force{}); err != nil {
			t.Error(err)
		}
		if err := c.Apply(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{"new": "label"}}}); err != nil {
			t.Error(err)
		}
		got, want := live(), first.DeepCopy()
		want.Labels = map[string]string{"new": "label"}
		want.Spec.Replicas = new(int32(5))
		want.Status.Replicas, want.Status.ReadyReplicas = 5, 4
		for _, obj := range []*appsv1.Deployment{got, want} {
			obj.ManagedFields, obj.ResourceVersion, obj.Generation = nil, "", 0
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the server has\n%+v\nwant\n%+v", got, want)
		}

		// A whole object is written as ever, and other readers have it.
		whole := informer.For[*appsv1.Deployment](factory)
		<-whole.Synced()
		obj, err := whole.Lister().Get(kube.KeyOf(web))
		if err != nil || obj.Annotations["note"] != "n" || obj.Spec.Template.Spec.Containers[0].Name != "c" {
			t.Fatalf("the handle of all fields has %+v, %v", obj, err)
		}
		update := kube.Copy(obj)
		update.Spec.Replicas = new(int32(6))
		if err := c.Update(ctx, update); err != nil {
			t.Error(err)
		}
		if got := live(); *got.Spec.Replicas != 6 || got.Annotations["note"] != "n" || got.Spec.MinReadySeconds != 7 {
			t.Errorf("after the update the server has %+v", got)
		}
	})
}
