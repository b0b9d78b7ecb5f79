// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// countOrPercent wants a number that is not negative, or a percentage.
func countOrPercent(value *intstr.IntOrString, path *field.Path) field.ErrorList {
	switch {
	case value == nil:
		return nil
	case value.Type == intstr.String:
		return invalids(path, value.StrVal, utilvalidation.IsValidPercent(value.StrVal))
	case value.IntVal < 0:
		return field.ErrorList{field.Invalid(path, value.IntVal, "must be greater than or equal to 0")}
	}
	return nil
}

// atMostAll refuses more than a hundred percent.
func atMostAll(value *intstr.IntOrString, path *field.Path) field.ErrorList {
	if value == nil || value.Type != intstr.String || len(utilvalidation.IsValidPercent(value.StrVal)) > 0 {
		return nil
	}
	if countIn(value) > 100 {
		return field.ErrorList{field.Invalid(path, value.StrVal, "must not be greater than 100%")}
	}
	return nil
}

// countIn is the number that a count or a percentage has.
func countIn(value *intstr.IntOrString) int {
	if value == nil {
		return 0
	}
	if value.Type == intstr.Int {
		return int(value.IntVal)
	}
	n, _ := strconv.Atoi(strings.TrimSuffix(value.StrVal, "%"))
	return n
}

// inner shows what the real server shows: its inner type, whose fields have no
// JSON names.
type inner struct{ Type, RollingUpdate any }

func validateStrategy(s *appsv1.DeploymentStrategy, path *field.Path) (errs field.ErrorList) {
	switch s.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if s.RollingUpdate != nil {
			errs = append(errs, field.Forbidden(path.Child("rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'"))
		}
		return errs
	case appsv1.RollingUpdateDeploymentStrategyType:
	default:
		return field.ErrorList{field.NotSupported(path, any(inner{s.Type, nil}), []string{string(appsv1.RecreateDeploymentStrategyType), string(appsv1.RollingUpdateDeploymentStrategyType)})}
	}
	if s.RollingUpdate == nil {
		return field.ErrorList{field.Required(path.Child("rollingUpdate"), "this should be defaulted and never be nil")}
	}
	surge, away := s.RollingUpdate.MaxSurge, s.RollingUpdate.MaxUnavailable
	at := path.Child("rollingUpdate")
	errs = append(errs, countOrPercent(away, at.Child("maxUnavailable"))...)
	errs = append(errs, countOrPercent(surge, at.Child("maxSurge"))...)
	if len(errs) == 0 && countIn(surge) == 0 && countIn(away) == 0 {
		errs = append(errs, field.Invalid(at.Child("maxUnavailable"), away, "may not be 0 when `maxSurge` is 0"))
	}
	return append(errs, atMostAll(away, at.Child("maxUnavailable"))...)
}

func validateDaemonStrategy(s *appsv1.DaemonSetUpdateStrategy, path *field.Path) (errs field.ErrorList) {
	switch s.Type {
	case appsv1.OnDeleteDaemonSetStrategyType:
		return nil
	case appsv1.RollingUpdateDaemonSetStrategyType:
	default:
		return field.ErrorList{field.NotSupported(path, any(inner{s.Type, nil}), []string{string(appsv1.RollingUpdateDaemonSetStrategyType), string(appsv1.OnDeleteDaemonSetStrategyType)})}
	}
	at := path.Child("rollingUpdate")
	if s.RollingUpdate == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	surge, away := s.RollingUpdate.MaxSurge, s.RollingUpdate.MaxUnavailable
	errs = append(countOrPercent(away, at.Child("maxUnavailable")), atMostAll(away, at.Child("maxUnavailable"))...)
	errs = append(errs, countOrPercent(surge, at.Child("maxSurge"))...)
	errs = append(errs, atMostAll(surge, at.Child("maxSurge"))...)
	switch {
	case len(errs) > 0:
	case countIn(surge) > 0 && countIn(away) > 0:
		errs = append(errs, field.Invalid(at.Child("maxSurge"), surge, "may not be set when maxUnavailable is non-zero"))
	case countIn(surge) == 0 && countIn(away) == 0:
		errs = append(errs, field.Required(at.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
	}
	return errs
}

func validateStatefulSpec(s *appsv1.StatefulSetSpec, path *field.Path) (errs field.ErrorList) {
	if p := s.PodManagementPolicy; p != appsv1.OrderedReadyPodManagement && p != appsv1.ParallelPodManagement {
		errs = append(errs, field.Invalid(path.Child("podManagementPolicy"), p, fmt.Sprintf("must be '%s' or '%s'", appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)))
	}
	update, at := s.UpdateStrategy.RollingUpdate, path.Child("updateStrategy")
	switch s.UpdateStrategy.Type {
	case appsv1.OnDeleteStatefulSetStrategyType:
		if update != nil {
			errs = append(errs, field.Invalid(at.Child("rollingUpdate"), update, "only allowed for updateStrategy 'RollingUpdate'"))
		}
	case appsv1.RollingUpdateStatefulSetStrategyType:
		if update == nil {
			break
		}
		at = at.Child("rollingUpdate")
		errs = append(errs, nonNegativeIf(at, "partition", update.Partition)...)
		wrong := append(countOrPercent(update.MaxUnavailable, at.Child("maxUnavailable")), atMostAll(update.MaxUnavailable, at.Child("maxUnavailable"))...)
		if len(wrong) == 0 && update.MaxUnavailable != nil && countIn(update.MaxUnavailable) == 0 {
			wrong = append(wrong, field.Invalid(at.Child("maxUnavailable"), update.MaxUnavailable, "cannot be 0"))
		}
		errs = append(errs, wrong...)
	default:
		errs = append(errs, field.Invalid(at, inner{s.UpdateStrategy.Type, nil}, "must be 'RollingUpdate' or 'OnDelete'"))
	}
	if p := s.PersistentVolumeClaimRetentionPolicy; p != nil {
		at := path.Child("persistentVolumeClaimRetentionPolicy")
		for name, policy := range map[string]appsv1.PersistentVolumeClaimRetentionPolicyType{"whenDeleted": p.WhenDeleted, "whenScaled": p.WhenScaled} {
			errs = append(errs, supported(policy, at.Child(name), appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType)...)
		}
	}
	for i := range s.VolumeClaimTemplates {
		errs = append(errs, validateClaimSpec(&s.VolumeClaimTemplates[i].Spec, path.Child("volumeClaimTemplates").Index(i).Child("spec"))...)
	}
	if s.Ordinals != nil {
		errs = append(errs, nonNegative(path.Child("ordinals"), "start", s.Ordinals.Start)...)
	}
	if s.ServiceName != "" {
		errs = append(errs, invalids(path.Child("serviceName"), s.ServiceName, utilvalidation.IsDNS1123Label(s.ServiceName))...)
	}
	return errs
}

func validateReplicationController(o *corev1.ReplicationController) (errs field.ErrorList) {
	path := field.NewPath("spec")
	errs = append(nonNegativeIf(path, "replicas", o.Spec.Replicas), nonNegative(path, "minReadySeconds", o.Spec.MinReadySeconds)...)
	if len(o.Spec.Selector) == 0 {
		errs = append(errs, field.Required(path.Child("selector"), ""))
	}
	if o.Spec.Template == nil {
		return append(errs, field.Required(path.Child("template"), ""))
	}
	for name, value := range o.Spec.Selector {
		if has, ok := o.Spec.Template.Labels[name]; !ok || has != value {
			errs = append(errs, field.Invalid(path.Child("template", "metadata", "labels"), o.Spec.Template.Labels, "`selector` does not match template `labels`"))
			break
		}
	}
	errs = append(errs, validateTemplate(o.Spec.Template, path.Child("template"), corev1.RestartPolicyAlways)...)
	if o.Spec.Template.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("template", "spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in ReplicationController is not Supported"))
	}
	return errs
}
