// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/reconcile"
)

func drain(ctx context.Context, c *client.Client, pod *corev1.Pod, set *appsv1.StatefulSet) (reconcile.Result, error) {
	err := c.Evict(ctx, pod, client.Preconditions{UID: pod.UID})
	if apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		return reconcile.After(10*time.Second, "a disruption budget holds the Pod"), nil
	}
	if err != nil {
		return reconcile.Result{}, reconcile.IgnoreNotFound(err)
	}
	return reconcile.Result{}, c.SetScale(ctx, set, 0)
}

// Evict respects PodDisruptionBudgets; SetScale writes the subresource scale.
func ExampleClient_Evict() {
	var c *client.Client // a manager's Client, or that of client.New
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "db-0", UID: "8f14"}}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "db"}}
	result, err := drain(context.Background(), c, pod, set)
	fmt.Println(result, err)
}
