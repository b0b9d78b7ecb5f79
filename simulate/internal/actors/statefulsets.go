// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// statefulSetController creates the Pods of StatefulSets by ordinal, one after the other.
type statefulSetController struct{ *controllers }

var (
	statefulSetResource = schema.GroupResource{Group: appsv1.GroupName, Resource: "statefulsets"}
	volumeClaimResource = schema.GroupResource{Resource: "persistentvolumeclaims"}
)

func (statefulSetController) name() string { return "statefulsets" }

func (a statefulSetController) observe(c revisions.Change, look func(Reference)) {
	a.observePods(c, statefulSetResource, look)
}

func (a statefulSetController) act(ctx context.Context, about Reference) (time.Duration, error) {
	set := readWhole[appsv1.StatefulSet](a.controllers, about)
	if set == nil || set.Spec.Selector == nil || set.Spec.Replicas == nil {
		return 0, nil
	}
	ending := !object.Unset(set.DeletionTimestamp)
	pods, err := claimed[corev1.Pod](ctx, a.controllers, claim{about: about, uid: set.UID, kind: "StatefulSet", selector: set.Spec.Selector, ending: ending}, object.Pods)
	if err != nil {
		return 0, err
	}
	row := rowOf(set, pods)
	kept := pastTemplates{a.controllers, set, appsv1.SchemeGroupVersion.WithKind("StatefulSet")}
	if row.name, row.hash, err = kept.saveRevision(ctx, &set.Spec.Template); err != nil {
		return 0, err
	}
	var failed error
	if !ending {
		failed = a.step(ctx, row)
	}
	status := row.status()
	if _, err := update(ctx, a.controllers, byControllers, about, "status", func(s *appsv1.StatefulSet) { s.Status = status }); err != nil {
		return 0, err
	}
	if failed == nil && status.CurrentRevision == status.UpdateRevision {
		failed = kept.tidy(ctx, set.Spec.RevisionHistoryLimit, func(hash string) bool { return hash == row.hash })
	}
	return row.again, failed
}

// row is a StatefulSet and its Pods by ordinal. It is pure, except for the time.
type row struct {
	set        *appsv1.StatefulSet
	pods       map[int]*corev1.Pod
	first      int
	name, hash string // of the present template
	again      time.Duration
}

func rowOf(set *appsv1.StatefulSet, pods []*corev1.Pod) *row {
	r := &row{set: set, pods: map[int]*corev1.Pod{}}
	if set.Spec.Ordinals != nil {
		r.first = int(set.Spec.Ordinals.Start)
	}
	for _, pod := range pods {
		text, ok := strings.CutPrefix(pod.Name, set.Name+"-")
		if n, err := strconv.Atoi(text); ok && err == nil {
			r.pods[n] = pod
		}
	}
	return r
}

// end returns the ordinal after the last wanted Pod.
func (r *row) end() int { return r.first + int(*r.set.Spec.Replicas) }

func (r *row) parallel() bool { return r.set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement }

// well reports whether the Pod of an ordinal is available.
func (r *row) well(n int) bool {
	pod := r.pods[n]
	if pod == nil || !lives(pod) || !isReady(pod) {
		return false
	}
	wait := availableIn(pod, r.set.Spec.MinReadySeconds)
	if wait > 0 && (r.again == 0 || wait < r.again) {
		r.again = wait
	}
	return wait == 0
}

// current reports whether a Pod is of the present template.
func (r *row) current(pod *corev1.Pod) bool {
	return pod.Labels[appsv1.ControllerRevisionHashLabelKey] == r.name
}

// above returns the ordinals of Pods from one on, the highest first.
func (r *row) above(first int) (out []int) {
	most := first - 1
	for n := range r.pods {
		most = max(most, n)
	}
	for n := most; n >= first; n-- {
		if r.pods[n] != nil {
			out = append(out, n)
		}
	}
	return out
}

// step creates the next Pod, deletes the last surplus one, or replaces the last one of an
// older template. Where order matters, all Pods before it must be available.
func (a statefulSetController) step(ctx context.Context, r *row) error {
	for n := r.first; n < r.end(); n++ {
		pod := r.pods[n]
		switch {
		case pod == nil:
			if err := a.add(ctx, r, n); err != nil {
				return err
			}
		case ended(pod) && object.Unset(pod.DeletionTimestamp):
			if err := a.drop(ctx, pod); err != nil {
				return err
			}
		}
		if !r.parallel() && !r.well(n) {
			return nil
		}
	}
	for _, n := range append(r.above(r.end()), r.below(r.first)...) {
		if err := a.drop(ctx, r.pods[n]); err != nil || !r.parallel() {
			return err
		}
	}
	return a.replace(ctx, r)
}

// replace deletes the last Pod of an older template, which is created anew.
func (a statefulSetController) replace(ctx context.Context, r *row) error {
	strategy := r.set.Spec.UpdateStrategy
	if strategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return nil
	}
	least := r.first
	if strategy.RollingUpdate != nil && strategy.RollingUpdate.Partition != nil {
		least = max(least, int(*strategy.RollingUpdate.Partition))
	}
	for n := r.end() - 1; n >= least; n-- {
		if pod := r.pods[n]; pod != nil && !r.current(pod) {
			return a.drop(ctx, pod)
		}
		if !r.well(n) {
			return nil
		}
	}
	return nil
}

func (r *row) below(first int) (out []int) {
	for n := first - 1; n >= 0; n-- {
		if r.pods[n] != nil {
			out = append(out, n)
		}
	}
	return out
}

func (a statefulSetController) drop(ctx context.Context, pod *corev1.Pod) error {
	if !object.Unset(pod.DeletionTimestamp) {
		return nil
	}
	return a.discard(ctx, Reference{object.Pods, object.NameOf(pod)})
}

// add creates the Pod of an ordinal, and the claims for its volumes.
func (a statefulSetController) add(ctx context.Context, r *row, n int) error {
	set := r.set
	pod := podOf(&set.Spec.Template, set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	pod.Name = fmt.Sprintf("%s-%d", set.Name, n)
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, set.Spec.ServiceName
	metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1.StatefulSetPodNameLabel, pod.Name)
	metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1.PodIndexLabel, strconv.Itoa(n))
	metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1.ControllerRevisionHashLabelKey, r.name)
	for _, template := range set.Spec.VolumeClaimTemplates {
		claim := template.DeepCopy()
		claim.Namespace, claim.Name = set.Namespace, template.Name+"-"+pod.Name
		claim.Labels = maps.Clone(set.Spec.Selector.MatchLabels)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: template.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}})
		if is := a.get(Reference{volumeClaimResource, types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}}); is != nil {
			if !object.Unset(is.Meta().GetDeletionTimestamp()) {
				return fmt.Errorf("create Pod %s: its PersistentVolumeClaim %s is being deleted", pod.Name, claim.Name)
			}
			continue
		}
		if _, err := a.create(ctx, byControllers, volumeClaimResource, claim); err != nil {
			return err
		}
	}
	_, err := a.create(ctx, byControllers, object.Pods, pod)
	return err
}

// status counts the Pods. The present template is the current revision when all Pods use
// it.
func (r *row) status() appsv1.StatefulSetStatus {
	was := r.set.Status
	is := appsv1.StatefulSetStatus{ObservedGeneration: r.set.Generation, CollisionCount: new(int32(0)), Conditions: was.Conditions,
		UpdateRevision: r.name, CurrentRevision: was.CurrentRevision}
	is.CurrentRevision = cmp.Or(is.CurrentRevision, r.name)
	for n, pod := range r.pods {
		if ended(pod) {
			continue
		}
		is.Replicas++
		if isReady(pod) {
			is.ReadyReplicas++
		}
		if r.well(n) {
			is.AvailableReplicas++
		}
		if !object.Unset(pod.DeletionTimestamp) {
			continue
		}
		if r.current(pod) {
			is.UpdatedReplicas++
		}
		if pod.Labels[appsv1.ControllerRevisionHashLabelKey] == is.CurrentRevision {
			is.CurrentReplicas++
		}
	}
	if is.UpdatedReplicas == is.Replicas && is.ReadyReplicas == is.Replicas && is.Replicas == *r.set.Spec.Replicas {
		is.CurrentRevision, is.CurrentReplicas = is.UpdateRevision, is.UpdatedReplicas
	}
	return is
}
