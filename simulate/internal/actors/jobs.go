// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// jobController runs the Pods of Jobs and counts them.
type jobController struct{ *controllers }

const (
	// The delay before failed Pods are replaced starts at firstRestart and doubles up to
	// longestReplacement.
	longestReplacement = 10 * time.Minute
	mostDoublings      = 10
)

var jobResource = schema.GroupResource{Group: batchv1.GroupName, Resource: "jobs"}

func (jobController) name() string { return "jobs" }

func (a jobController) observe(c revisions.Change, look func(Reference)) {
	switch c.Resource {
	case jobResource:
		look(aboutOf(c))
		if c.After == nil {
			for _, about := range a.index.of(c.Before.Meta().GetUID()) {
				look(about)
			}
		}
	case object.Pods:
		a.lookAtControllers(c, jobResource, look)
		if c.After != nil && slices.Contains(c.After.Meta().GetFinalizers(), batchv1.JobTrackingFinalizer) && a.fatherless(c.After) {
			look(aboutOf(c))
		}
	}
}

// fatherless reports whether no Job counts a Pod.
func (a jobController) fatherless(pod *object.Object) bool {
	job, known := a.index.identities[controllerOf(pod)]
	return !known || job.GroupResource != jobResource
}

func (a jobController) act(ctx context.Context, about Reference) (time.Duration, error) {
	if about.GroupResource == object.Pods {
		if pod := a.get(about); pod != nil && a.fatherless(pod) {
			return 0, a.untrack(ctx, about)
		}
		return 0, nil
	}
	job := readWhole[batchv1.Job](a.controllers, about)
	switch {
	case job == nil || job.Spec.Selector == nil:
		return 0, nil
	case hasEnded(job):
		return a.expire(ctx, about, job)
	}
	ending := !object.Unset(job.DeletionTimestamp)
	pods, err := claimed[corev1.Pod](ctx, a.controllers, claim{about: about, uid: job.UID, kind: "Job", selector: job.Spec.Selector, ending: ending}, object.Pods)
	if err != nil {
		return 0, err
	}
	w := jobWork{job: job, pods: pods}
	w.count()
	if !ending {
		w.setConditions()
		if err := a.fit(ctx, &w); err != nil {
			return 0, err
		}
		w.close()
	}
	if _, err := update(ctx, a.controllers, byControllers, about, "status", func(held *batchv1.Job) { held.Status = job.Status }); err != nil {
		return 0, err
	}
	return w.again, a.untrackEnded(ctx, w.pods, ending)
}

// untrackEnded removes the finalizer of Pods that have ended. Those that are being deleted, or whose Job is, are not waited for.
func (a jobController) untrackEnded(ctx context.Context, pods []*corev1.Pod, ending bool) error {
	for _, pod := range pods {
		if (ended(pod) || ending || !object.Unset(pod.DeletionTimestamp)) && slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) {
			if err := a.untrack(ctx, Reference{object.Pods, object.NameOf(pod)}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

// untrack removes the finalizer of a Pod that is counted, or that no Job counts.
func (a jobController) untrack(ctx context.Context, about Reference) error {
	return a.edit(ctx, about, "", func(obj *object.Object) {
		obj.Meta().SetFinalizers(without(obj.Meta().GetFinalizers(), func(f string) bool { return f == batchv1.JobTrackingFinalizer }))
	})
}

// expire deletes a finished Job after its time to live.
func (a jobController) expire(ctx context.Context, about Reference, job *batchv1.Job) (time.Duration, error) {
	if job.Spec.TTLSecondsAfterFinished == nil || !object.Unset(job.DeletionTimestamp) {
		return 0, nil
	}
	var end time.Time
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			end = c.LastTransitionTime.Time
		}
	}
	if left := time.Until(end.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second)); left > 0 {
		return left, nil
	}
	held := a.get(about)
	if held == nil {
		return 0, nil
	}
	return 0, a.remove(ctx, about, held, metav1.DeletePropagationForeground, nil)
}

// fit creates missing Pods, and deletes surplus ones.
func (a jobController) fit(ctx context.Context, w *jobWork) error {
	living := without(w.pods, func(pod *corev1.Pod) bool { return !lives(pod) })
	wanted := w.wanted(len(living))
	slices.SortStableFunc(living, sparedLess)
	for _, pod := range living[:max(0, len(living)-wanted)] {
		if err := a.discard(ctx, Reference{object.Pods, object.NameOf(pod)}); err != nil {
			return err
		}
		w.job.Status.Active--
	}
	lack := min(wanted-len(living), burst)
	if lack <= 0 {
		return nil
	}
	if pause := w.pause(); pause > 0 {
		w.again = pause
		return nil
	}
	for range lack {
		pod := podOf(&w.job.Spec.Template, w.job, batchv1.SchemeGroupVersion.WithKind("Job"))
		pod.Finalizers = append(pod.Finalizers, batchv1.JobTrackingFinalizer)
		if _, err := a.create(ctx, byControllers, object.Pods, pod); err != nil {
			return err
		}
		w.job.Status.Active++
	}
	return nil
}
