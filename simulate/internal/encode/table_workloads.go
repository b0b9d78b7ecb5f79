// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

func workloadPrinters() printers {
	const replicas = "Name|Desired#|Current#|Ready#|Age|+Containers|+Images|+Selector"
	return printers{
		"v1 ReplicationController": printed(heads(replicas), func(o *corev1.ReplicationController) []any {
			template := &corev1.PodTemplateSpec{}
			if o.Spec.Template != nil {
				template = o.Spec.Template
			}
			return wide([]any{o.Name, int64(number(o.Spec.Replicas)), int64(o.Status.Replicas), int64(o.Status.ReadyReplicas), age(o.CreationTimestamp)},
				template, labels.FormatLabels(o.Spec.Selector))
		}),
		"apps/v1 ReplicaSet": printed(heads(replicas), func(o *appsv1.ReplicaSet) []any {
			return wide([]any{o.Name, int64(number(o.Spec.Replicas)), int64(o.Status.Replicas), int64(o.Status.ReadyReplicas), age(o.CreationTimestamp)},
				&o.Spec.Template, metav1.FormatLabelSelector(o.Spec.Selector))
		}),
		"apps/v1 Deployment": printed(heads("Name|Ready|Up-to-date|Available|Age|+Containers|+Images|+Selector"), func(o *appsv1.Deployment) []any {
			chosen := "<invalid>"
			if selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector); err == nil {
				chosen = selector.String()
			}
			return wide([]any{o.Name, fmt.Sprintf("%d/%d", o.Status.ReadyReplicas, number(o.Spec.Replicas)),
				int64(o.Status.UpdatedReplicas), int64(o.Status.AvailableReplicas), age(o.CreationTimestamp)}, &o.Spec.Template, chosen)
		}),
		"apps/v1 StatefulSet": printed(heads("Name|Ready|Age|+Containers|+Images"), func(o *appsv1.StatefulSet) []any {
			return wide([]any{o.Name, fmt.Sprintf("%d/%d", o.Status.ReadyReplicas, number(o.Spec.Replicas)), age(o.CreationTimestamp)}, &o.Spec.Template)
		}),
		"apps/v1 DaemonSet": printed(heads("Name|Desired#|Current#|Ready#|Up-to-date#|Available#|Node Selector|Age|+Containers|+Images|+Selector"), func(o *appsv1.DaemonSet) []any {
			s := o.Status
			return wide([]any{o.Name, int64(s.DesiredNumberScheduled), int64(s.CurrentNumberScheduled), int64(s.NumberReady), int64(s.UpdatedNumberScheduled),
				int64(s.NumberAvailable), labels.FormatLabels(o.Spec.Template.Spec.NodeSelector), age(o.CreationTimestamp)}, &o.Spec.Template, metav1.FormatLabelSelector(o.Spec.Selector))
		}),
		"apps/v1 ControllerRevision": printed(heads("Name|Controller|Revision|Age"), func(o *appsv1.ControllerRevision) []any {
			controller := cellNone
			if owner := metav1.GetControllerOf(o); owner != nil {
				group, _, _ := strings.Cut(owner.APIVersion, "/")
				controller = strings.ToLower(owner.Kind) + "." + group + "/" + owner.Name
			}
			return []any{o.Name, controller, o.Revision, age(o.CreationTimestamp)}
		}),
		"batch/v1 Job":     printed(heads("Name|Status|Completions|Duration|Age|+Containers|+Images|+Selector"), jobCells),
		"batch/v1 CronJob": printed(heads("Name|Schedule|Timezone|Suspend?|Active#|Last Schedule|Age|+Containers|+Images|+Selector"), cronJobCells),
	}
}

// number dereferences a pointer; nil is zero.
func number(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

// wide appends the cells about a template that wide output shows.
func wide(cells []any, template *corev1.PodTemplateSpec, more ...any) []any {
	var names, images []string
	for _, c := range template.Spec.Containers {
		names, images = append(names, c.Name), append(images, c.Image)
	}
	return append(append(cells, strings.Join(names, ","), strings.Join(images, ",")), more...)
}

func jobCells(o *batchv1.Job) []any {
	completions := fmt.Sprintf("%d/1", o.Status.Succeeded)
	switch parallel := number(o.Spec.Parallelism); {
	case o.Spec.Completions != nil:
		completions = fmt.Sprintf("%d/%d", o.Status.Succeeded, *o.Spec.Completions)
	case parallel > 1:
		completions += fmt.Sprintf(" of %d", parallel)
	}
	took := ""
	if begin := o.Status.StartTime; begin != nil {
		end := time.Now()
		if o.Status.CompletionTime != nil {
			end = o.Status.CompletionTime.Time
		}
		took = duration.HumanDuration(end.Sub(begin.Time))
	}
	return wide([]any{o.Name, jobStatus(o), completions, took, age(o.CreationTimestamp)}, &o.Spec.Template, metav1.FormatLabelSelector(o.Spec.Selector))
}

func jobStatus(o *batchv1.Job) string {
	has := func(kind batchv1.JobConditionType) bool {
		return slices.ContainsFunc(o.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
	}
	switch {
	case has(batchv1.JobComplete):
		return "Complete"
	case has(batchv1.JobFailed):
		return "Failed"
	case !object.Unset(o.DeletionTimestamp):
		return "Terminating"
	}
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuspended, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet} {
		if has(kind) {
			return string(kind)
		}
	}
	return "Running"
}

func cronJobCells(o *batchv1.CronJob) []any {
	last := cellNone
	if o.Status.LastScheduleTime != nil {
		last = age(*o.Status.LastScheduleTime)
	}
	suspended := cellUnset
	if o.Spec.Suspend != nil {
		suspended = map[bool]string{true: "True", false: "False"}[*o.Spec.Suspend]
	}
	job := &o.Spec.JobTemplate.Spec
	return wide([]any{o.Name, o.Spec.Schedule, orValue(o.Spec.TimeZone, cellNone), suspended, int64(len(o.Status.Active)), last, age(o.CreationTimestamp)},
		&job.Template, metav1.FormatLabelSelector(job.Selector))
}
