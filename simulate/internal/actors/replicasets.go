// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// replicaSetController runs the Pods of ReplicaSets.
type replicaSetController struct{ *controllers }

// burst is how many Pods are created or deleted at once.
const burst = 500

func (replicaSetController) name() string { return "replicasets" }

func (a replicaSetController) observe(c revisions.Change, look func(Reference)) {
	a.observePods(c, replicaSetResource, look)
}

func (a replicaSetController) act(ctx context.Context, about Reference) (time.Duration, error) {
	set := readWhole[appsv1.ReplicaSet](a.controllers, about)
	if set == nil || set.Spec.Replicas == nil {
		return 0, nil
	}
	ending := !object.Unset(set.DeletionTimestamp)
	of := claim{about: about, uid: set.UID, kind: "ReplicaSet", selector: set.Spec.Selector, ending: ending}
	pods, err := claimed[corev1.Pod](ctx, a.controllers, of, object.Pods)
	if err != nil {
		return 0, err
	}
	var failed error
	if !ending {
		failed = a.fit(ctx, set, pods)
	}
	status, again := countedOf(set, pods, failed)
	if equality.Semantic.DeepEqual(set.Status, status) {
		return again, failed
	}
	_, err = update(ctx, a.controllers, byControllers, about, "status", func(set *appsv1.ReplicaSet) { set.Status = status })
	return again, firstError(failed, err)
}

// fit creates missing Pods, or deletes surplus ones.
func (a replicaSetController) fit(ctx context.Context, set *appsv1.ReplicaSet, pods []*corev1.Pod) error {
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !lives(pod) })
	lack := int(*set.Spec.Replicas) - len(pods)
	for range min(lack, burst) {
		pod := podOf(&set.Spec.Template, set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
		if _, err := a.create(ctx, byControllers, object.Pods, pod); err != nil {
			return err
		}
	}
	if lack >= 0 {
		return nil
	}
	slices.SortStableFunc(pods, sparedLess)
	for _, pod := range pods[:min(-lack, burst)] {
		if err := a.discard(ctx, Reference{object.Pods, object.NameOf(pod)}); err != nil {
			return err
		}
	}
	return nil
}

// sparedLess orders Pods by how dispensable they are, the most dispensable first.
func sparedLess(a, b *corev1.Pod) int {
	no := func(v bool) int {
		if v {
			return 1
		}
		return 0
	}
	phase := map[corev1.PodPhase]int{corev1.PodPending: 0, corev1.PodUnknown: 1, corev1.PodRunning: 2}
	return cmp.Or(
		cmp.Compare(no(a.Spec.NodeName != ""), no(b.Spec.NodeName != "")),
		cmp.Compare(phase[a.Status.Phase], phase[b.Status.Phase]),
		cmp.Compare(no(isReady(a)), no(isReady(b))),
		cmp.Compare(deletionCost(a), deletionCost(b)),
		-readySince(a).Compare(readySince(b)),
		-cmp.Compare(restarts(a), restarts(b)),
		-a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.UID, b.UID),
	)
}

func deletionCost(pod *corev1.Pod) int64 {
	n, _ := strconv.ParseInt(pod.Annotations[corev1.PodDeletionCost], 10, 32)
	return n
}

func restarts(pod *corev1.Pod) (most int32) {
	for _, c := range pod.Status.ContainerStatuses {
		most = max(most, c.RestartCount)
	}
	return most
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func isReady(pod *corev1.Pod) bool {
	is := podCondition(pod, corev1.PodReady)
	return is != nil && is.Status == corev1.ConditionTrue
}

// readySince returns when a Pod became ready; the zero time if it is not.
func readySince(pod *corev1.Pod) time.Time {
	if !isReady(pod) {
		return time.Time{}
	}
	return podCondition(pod, corev1.PodReady).LastTransitionTime.Time
}

// availableIn returns how long until a ready Pod counts as available; 0 if it does.
func availableIn(pod *corev1.Pod, least int32) time.Duration {
	return max(0, time.Until(readySince(pod).Add(time.Duration(least)*time.Second)))
}

// countedOf returns the status of a ReplicaSet. again is how long until another Pod counts
// as available.
func countedOf(set *appsv1.ReplicaSet, pods []*corev1.Pod, failed error) (is appsv1.ReplicaSetStatus, again time.Duration) {
	is = appsv1.ReplicaSetStatus{ObservedGeneration: set.Generation, Conditions: set.Status.Conditions, TerminatingReplicas: new(int32(0))}
	template := labels.SelectorFromSet(set.Spec.Template.Labels)
	for _, pod := range pods {
		if !lives(pod) {
			if !ended(pod) {
				*is.TerminatingReplicas++
			}
			continue
		}
		is.Replicas++
		if template.Matches(labels.Set(pod.Labels)) {
			is.FullyLabeledReplicas++
		}
		if !isReady(pod) {
			continue
		}
		is.ReadyReplicas++
		if wait := availableIn(pod, set.Spec.MinReadySeconds); wait == 0 {
			is.AvailableReplicas++
		} else if again == 0 || wait < again {
			again = wait
		}
	}
	return withFailure(is, failed, int(is.Replicas)-int(*set.Spec.Replicas)), again
}

// withFailure sets or removes the condition that Pods could not be created or deleted.
func withFailure(status appsv1.ReplicaSetStatus, failed error, spare int) appsv1.ReplicaSetStatus {
	i := slices.IndexFunc(status.Conditions, func(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure })
	switch {
	case failed == nil && i >= 0:
		status.Conditions = slices.Delete(slices.Clone(status.Conditions), i, i+1)
	case failed != nil && i < 0:
		reason := "FailedCreate"
		if spare > 0 {
			reason = "FailedDelete"
		}
		status.Conditions = append(status.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: reason, Message: failed.Error(), LastTransitionTime: object.Now()})
	}
	return status
}
