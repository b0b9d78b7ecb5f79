// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/replicaset"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/bridge/clientgo/factory"
	"github.com/flyball-dev/flyball/informer"
)

// long bounds any wait on a busy machine.
const long = 3 * time.Minute

// Rollouts finish whatever happens to the server meanwhile.
func TestDeployments_OutliveOutages(t *testing.T) {
	for _, s := range []struct {
		name  string
		start func(*testing.T) server
	}{{"real", startReal}, {"simulated", startSimulated}} {
		t.Run(s.name, func(t *testing.T) {
			newCluster(t, s.start(t), clientgo.Options{}).story(t)
		})
	}
}

// cluster is a server with the Deployment and ReplicaSet controllers and a kubelet, which
// all connect to it through a front.
type cluster struct {
	front    *front
	api      kubernetes.Interface
	flyball  *informer.SharedInformerFactory
	shops    int // Deployments
	image    string
	replicas int32
	gone     bool
}

func newCluster(t *testing.T, at server, informers clientgo.Options) *cluster {
	t.Helper()
	c := &cluster{front: newFront(t, at)}
	c.api = kubernetes.NewForConfigOrDie(&rest.Config{Host: c.front.address, QPS: -1})
	c.control(t, informers)
	return c
}

// control runs the controllers on flyball's informers, as a program would that replaces
// client-go's factory.
func (c *cluster) control(t *testing.T, informers clientgo.Options) {
	t.Helper()
	flyball, err := informer.NewSharedInformerFactory(&rest.Config{Host: c.front.address}, clientscheme.Scheme, informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.flyball = flyball
	shared := factory.New(flyball, factory.Options{Client: c.api, RunOnStart: true, Informers: informers})
	ctx, cancel := context.WithCancel(context.Background())
	deployments, err := deployment.NewDeploymentController(ctx, shared.Apps().V1().Deployments(), shared.Apps().V1().ReplicaSets(), shared.Core().V1().Pods(), c.api)
	if err != nil {
		t.Fatal(err)
	}
	replicaSets := replicaset.NewReplicaSetController(ctx, shared.Apps().V1().ReplicaSets(), shared.Core().V1().Pods(), c.api, replicaset.BurstReplicas)
	done := make(chan struct{}, 3)
	for _, run := range []func(){
		func() { deployments.Run(ctx, 5) },
		func() { replicaSets.Run(ctx, 5) },
		func() { kubelet(ctx, c.api, "default") },
	} {
		go func() { run(); done <- struct{}{} }()
	}
	shared.StartWithContext(ctx)
	t.Cleanup(func() {
		cancel()
		for range 3 {
			<-done
		}
		shared.Shutdown()
	})
}

// story runs the chapters. Each ends when the cluster is in its desired state.
func (c *cluster) story(t *testing.T) {
	chapter := chapters(t, c.settled)
	chapter("create", func(t *testing.T) { c.create(t, "shop:1", 6) })
	chapter("one informer of flyball's per kind", func(t *testing.T) {
		handlers := map[string]int{}
		for _, s := range c.flyball.Snapshot() {
			if len(s.Scopes) != 1 {
				t.Errorf("%s has %d scopes, want one", s.Kind, len(s.Scopes))
			}
			handlers[s.Kind.Kind] = len(s.Handlers)
		}
		if want := map[string]int{"Deployment": 1, "ReplicaSet": 2, "Pod": 2}; !maps.Equal(handlers, want) {
			t.Errorf("flyball's informers have the handlers %v, want %v", handlers, want)
		}
	})
	chapter("rollout while connections are cut", func(t *testing.T) {
		c.rollOut(t, "shop:2")
		for _, part := range []int{1, 2, 3} {
			c.reached(t, part)
			c.front.cut()
		}
	})
	chapter("rollout, kill -9 and compaction", func(t *testing.T) {
		c.rollOut(t, "shop:3")
		c.reached(t, 2)
		c.front.restart(t)
	})
	chapter("scale, kill -9 and compaction", func(t *testing.T) {
		c.scale(t, 9)
		c.front.restart(t)
		c.scale(t, 4)
	})
	chapter("rollout whose ReplicaSets cannot be scaled, kill -9 and compaction", func(t *testing.T) {
		c.refusedRollOut(t, "shop:4")
		c.front.restart(t)
	})
	chapter("delete", c.delete)
}

func (c *cluster) create(t *testing.T, image string, replicas int32) {
	t.Helper()
	c.image, c.replicas = image, replicas
	for range 10 {
		c.add(t)
	}
}

// add creates one more Deployment.
func (c *cluster) add(t *testing.T) {
	t.Helper()
	name := fmt.Sprintf("shop-%d", c.shops)
	labels := map[string]string{"app": name}
	made := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &c.replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: c.image}}},
		}},
	}
	err := retry.OnError(retry.DefaultBackoff, always, func() error {
		_, err := c.api.AppsV1().Deployments("default").Create(t.Context(), made, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // the answer to an earlier try was lost
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c.shops++
}

func (c *cluster) rollOut(t *testing.T, image string) {
	t.Helper()
	c.image = image
	c.patch(t, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"`+image+`"}]}}}}`)
}

func (c *cluster) scale(t *testing.T, replicas int32) {
	t.Helper()
	c.replicas = replicas
	c.patch(t, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

// patch changes every Deployment.
func (c *cluster) patch(t *testing.T, body string) {
	t.Helper()
	for i := range c.shops {
		err := retry.OnError(retry.DefaultBackoff, always, func() error {
			_, err := c.api.AppsV1().Deployments("default").Patch(t.Context(), fmt.Sprintf("shop-%d", i), types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// reached waits until a rollout has reached this many of four parts.
func (c *cluster) reached(t *testing.T, part int) {
	t.Helper()
	NewWithT(t).Eventually(func(ctx context.Context) (int, error) {
		pods, err := c.api.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return 0, err
		}
		updated := 0
		for _, p := range pods.Items {
			if p.Spec.Containers[0].Image == c.image {
				updated++
			}
		}
		return updated, nil
	}).WithContext(t.Context()).WithTimeout(long).Should(BeNumerically(">=", part*c.shops*int(c.replicas)/4))
}

// delete deletes the Deployments. There is no garbage collector: collected acts for it
// until everything is settled.
func (c *cluster) delete(t *testing.T) {
	t.Helper()
	c.gone = true
	NewWithT(t).Expect(c.api.AppsV1().Deployments("default").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})).To(Succeed())
}

// collected deletes what Deployments have left behind and returns an error that lists what
// remains. It is called repeatedly: a controller whose informer has not yet seen the
// deletion of its ReplicaSet creates Pods after all have been deleted.
func (c *cluster) collected(ctx context.Context) error {
	err := errors.Join(
		c.api.AppsV1().ReplicaSets("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		c.api.CoreV1().Pods("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	if err != nil {
		return err
	}
	deployments, err := c.api.AppsV1().Deployments("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := c.api.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if n := len(deployments.Items) + len(pods.Items); n > 0 {
		return fmt.Errorf("%d Deployments and Pods are left", n)
	}
	for _, s := range c.flyball.Snapshot() {
		if s.Objects > 0 {
			return fmt.Errorf("the informer of %s still has %d objects", s.Kind.Kind, s.Objects)
		}
	}
	return nil
}

// settled returns an error that describes what differs from the desired state.
func (c *cluster) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if c.gone {
		return c.collected(ctx)
	}
	deployments, err := c.api.AppsV1().Deployments("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := c.api.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range deployments.Items {
		s := d.Status
		if s.ObservedGeneration != d.Generation || s.Replicas != c.replicas || s.UpdatedReplicas != c.replicas || s.AvailableReplicas != c.replicas {
			return fmt.Errorf("Deployment %s: %d replicas, %d updated, %d available, want %d", d.Name, s.Replicas, s.UpdatedReplicas, s.AvailableReplicas, c.replicas)
		}
	}
	for _, p := range pods.Items {
		if p.Spec.Containers[0].Image != c.image || p.DeletionTimestamp != nil {
			return fmt.Errorf("Pod %s of %s is left", p.Name, p.Spec.Containers[0].Image)
		}
	}
	if len(deployments.Items) != c.shops || len(pods.Items) != c.shops*int(c.replicas) {
		return fmt.Errorf("%d Deployments and %d Pods, want %d and %d", len(deployments.Items), len(pods.Items), c.shops, c.shops*int(c.replicas))
	}
	return nil
}
