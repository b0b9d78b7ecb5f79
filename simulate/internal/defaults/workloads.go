// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"math"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	revisions       = 10
	progressSeconds = 600
	backoffLimit    = 6
)

func defaultDeployment(o *appsv1.Deployment) {
	s := &o.Spec
	OrElse(&s.Replicas, 1)
	OrElse(&s.RevisionHistoryLimit, revisions)
	OrElse(&s.ProgressDeadlineSeconds, progressSeconds)
	ZeroElse(&s.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		OrElse(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		OrElse(&s.Strategy.RollingUpdate.MaxUnavailable, percent("25%"))
		OrElse(&s.Strategy.RollingUpdate.MaxSurge, percent("25%"))
	}
	defaultPodSpec(&s.Template.Spec)
}

func defaultReplicationController(o *corev1.ReplicationController) {
	OrElse(&o.Spec.Replicas, 1)
	if o.Spec.Template == nil {
		return
	}
	if len(o.Spec.Selector) == 0 {
		o.Spec.Selector = o.Spec.Template.Labels
	}
	if len(o.Labels) == 0 {
		o.Labels = o.Spec.Template.Labels
	}
	defaultPodSpec(&o.Spec.Template.Spec)
}

func defaultReplicaSet(o *appsv1.ReplicaSet) {
	OrElse(&o.Spec.Replicas, 1)
	defaultPodSpec(&o.Spec.Template.Spec)
}

func defaultStatefulSet(o *appsv1.StatefulSet) {
	s := &o.Spec
	ZeroElse(&s.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		OrElse(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if s.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && s.UpdateStrategy.RollingUpdate != nil {
		OrElse(&s.UpdateStrategy.RollingUpdate.Partition, 0)
		OrElse(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	}
	OrElse(&s.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	ZeroElse(&s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	ZeroElse(&s.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	OrElse(&s.Replicas, 1)
	OrElse(&s.RevisionHistoryLimit, revisions)
	for i := range s.VolumeClaimTemplates {
		claim := &s.VolumeClaimTemplates[i]
		claim.APIVersion, claim.Kind = "v1", "PersistentVolumeClaim"
		ZeroElse(&claim.Status.Phase, corev1.ClaimPending)
		OrElse(&claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	}
	defaultPodSpec(&s.Template.Spec)
}

func defaultDaemonSet(o *appsv1.DaemonSet) {
	s := &o.Spec
	if _, given := o.Annotations[appsv1.DeprecatedTemplateGeneration]; !given {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, appsv1.DeprecatedTemplateGeneration, "0")
	}
	ZeroElse(&s.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if s.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		OrElse(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		OrElse(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		OrElse(&s.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	OrElse(&s.RevisionHistoryLimit, revisions)
	defaultPodSpec(&s.Template.Spec)
}

func defaultJob(o *batchv1.Job) {
	defaultJobSpec(&o.Spec)
	if len(o.Labels) == 0 {
		o.Labels = o.Spec.Template.Labels
	}
}

func defaultJobSpec(s *batchv1.JobSpec) {
	if s.Completions == nil && s.Parallelism == nil {
		s.Completions = new(int32(1))
	}
	OrElse(&s.Parallelism, 1)
	if s.BackoffLimitPerIndex != nil {
		OrElse(&s.BackoffLimit, math.MaxInt32)
	}
	OrElse(&s.BackoffLimit, backoffLimit)
	OrElse(&s.ManualSelector, false)
	OrElse(&s.CompletionMode, batchv1.NonIndexedCompletion)
	OrElse(&s.Suspend, false)
	if s.PodFailurePolicy != nil {
		OrElse(&s.PodReplacementPolicy, batchv1.Failed)
	} else {
		OrElse(&s.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	}
	defaultFailurePolicy(s.PodFailurePolicy)
	defaultPodSpec(&s.Template.Spec)
}

func defaultFailurePolicy(p *batchv1.PodFailurePolicy) {
	if p == nil {
		return
	}
	for _, rule := range p.Rules {
		for i := range rule.OnPodConditions {
			ZeroElse(&rule.OnPodConditions[i].Status, corev1.ConditionTrue)
		}
	}
}

func defaultCronJob(o *batchv1.CronJob) {
	s := &o.Spec
	ZeroElse(&s.ConcurrencyPolicy, batchv1.AllowConcurrent)
	OrElse(&s.Suspend, false)
	OrElse(&s.SuccessfulJobsHistoryLimit, 3)
	OrElse(&s.FailedJobsHistoryLimit, 1)
	defaultFailurePolicy(s.JobTemplate.Spec.PodFailurePolicy)
	defaultPodSpec(&s.JobTemplate.Spec.Template.Spec)
}
