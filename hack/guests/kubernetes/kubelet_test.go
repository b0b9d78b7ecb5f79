// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// kubelet acts for all nodes: Pods of Jobs succeed at once, others become ready, and
// deleted ones end.
func kubelet(ctx context.Context, api kubernetes.Interface, namespace string) {
	none := int64(0)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		list, err := api.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			continue // the next tick retries
		}
		for i, p := range list.Items {
			pods := api.CoreV1().Pods(p.Namespace)
			switch {
			case p.DeletionTimestamp != nil:
				_ = pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &none, Preconditions: &metav1.Preconditions{UID: &p.UID}})
			case p.Status.Phase == corev1.PodRunning, p.Status.Phase == corev1.PodSucceeded, p.Spec.NodeName == "" && namespace == "":
			case p.Spec.RestartPolicy == corev1.RestartPolicyAlways:
				p.Status.Phase = corev1.PodRunning
				p.Status.PodIPs = []corev1.PodIP{{IP: fmt.Sprintf("10.1.%d.%d", i/200, i%200+1)}}
				p.Status.PodIP = p.Status.PodIPs[0].IP
				ready(&p, corev1.ConditionTrue)
				_, _ = pods.UpdateStatus(ctx, &p, metav1.UpdateOptions{})
			default:
				p.Status.Phase = corev1.PodSucceeded
				ready(&p, corev1.ConditionFalse)
				for _, c := range p.Spec.Containers {
					p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
						Name: c.Name, Image: c.Image, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()}},
					})
				}
				_, _ = pods.UpdateStatus(ctx, &p, metav1.UpdateOptions{})
			}
		}
	}
}

// ready sets the Ready condition of a Pod and keeps the others.
func ready(p *corev1.Pod, status corev1.ConditionStatus) {
	for i, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			p.Status.Conditions[i].Status = status
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.Now()})
}
