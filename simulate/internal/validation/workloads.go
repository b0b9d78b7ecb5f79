// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validatePodTemplate(o *corev1.PodTemplate) field.ErrorList {
	return validateTemplate(&o.Template, field.NewPath("template"))
}

// workload is what the kinds that run Pods have in common.
type workload struct {
	kind     string // as a selector's error calls it
	deadline string // as a deadline's error calls it
	replicas *int32
	ready    int32
	selector *metav1.LabelSelector
	template *corev1.PodTemplateSpec
	claims   []corev1.PersistentVolumeClaim // each a volume of the Pods
}

func (w workload) validate() (errs field.ErrorList) {
	spec := field.NewPath("spec")
	errs = nonNegativeIf(spec, "replicas", w.replicas)
	errs = append(errs, nonNegative(spec, "minReadySeconds", w.ready)...)
	if w.template.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(spec.Child("template", "spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in "+w.deadline+" is not Supported"))
	}
	path := spec.Child("selector")
	if w.selector == nil && w.kind == "daemonset" {
		// which a real server does not say
	} else if w.selector == nil {
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
	return append(errs, validateTemplate(w.withClaims(), spec.Child("template"), corev1.RestartPolicyAlways)...)
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
	template.Spec.Volumes = append(volumes, slices.DeleteFunc(slices.Clone(template.Spec.Volumes), func(v corev1.Volume) bool {
		return slices.ContainsFunc(w.claims, func(c corev1.PersistentVolumeClaim) bool { return c.Name == v.Name })
	})...)
	return &template
}

// validateTemplate holds a template of Pods, which start again as policies say.
func validateTemplate(t *corev1.PodTemplateSpec, path *field.Path, policies ...corev1.RestartPolicy) (errs field.ErrorList) {
	errs = append(errs, metav1validation.ValidateLabels(t.Labels, path.Child("labels"))...)
	errs = append(errs, apivalidation.ValidateAnnotations(t.Annotations, path.Child("annotations"))...)
	errs = append(errs, validatePodSpec(&t.Spec, path.Child("spec"))...)
	if len(t.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template"))
	}
	if len(policies) == 0 || slices.Contains(policies, t.Spec.RestartPolicy) {
		return errs
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
	errs := workload{kind: "deployment", deadline: "ReplicaSet", replicas: o.Spec.Replicas, ready: o.Spec.MinReadySeconds, selector: o.Spec.Selector, template: &o.Spec.Template}.validate()
	spec := field.NewPath("spec")
	errs = append(errs, validateStrategy(&o.Spec.Strategy, spec.Child("strategy"))...)
	errs = append(errs, nonNegativeIf(spec, "revisionHistoryLimit", o.Spec.RevisionHistoryLimit)...)
	if limit := o.Spec.ProgressDeadlineSeconds; limit != nil {
		errs = append(errs, nonNegative(spec, "progressDeadlineSeconds", *limit)...)
		if *limit <= o.Spec.MinReadySeconds {
			errs = append(errs, field.Invalid(spec.Child("progressDeadlineSeconds"), *limit, "must be greater than minReadySeconds"))
		}
	}
	if old != nil {
		errs = append(errs, sameSelector(o.Spec.Selector, old.Spec.Selector)...)
	}
	return errs
}

func validateReplicaSet(o, old *appsv1.ReplicaSet) field.ErrorList {
	errs := workload{kind: "deployment", deadline: "ReplicaSet", replicas: o.Spec.Replicas, ready: o.Spec.MinReadySeconds, selector: o.Spec.Selector, template: &o.Spec.Template}.validate()
	if old != nil {
		errs = append(errs, sameSelector(o.Spec.Selector, old.Spec.Selector)...)
	}
	return errs
}

func validateDaemonSet(o, old *appsv1.DaemonSet) field.ErrorList {
	spec := field.NewPath("spec")
	errs := workload{kind: "daemonset", deadline: "DaemonSet", ready: o.Spec.MinReadySeconds, selector: o.Spec.Selector, template: &o.Spec.Template}.validate()
	errs = append(errs, validateDaemonStrategy(&o.Spec.UpdateStrategy, spec.Child("updateStrategy"))...)
	errs = append(errs, nonNegativeIf(spec, "revisionHistoryLimit", o.Spec.RevisionHistoryLimit)...)
	if old != nil {
		errs = append(errs, sameSelector(o.Spec.Selector, old.Spec.Selector)...)
	}
	return errs
}

func validateStatefulSet(o, old *appsv1.StatefulSet) field.ErrorList {
	errs := workload{kind: "statefulset", deadline: "StatefulSet", replicas: o.Spec.Replicas, ready: o.Spec.MinReadySeconds, selector: o.Spec.Selector, template: &o.Spec.Template, claims: o.Spec.VolumeClaimTemplates}.validate()
	errs = append(errs, validateStatefulSpec(&o.Spec, field.NewPath("spec"))...)
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
