// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// workload is what the kinds that run Pods have in common.
type workload struct {
	kind     string // as a selector's error calls it
	replicas *int32
	selector *metav1.LabelSelector
	template *corev1.PodTemplateSpec
	claims   []corev1.PersistentVolumeClaim // each a volume of the Pods
}

func (w workload) validate() (errs field.ErrorList) {
	spec := field.NewPath("spec")
	if w.replicas != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(*w.replicas), spec.Child("replicas"))...)
	}
	path := spec.Child("selector")
	if w.selector == nil {
		errs = append(errs, field.Required(path, ""))
	} else {
		errs = append(errs, metav1validation.ValidateLabelSelector(w.selector, metav1validation.LabelSelectorValidationOptions{}, path)...)
		if len(w.selector.MatchLabels)+len(w.selector.MatchExpressions) == 0 {
			errs = append(errs, field.Invalid(path, w.selector, "empty selector is invalid for "+w.kind))
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	switch {
	case err != nil:
		errs = append(errs, field.Invalid(path, w.selector, "invalid label selector"))
	case !selector.Empty() && !selector.Matches(labels.Set(w.template.Labels)):
		errs = append(errs, field.Invalid(spec.Child("template", "metadata", "labels"), w.template.Labels, "`selector` does not match template `labels`"))
	}
	return append(errs, validateTemplate(w.withClaims(), corev1.RestartPolicyAlways)...)
}

// withClaims is the template with the volumes that its claims become. A claim takes the
// place of a volume of the same name.
func (w workload) withClaims() *corev1.PodTemplateSpec {
	if len(w.claims) == 0 {
		return w.template
	}
	template := *w.template
	var volumes []corev1.Volume
	for _, c := range w.claims {
		source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name}}
		volumes = append(volumes, corev1.Volume{Name: c.Name, VolumeSource: source})
	}
	for _, v := range template.Spec.Volumes {
		if !slices.ContainsFunc(w.claims, func(c corev1.PersistentVolumeClaim) bool { return c.Name == v.Name }) {
			volumes = append(volumes, v)
		}
	}
	template.Spec.Volumes = volumes
	return &template
}

// validateTemplate holds a template of Pods, which start again as policies say.
func validateTemplate(t *corev1.PodTemplateSpec, policies ...corev1.RestartPolicy) (errs field.ErrorList) {
	path := field.NewPath("spec", "template")
	errs = append(errs, metav1validation.ValidateLabels(t.Labels, path.Child("labels"))...)
	errs = append(errs, apivalidation.ValidateAnnotations(t.Annotations, path.Child("annotations"))...)
	errs = append(errs, validatePodSpec(&t.Spec, path.Child("spec"))...)
	for _, p := range policies {
		if t.Spec.RestartPolicy == p {
			return errs
		}
	}
	if len(policies) > 1 {
		return append(errs, field.Required(path.Child("spec", "restartPolicy"), "valid values: \"OnFailure\", \"Never\""))
	}
	return append(errs, field.NotSupported(path.Child("spec", "restartPolicy"), t.Spec.RestartPolicy, policies))
}

// sameSelector holds a selector to what it was.
func sameSelector(now, old *metav1.LabelSelector) field.ErrorList {
	return apivalidation.ValidateImmutableField(now, old, field.NewPath("spec", "selector"))
}

func validateDeployment(o, old *appsv1.Deployment) field.ErrorList {
	errs := workload{kind: "deployment", replicas: o.Spec.Replicas, selector: o.Spec.Selector, template: &o.Spec.Template}.validate()
	strategy := field.NewPath("spec", "strategy")
	switch o.Spec.Strategy.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if o.Spec.Strategy.RollingUpdate != nil {
			errs = append(errs, field.Forbidden(strategy.Child("rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'"))
		}
	case appsv1.RollingUpdateDeploymentStrategyType:
	default:
		errs = append(errs, field.NotSupported(strategy, o.Spec.Strategy.Type, []appsv1.DeploymentStrategyType{appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType}))
	}
	if old != nil {
		errs = append(errs, sameSelector(o.Spec.Selector, old.Spec.Selector)...)
	}
	return errs
}

func validateReplicaSet(o, old *appsv1.ReplicaSet) field.ErrorList {
	errs := workload{kind: "deployment", replicas: o.Spec.Replicas, selector: o.Spec.Selector, template: &o.Spec.Template}.validate()
	if old != nil {
		errs = append(errs, sameSelector(o.Spec.Selector, old.Spec.Selector)...)
	}
	return errs
}

func validateDaemonSet(o, old *appsv1.DaemonSet) field.ErrorList {
	errs := workload{kind: "daemonset", selector: o.Spec.Selector, template: &o.Spec.Template}.validate()
	if old != nil {
		errs = append(errs, sameSelector(o.Spec.Selector, old.Spec.Selector)...)
	}
	return errs
}

func validateStatefulSet(o, old *appsv1.StatefulSet) field.ErrorList {
	errs := workload{kind: "statefulset", replicas: o.Spec.Replicas, selector: o.Spec.Selector, template: &o.Spec.Template, claims: o.Spec.VolumeClaimTemplates}.validate()
	if old == nil {
		return errs
	}
	is, was := o.Spec.DeepCopy(), old.Spec.DeepCopy()
	is.Replicas, is.Template, is.UpdateStrategy, is.MinReadySeconds = was.Replicas, was.Template, was.UpdateStrategy, was.MinReadySeconds
	errs = append(errs, apivalidation.ValidateImmutableField(o.Spec.ServiceName, old.Spec.ServiceName, field.NewPath("spec", "serviceName"))...)
	is.ServiceName, is.Ordinals, is.PersistentVolumeClaimRetentionPolicy, is.RevisionHistoryLimit = was.ServiceName, was.Ordinals, was.PersistentVolumeClaimRetentionPolicy, was.RevisionHistoryLimit
	if !reflect.DeepEqual(is, was) {
		errs = append(errs, field.Forbidden(field.NewPath("spec"), "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"))
	}
	return errs
}

func validateJob(o, old *batchv1.Job) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateTemplate(&o.Spec.Template, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	for _, count := range []struct {
		name  string
		value *int32
	}{{"parallelism", o.Spec.Parallelism}, {"completions", o.Spec.Completions}, {"backoffLimit", o.Spec.BackoffLimit}} {
		if count.value != nil {
			errs = append(errs, apivalidation.ValidateNonnegativeField(int64(*count.value), spec.Child(count.name))...)
		}
	}
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

func validateCronJob(o *batchv1.CronJob) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	if o.Spec.Schedule == "" {
		errs = append(errs, field.Required(spec.Child("schedule"), ""))
	}
	template := o.Spec.JobTemplate.Spec.Template
	return append(errs, validatePodSpec(&template.Spec, spec.Child("jobTemplate", "spec", "template", "spec"))...)
}
