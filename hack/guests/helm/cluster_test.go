// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// cluster sets the status of each workload to its desired state, as controllers and
// kubelets would, so that Helm can wait for it.
func cluster(ctx context.Context, api kubernetes.Interface) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// The next tick retries what fails.
		deployments, _ := api.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
		for _, d := range deployments.Items {
			if d.Status.ObservedGeneration != d.Generation {
				n := *d.Spec.Replicas
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
					Conditions: []appsv1.DeploymentCondition{
						{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
						{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
					}}
				_, _ = api.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, &d, metav1.UpdateOptions{})
			}
		}
		sets, _ := api.AppsV1().StatefulSets("").List(ctx, metav1.ListOptions{})
		for _, s := range sets.Items {
			if s.Status.ObservedGeneration != s.Generation {
				n := *s.Spec.Replicas
				s.Status = appsv1.StatefulSetStatus{ObservedGeneration: s.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, CurrentReplicas: n,
					AvailableReplicas: n, CurrentRevision: "r", UpdateRevision: "r"}
				_, _ = api.AppsV1().StatefulSets(s.Namespace).UpdateStatus(ctx, &s, metav1.UpdateOptions{})
			}
		}
		jobs, _ := api.BatchV1().Jobs("").List(ctx, metav1.ListOptions{})
		for _, j := range jobs.Items {
			if j.Status.CompletionTime == nil {
				now, none := metav1.Now(), int32(0)
				j.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: *j.Spec.Completions, Ready: &none, Terminating: &none,
					UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{},
					Conditions: []batchv1.JobCondition{
						{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonCompletionsReached, LastTransitionTime: now, LastProbeTime: now},
						{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonCompletionsReached, LastTransitionTime: now, LastProbeTime: now},
					}}
				_, _ = api.BatchV1().Jobs(j.Namespace).UpdateStatus(ctx, &j, metav1.UpdateOptions{})
			}
		}
		pods, _ := api.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodPending {
				p.Status.Phase = corev1.PodSucceeded
				_, _ = api.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, &p, metav1.UpdateOptions{})
			}
		}
	}
}
