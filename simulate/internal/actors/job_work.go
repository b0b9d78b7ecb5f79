// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// jobWork is the state of a Job. It is pure, except for the time.
type jobWork struct {
	job   *batchv1.Job
	pods  []*corev1.Pod
	again time.Duration // when to look again; 0: only after a change
}

// count updates the counters. A Pod that has ended is listed as uncounted until its
// finalizer is removed, so that it is counted exactly once, whatever fails in between.
func (w *jobWork) count() {
	status := &w.job.Status
	if status.UncountedTerminatedPods == nil {
		status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	}
	uncounted := status.UncountedTerminatedPods
	tracked := map[types.UID]bool{}
	status.Active, status.Ready, status.Terminating = 0, new(int32(0)), new(int32(0))
	for _, pod := range w.pods {
		switch {
		case ended(pod) && slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer):
			tracked[pod.UID] = true
			list := &uncounted.Succeeded
			if pod.Status.Phase == corev1.PodFailed {
				list = &uncounted.Failed
			}
			if !slices.Contains(*list, pod.UID) {
				*list = append(*list, pod.UID)
			}
		case lives(pod):
			status.Active++
			if isReady(pod) {
				*status.Ready++
			}
		case !ended(pod):
			*status.Terminating++
		}
	}
	flush := func(list []types.UID, counter *int32) []types.UID {
		return without(list, func(uid types.UID) bool {
			if !tracked[uid] {
				*counter++
			}
			return !tracked[uid]
		})
	}
	uncounted.Succeeded, uncounted.Failed = flush(uncounted.Succeeded, &status.Succeeded), flush(uncounted.Failed, &status.Failed)
	if status.StartTime == nil && !suspended(w.job) {
		status.StartTime = new(object.Now())
	}
}

func suspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

func (w *jobWork) succeeded() int32 {
	return w.job.Status.Succeeded + int32(len(w.job.Status.UncountedTerminatedPods.Succeeded))
}

func (w *jobWork) failed() int32 {
	return w.job.Status.Failed + int32(len(w.job.Status.UncountedTerminatedPods.Failed))
}

// setConditions sets the conditions of a Job that is suspended, or has succeeded or failed.
func (w *jobWork) setConditions() {
	job := w.job
	if is, was := suspended(job), jobCondition(job, batchv1.JobSuspended); is || was != nil {
		if is {
			setJobCondition(job, batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended")
			job.Status.StartTime = nil
		} else {
			setJobCondition(job, batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "Job resumed")
		}
	}
	again := int32(0)
	for _, pod := range w.pods {
		if job.Spec.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && lives(pod) {
			again += restarts(pod)
		}
	}
	switch limit := job.Spec.ActiveDeadlineSeconds; {
	case decided(job):
	case job.Spec.BackoffLimit != nil && w.failed()+again > *job.Spec.BackoffLimit:
		setJobCondition(job, batchv1.JobFailureTarget, corev1.ConditionTrue, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	case limit != nil && job.Status.StartTime != nil:
		if left := time.Until(job.Status.StartTime.Add(time.Duration(*limit) * time.Second)); left > 0 {
			w.again = left
		} else {
			setJobCondition(job, batchv1.JobFailureTarget, corev1.ConditionTrue, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
		}
	}
	if !decided(job) && w.complete() {
		setJobCondition(job, batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
	}
}

func (w *jobWork) complete() bool {
	if w.job.Spec.Completions == nil {
		return w.succeeded() > 0 && w.job.Status.Active == 0
	}
	return w.succeeded() >= *w.job.Spec.Completions
}

// decided reports whether the Job has succeeded or failed.
func decided(job *batchv1.Job) bool {
	return jobCondition(job, batchv1.JobFailureTarget) != nil || jobCondition(job, batchv1.JobSuccessCriteriaMet) != nil
}

// wanted returns how many Pods should run.
func (w *jobWork) wanted(living int) int {
	job := w.job
	most := int(*job.Spec.Parallelism)
	switch {
	case suspended(job) || decided(job):
		return 0
	case job.Spec.Completions != nil:
		return max(0, min(most, int(*job.Spec.Completions-w.succeeded())))
	case w.succeeded() > 0:
		return min(living, most)
	}
	return most
}

// pause returns how long to wait before failed Pods are replaced.
func (w *jobWork) pause() time.Duration {
	var last time.Time
	for _, pod := range w.pods {
		for _, c := range pod.Status.ContainerStatuses {
			if end := c.State.Terminated; pod.Status.Phase == corev1.PodFailed && end != nil && end.FinishedAt.After(last) {
				last = end.FinishedAt.Time
			}
		}
	}
	if failed := w.failed(); failed > 0 && !last.IsZero() {
		return max(0, time.Until(last.Add(min(firstRestart<<min(failed-1, mostDoublings), longestReplacement))))
	}
	return 0
}

// close ends a decided Job when all its Pods have ended and are counted.
func (w *jobWork) close() {
	status := &w.job.Status
	uncounted := status.UncountedTerminatedPods
	if !decided(w.job) || status.Active > 0 || *status.Terminating > 0 || len(uncounted.Succeeded)+len(uncounted.Failed) > 0 {
		return
	}
	if why := jobCondition(w.job, batchv1.JobFailureTarget); why != nil {
		setJobCondition(w.job, batchv1.JobFailed, corev1.ConditionTrue, why.Reason, why.Message)
		return
	}
	why := jobCondition(w.job, batchv1.JobSuccessCriteriaMet)
	setJobCondition(w.job, batchv1.JobComplete, corev1.ConditionTrue, why.Reason, why.Message)
	status.CompletionTime = new(object.Now())
}

func hasEnded(job *batchv1.Job) bool {
	return jobCondition(job, batchv1.JobComplete) != nil || jobCondition(job, batchv1.JobFailed) != nil
}

func jobCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if job.Status.Conditions[i].Type == kind {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

func setJobCondition(job *batchv1.Job, kind batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string) {
	is := batchv1.JobCondition{Type: kind, Status: status, Reason: reason, Message: message, LastProbeTime: object.Now(), LastTransitionTime: object.Now()}
	switch was := jobCondition(job, kind); {
	case was == nil:
		job.Status.Conditions = append(job.Status.Conditions, is)
	case was.Status != status || was.Reason != reason:
		*was = is
	}
}
