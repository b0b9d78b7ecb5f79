// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/bridge/clientgo"
)

// The Deployment controller drops a key whose old ReplicaSet cannot be scaled down, and
// relies on the next list to deliver the Deployment again. With the default Options the
// list does, as the story shows. With OnlyDifferences the same rollouts stall although the
// controllers run: the story can fail.
func TestDeployments_StandStillWithOnlyDifferences(t *testing.T) {
	for _, s := range []struct {
		name  string
		start func(*testing.T) server
	}{{"real", startReal}, {"simulated", startSimulated}} {
		t.Run(s.name, func(t *testing.T) {
			c := newCluster(t, s.start(t), clientgo.Options{OnlyDifferences: true})
			c.create(t, "shop:1", 6)
			c.settle(t)
			c.refusedRollOut(t, "shop:2")
			c.front.restart(t)

			// A Deployment that is created now arrives with the list or after it.
			c.add(t)
			NewWithT(t).Eventually(c.updated).WithContext(t.Context()).WithTimeout(long).Should(HaveKeyWithValue(fmt.Sprintf("shop-%d", c.shops-1), c.replicas))
			c.front.rest(t)
			if err := c.settled(t.Context()); err == nil {
				t.Fatal("the rollouts have gone on: a test of what the list gives again cannot fail in this way")
			}
			c.patch(t, `{"metadata":{"annotations":{"touched":"yes"}}}`)
			c.settle(t)
		})
	}
}

// refusedRollOut begins a rollout and blocks it: the old ReplicaSets cannot be scaled down
// until the controllers are idle.
func (c *cluster) refusedRollOut(t *testing.T, image string) {
	t.Helper()
	c.front.refuse(scales)
	c.rollOut(t, image)
	NewWithT(t).Eventually(c.full).WithContext(t.Context()).WithTimeout(long).Should(Succeed())
	c.front.rest(t)
	c.front.refuse(nil)
	// The watches of Deployments have now seen less than the server has.
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "later-"}}
	if _, err := c.api.CoreV1().ConfigMaps("default").Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// full returns an error that names a Deployment without as many new, ready Pods as it may
// have beside all the old ones.
func (c *cluster) full(ctx context.Context) error {
	list, err := c.api.AppsV1().Deployments("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range list.Items {
		s := d.Status
		if s.ObservedGeneration != d.Generation || s.UpdatedReplicas == 0 || s.Replicas != c.replicas+s.UpdatedReplicas || s.AvailableReplicas != s.Replicas {
			return fmt.Errorf("Deployment %s: %+v", d.Name, s)
		}
	}
	return nil
}

// updated returns the number of available new Pods of each Deployment.
func (c *cluster) updated(ctx context.Context) (map[string]int32, error) {
	list, err := c.api.AppsV1().Deployments("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]int32{}
	for _, d := range list.Items {
		out[d.Name] = min(d.Status.UpdatedReplicas, d.Status.AvailableReplicas)
	}
	return out, nil
}

// settle waits until the cluster is in its desired state.
func (c *cluster) settle(t *testing.T) {
	t.Helper()
	settle(t, c.settled)
}
