// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"fmt"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

func hasDeadline(d *appsv1.Deployment) bool {
	return d.Spec.ProgressDeadlineSeconds != nil && *d.Spec.ProgressDeadlineSeconds != math.MaxInt32
}

func condition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == kind {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}

func dropCondition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) {
	d.Status.Conditions = slices.DeleteFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
}

// setCondition sets a condition, unless it already has this status and reason.
func setCondition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) {
	is := appsv1.DeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message, LastUpdateTime: object.Now(), LastTransitionTime: object.Now()}
	if was := condition(d, kind); was != nil {
		if was.Status == status && was.Reason == reason {
			return
		}
		if was.Status == status {
			is.LastTransitionTime = was.LastTransitionTime
		}
	}
	dropCondition(d, kind)
	d.Status.Conditions = append(d.Status.Conditions, is)
}

// progressed sets the condition that the rollout makes progress.
func (r *rollout) progressed(reason, message string) {
	if hasDeadline(r.of) {
		setCondition(r.of, appsv1.DeploymentProgressing, corev1.ConditionTrue, reason, message)
	}
}

// setPausedCondition sets the condition for a rollout that is paused or resumed.
func (r *rollout) setPausedCondition() {
	was := condition(r.of, appsv1.DeploymentProgressing)
	if !hasDeadline(r.of) || was != nil && was.Reason == "ProgressDeadlineExceeded" {
		return
	}
	paused := was != nil && was.Reason == "DeploymentPaused"
	switch {
	case r.of.Spec.Paused && !paused:
		setCondition(r.of, appsv1.DeploymentProgressing, corev1.ConditionUnknown, "DeploymentPaused", "Deployment is paused")
	case !r.of.Spec.Paused && paused:
		setCondition(r.of, appsv1.DeploymentProgressing, corev1.ConditionUnknown, "DeploymentResumed", "Deployment is resumed")
	}
}

// summarize updates the numbers of Pods in the status.
func (r *rollout) summarize() {
	d, all := r.of, r.all()
	status := &d.Status
	status.ObservedGeneration = d.Generation
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas = sum(all, existing), sum(all, ready), sum(all, available)
	status.UpdatedReplicas = 0
	if r.current != nil {
		status.UpdatedReplicas = r.current.Status.Replicas
	}
	status.UnavailableReplicas = max(0, sum(all, wanted)-status.AvailableReplicas)
	status.TerminatingReplicas = new(sum(all, func(set *appsv1.ReplicaSet) int32 {
		if set.Status.TerminatingReplicas == nil {
			return 0
		}
		return *set.Status.TerminatingReplicas
	}))
	if _, missing := r.bounds(); status.AvailableReplicas >= *d.Spec.Replicas-missing {
		setCondition(d, appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable", "Deployment has minimum availability.")
	} else {
		setCondition(d, appsv1.DeploymentAvailable, corev1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
	}
}

// complete reports whether a status is that of a finished rollout.
func (r rollout) complete(status appsv1.DeploymentStatus) bool {
	desired := *r.of.Spec.Replicas
	return status.UpdatedReplicas == desired && status.Replicas == desired && status.AvailableReplicas == desired && status.ObservedGeneration >= r.of.Generation
}

// summarizeProgress updates the status, and the condition about progress.
func (r *rollout) summarizeProgress() {
	was := r.of.Status.DeepCopy()
	r.summarize()
	r.copyReplicaFailure()
	if !hasDeadline(r.of) {
		dropCondition(r.of, appsv1.DeploymentProgressing)
		return
	}
	is, progress := &r.of.Status, condition(r.of, appsv1.DeploymentProgressing)
	name := fmt.Sprintf("Deployment %q", r.of.Name)
	if r.current != nil {
		name = fmt.Sprintf("ReplicaSet %q", r.current.Name)
	}
	switch {
	case is.Replicas == is.UpdatedReplicas && progress != nil && progress.Reason == "NewReplicaSetAvailable":
	case r.complete(*is):
		setCondition(r.of, appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetAvailable", name+" has successfully progressed.")
	case is.UpdatedReplicas > was.UpdatedReplicas || is.Replicas-is.UpdatedReplicas < was.Replicas-was.UpdatedReplicas ||
		is.ReadyReplicas > was.ReadyReplicas || is.AvailableReplicas > was.AvailableReplicas:
		since := object.Now()
		if progress != nil && progress.Status == corev1.ConditionTrue {
			since = progress.LastTransitionTime
		}
		dropCondition(r.of, appsv1.DeploymentProgressing)
		setCondition(r.of, appsv1.DeploymentProgressing, corev1.ConditionTrue, "ReplicaSetUpdated", name+" is progressing.")
		condition(r.of, appsv1.DeploymentProgressing).LastTransitionTime = since
	case r.late():
		setCondition(r.of, appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", name+" has timed out progressing.")
	}
}

// late reports whether there has been no progress for longer than the deadline.
func (r rollout) late() bool {
	progress := condition(r.of, appsv1.DeploymentProgressing)
	if progress == nil || progress.Reason == "NewReplicaSetAvailable" {
		return false
	}
	return progress.LastUpdateTime.Add(r.allowed()).Before(time.Now())
}

func (r rollout) allowed() time.Duration {
	return time.Duration(*r.of.Spec.ProgressDeadlineSeconds) * time.Second
}

// deadline returns when to check again whether the rollout is late; 0: never.
func (r rollout) deadline() time.Duration {
	progress := condition(r.of, appsv1.DeploymentProgressing)
	if !hasDeadline(r.of) || r.of.Spec.Paused || progress == nil || r.complete(r.of.Status) || progress.Reason == "ProgressDeadlineExceeded" {
		return 0
	}
	return max(time.Second, time.Until(progress.LastUpdateTime.Add(r.allowed()))+time.Second)
}

// copyReplicaFailure copies the condition of a ReplicaSet that cannot create its Pods.
func (r *rollout) copyReplicaFailure() {
	sets := r.old
	if r.current != nil {
		sets = append([]*appsv1.ReplicaSet{r.current}, sets...)
	}
	for _, set := range sets {
		for _, c := range set.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure {
				setCondition(r.of, appsv1.DeploymentReplicaFailure, c.Status, c.Reason, c.Message)
				return
			}
		}
	}
	dropCondition(r.of, appsv1.DeploymentReplicaFailure)
}
