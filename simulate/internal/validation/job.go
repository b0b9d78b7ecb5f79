// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateJob(o, old *batchv1.Job) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateJobSpec(&o.Spec, spec)
	errs = append(errs, validateJobSelector(o, spec)...)
	if old == nil {
		return errs
	}
	errs = append(errs, apivalidation.ValidateImmutableField(o.Spec.Completions, old.Spec.Completions, spec.Child("completions"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(o.Spec.Selector, old.Spec.Selector, spec.Child("selector"))...)
	if old.Spec.Suspend == nil || !*old.Spec.Suspend {
		errs = append(errs, apivalidation.ValidateImmutableField(o.Spec.Template, old.Spec.Template, spec.Child("template"))...)
	}
	return errs
}

// validateJobSelector wants the selector of a Job to be of its Pods alone.
func validateJobSelector(o *batchv1.Job, spec *field.Path) (errs field.ErrorList) {
	if o.Spec.Selector == nil {
		errs = append(errs, field.Required(spec.Child("selector"), ""))
	}
	manual := o.Spec.ManualSelector != nil && *o.Spec.ManualSelector
	if made := o.Spec.Selector; made != nil && !manual {
		own := map[string]string{batchv1.ControllerUidLabel: string(o.UID)}
		if len(made.MatchLabels) != 1 || made.MatchLabels[batchv1.ControllerUidLabel] != own[batchv1.ControllerUidLabel] || len(made.MatchExpressions) > 0 {
			errs = append(errs, field.Invalid(spec.Child("selector"), made, "`selector` not auto-generated"))
		}
	}
	if selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector); err == nil && !selector.Matches(labels.Set(o.Spec.Template.Labels)) {
		errs = append(errs, field.Invalid(spec.Child("template", "metadata", "labels"), o.Spec.Template.Labels, "`selector` does not match template `labels`"))
	}
	return errs
}

func validateJobSpec(s *batchv1.JobSpec, spec *field.Path) field.ErrorList {
	errs := validateTemplate(&s.Template, spec.Child("template"), corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	for _, count := range []struct {
		name  string
		value *int32
	}{
		{"parallelism", s.Parallelism}, {"completions", s.Completions}, {"backoffLimit", s.BackoffLimit}, {"ttlSecondsAfterFinished", s.TTLSecondsAfterFinished},
		{"backoffLimitPerIndex", s.BackoffLimitPerIndex}, {"maxFailedIndexes", s.MaxFailedIndexes},
	} {
		errs = append(errs, nonNegativeIf(spec, count.name, count.value)...)
	}
	errs = append(errs, nonNegativeIf(spec, "activeDeadlineSeconds", s.ActiveDeadlineSeconds)...)
	errs = append(errs, validateIndexes(s, spec)...)
	if s.ManagedBy != nil {
		errs = append(errs, utilvalidation.IsDomainPrefixedPath(spec.Child("managedBy"), *s.ManagedBy)...)
	}
	if s.PodReplacementPolicy != nil {
		policies := []batchv1.PodReplacementPolicy{batchv1.Failed, batchv1.TerminatingOrFailed}
		if s.PodFailurePolicy != nil {
			policies = policies[:1]
		}
		errs = append(errs, supported(*s.PodReplacementPolicy, spec.Child("podReplacementPolicy"), policies...)...)
	}
	errs = append(errs, validateFailurePolicy(s, spec.Child("podFailurePolicy"))...)
	if s.PodFailurePolicy != nil && s.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
		errs = append(errs, field.Invalid(spec.Child("template", "spec", "restartPolicy"), s.Template.Spec.RestartPolicy, "only \"Never\" is supported when podFailurePolicy is specified"))
	}
	return append(errs, validateSuccessPolicy(s, spec.Child("successPolicy"))...)
}

// validateIndexes holds what only Jobs with indexes have.
func validateIndexes(s *batchv1.JobSpec, spec *field.Path) (errs field.ErrorList) {
	indexed := s.CompletionMode != nil && *s.CompletionMode == batchv1.IndexedCompletion
	errs = append(errs, supportedIf(s.CompletionMode, spec.Child("completionMode"), batchv1.NonIndexedCompletion, batchv1.IndexedCompletion)...)
	if indexed && s.Completions == nil {
		errs = append(errs, field.Required(spec.Child("completions"), "when completion mode is Indexed"))
	}
	if indexed && s.Completions != nil && s.MaxFailedIndexes != nil && *s.MaxFailedIndexes > *s.Completions {
		errs = append(errs, field.Invalid(spec.Child("maxFailedIndexes"), *s.MaxFailedIndexes, "must be less than or equal to completions"))
	}
	if s.MaxFailedIndexes != nil && s.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Required(spec.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
	}
	if indexed {
		return errs
	}
	if s.BackoffLimitPerIndex != nil {
		errs = append(errs, field.Invalid(spec.Child("backoffLimitPerIndex"), *s.BackoffLimitPerIndex, "requires indexed completion mode"))
	}
	if s.MaxFailedIndexes != nil {
		errs = append(errs, field.Invalid(spec.Child("maxFailedIndexes"), *s.MaxFailedIndexes, "requires indexed completion mode"))
	}
	return errs
}

func validateFailurePolicy(s *batchv1.JobSpec, path *field.Path) (errs field.ErrorList) {
	if s.PodFailurePolicy == nil {
		return nil
	}
	for i, rule := range s.PodFailurePolicy.Rules {
		at := path.Child("rules").Index(i)
		if rule.Action == batchv1.PodFailurePolicyActionFailIndex && s.BackoffLimitPerIndex == nil {
			errs = append(errs, field.Invalid(at.Child("action"), rule.Action, "requires the backoffLimitPerIndex to be set"))
		}
		errs = append(errs, supported(rule.Action, at.Child("action"), batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore)...)
		for j, c := range rule.OnPodConditions {
			each := at.Child("onPodConditions").Index(j)
			errs = append(errs, invalids(each.Child("type"), string(c.Type), utilvalidation.IsQualifiedName(string(c.Type)))...)
			errs = append(errs, supported(c.Status, each.Child("status"), corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown)...)
		}
		switch codes := rule.OnExitCodes; {
		case codes != nil && len(rule.OnPodConditions) > 0:
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported"))
		case codes == nil && len(rule.OnPodConditions) == 0:
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required"))
		case codes != nil:
			errs = append(errs, validateExitCodes(codes, &s.Template.Spec, at.Child("onExitCodes"))...)
		}
	}
	return errs
}

func validateExitCodes(codes *batchv1.PodFailurePolicyOnExitCodesRequirement, pod *corev1.PodSpec, path *field.Path) (errs field.ErrorList) {
	errs = supported(codes.Operator, path.Child("operator"), batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn)
	if name := codes.ContainerName; name != nil {
		known := false
		for _, c := range append(append([]corev1.Container{}, pod.Containers...), pod.InitContainers...) {
			known = known || c.Name == *name
		}
		if !known {
			errs = append(errs, field.Invalid(path.Child("containerName"), *name, "must be one of the container or initContainer names in the pod template"))
		}
	}
	if len(codes.Values) == 0 {
		errs = append(errs, field.Invalid(path.Child("values"), codes.Values, "at least one value is required"))
	}
	seen := map[int32]bool{}
	for i, code := range codes.Values {
		at := path.Child("values").Index(i)
		if code == 0 && codes.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn {
			errs = append(errs, field.Invalid(at, code, "must not be 0 for the In operator"))
		}
		if seen[code] {
			errs = append(errs, field.Duplicate(at, code))
		}
		seen[code] = true
	}
	return errs
}

func validateSuccessPolicy(s *batchv1.JobSpec, path *field.Path) (errs field.ErrorList) {
	if s.SuccessPolicy == nil {
		return nil
	}
	if s.CompletionMode == nil || *s.CompletionMode != batchv1.IndexedCompletion {
		return field.ErrorList{field.Invalid(path, s.SuccessPolicy, "requires indexed completion mode")}
	}
	if len(s.SuccessPolicy.Rules) == 0 {
		return field.ErrorList{field.Required(path.Child("rules"), "at least one rules must be specified when the successPolicy is specified")}
	}
	for i, rule := range s.SuccessPolicy.Rules {
		at := path.Child("rules").Index(i)
		if rule.SucceededCount == nil && rule.SucceededIndexes == nil {
			errs = append(errs, field.Required(at, "at least one of succeededCount or succeededIndexes must be specified"))
		}
		if rule.SucceededIndexes != nil && s.Completions != nil {
			if err := indexesWithin(*rule.SucceededIndexes, int(*s.Completions)); err != nil {
				errs = append(errs, field.Invalid(at.Child("succeededIndexes"), *rule.SucceededIndexes, "error parsing succeededIndexes: "+err.Error()))
			}
		}
		if n := rule.SucceededCount; n != nil {
			errs = append(errs, nonNegative(at, "succeededCount", *n)...)
			if s.Completions != nil && *n > *s.Completions {
				errs = append(errs, field.Invalid(at.Child("succeededCount"), *n, fmt.Sprintf("must be less than or equal to %d (the number of specified completions)", *s.Completions)))
			}
		}
	}
	return errs
}

// indexesWithin reads numbers and ranges as "0,2-3".
func indexesWithin(text string, below int) error {
	if text == "" {
		return nil
	}
	for _, part := range strings.Split(text, ",") {
		for _, number := range strings.SplitN(part, "-", 2) {
			n, err := strconv.Atoi(number)
			if err != nil {
				return fmt.Errorf("cannot convert string to integer for index: %q", number)
			}
			if n >= below {
				return fmt.Errorf("too large index: %q", number)
			}
		}
	}
	return nil
}

func validateCronJob(o *batchv1.CronJob) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	errs = validateSchedule(o.Spec.Schedule, o.Spec.TimeZone, spec)
	errs = append(errs, supported(o.Spec.ConcurrencyPolicy, spec.Child("concurrencyPolicy"), batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	errs = append(errs, nonNegativeIf(spec, "startingDeadlineSeconds", o.Spec.StartingDeadlineSeconds)...)
	errs = append(errs, nonNegativeIf(spec, "successfulJobsHistoryLimit", o.Spec.SuccessfulJobsHistoryLimit)...)
	errs = append(errs, nonNegativeIf(spec, "failedJobsHistoryLimit", o.Spec.FailedJobsHistoryLimit)...)
	job := spec.Child("jobTemplate", "spec")
	if o.Spec.JobTemplate.Spec.Selector != nil {
		errs = append(errs, field.Invalid(job.Child("selector"), o.Spec.JobTemplate.Spec.Selector, "`selector` will be auto-generated"))
	}
	if manual := o.Spec.JobTemplate.Spec.ManualSelector; manual != nil && *manual {
		errs = append(errs, field.NotSupported(job.Child("manualSelector"), *manual, []string{"nil", "false"}))
	}
	return append(errs, validateJobSpec(&o.Spec.JobTemplate.Spec, job)...)
}
