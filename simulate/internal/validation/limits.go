// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateLimitRange(o *corev1.LimitRange) (errs field.ErrorList) {
	seen := map[corev1.LimitType]bool{}
	for i := range o.Spec.Limits {
		l, at := &o.Spec.Limits[i], field.NewPath("spec", "limits").Index(i)
		errs = append(errs, invalids(at.Child("type"), l.Type, utilvalidation.IsQualifiedName(string(l.Type)))...)
		if seen[l.Type] {
			errs = append(errs, field.Duplicate(at.Child("type"), l.Type))
		}
		seen[l.Type] = true
		errs = append(errs, validateLimit(l, at)...)
	}
	return errs
}

func validateLimit(l *corev1.LimitRangeItem, at *field.Path) (errs field.ErrorList) {
	if l.Type == corev1.LimitTypePod {
		for name, set := range map[string]bool{"default": len(l.Default) > 0, "defaultRequest": len(l.DefaultRequest) > 0} {
			if set {
				errs = append(errs, field.Forbidden(at.Child(name), "may not be specified when `type` is 'Pod'"))
			}
		}
		if len(errs) > 0 {
			return errs
		}
	}
	_, least := l.Min[corev1.ResourceStorage]
	if _, most := l.Max[corev1.ResourceStorage]; l.Type == corev1.LimitTypePersistentVolumeClaim && !least && !most {
		errs = append(errs, field.Required(at.Child("limits"), "either minimum or maximum storage value is required, but neither was provided"))
	}
	type bound struct {
		name, word string
		list       corev1.ResourceList
	}
	low, asked := bound{"min", "min", l.Min}, bound{"defaultRequest", "default request", l.DefaultRequest}
	given, high := bound{"default", "default", l.Default}, bound{"max", "max", l.Max}
	for _, pair := range []struct {
		lower, upper bound
		shown        string // whose place is named
		word         string // what the upper is called
	}{
		{low, high, "min", "max"}, {low, asked, "defaultRequest", "default request"}, {low, given, "default", "default"},
		{asked, high, "defaultRequest", "max"}, {asked, given, "defaultRequest", "default limit"}, {given, high, "default", "max"},
	} {
		for name, amount := range pair.lower.list {
			limit, limited := pair.upper.list[name]
			if !limited || amount.Cmp(limit) <= 0 {
				continue
			}
			shown := amount
			if pair.shown == "default" {
				shown = limit
			}
			errs = append(errs, field.Invalid(at.Child(pair.shown).Key(string(name)), shown.String(), fmt.Sprintf("%s value %s is greater than %s value %s", pair.lower.word, amount.String(), pair.word, limit.String())))
		}
	}
	for name, ratio := range l.MaxLimitRequestRatio {
		if ratio.Cmp(resource.MustParse("1")) < 0 {
			errs = append(errs, field.Invalid(at.Child("maxLimitRequestRatio").Key(string(name)), ratio.String(), fmt.Sprintf("ratio %s is less than 1", ratio.String())))
		}
	}
	return errs
}

// validateTaints wants taints to have names, and effects that there are.
func validateTaints(taints []corev1.Taint, path *field.Path) (errs field.ErrorList) {
	for i, t := range taints {
		at := path.Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(t.Key, at.Child("key"))...)
		errs = append(errs, supported(t.Effect, at.Child("effect"), corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
	}
	return errs
}

func validatePolicy(o *admissionv1.ValidatingAdmissionPolicy) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	errs = validatePolicyCommon(o.Spec.MatchConstraints, o.Spec.FailurePolicy, spec)
	if len(o.Spec.Validations)+len(o.Spec.AuditAnnotations) == 0 {
		const text = "validations or auditAnnotations must contain at least one item"
		errs = append(errs, field.Required(spec.Child("validations"), text), field.Required(spec.Child("auditAnnotations"), text))
	}
	reasons := []string{"Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"}
	for i, v := range o.Spec.Validations {
		at := spec.Child("validations").Index(i)
		errs = append(errs, expressed(v.Expression, at.Child("expression"))...)
		if v.Reason != nil && !slices.Contains(reasons, string(*v.Reason)) {
			errs = append(errs, field.NotSupported(at.Child("reason"), *v.Reason, reasons))
		}
	}
	return errs
}

func validateMutation(o *admissionv1.MutatingAdmissionPolicy) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	errs = validatePolicyCommon(o.Spec.MatchConstraints, o.Spec.FailurePolicy, spec)
	if len(o.Spec.Mutations) == 0 {
		errs = append(errs, field.Required(spec.Child("mutations"), "mutations must contain at least one item"))
	}
	if o.Spec.ReinvocationPolicy == "" {
		return append(errs, field.Required(spec.Child("reinvocationPolicy"), ""))
	}
	return append(errs, supported(o.Spec.ReinvocationPolicy, spec.Child("reinvocationPolicy"), admissionv1.IfNeededReinvocationPolicy, admissionv1.NeverReinvocationPolicy)...)
}

func validatePolicyCommon(match *admissionv1.MatchResources, failure *admissionv1.FailurePolicyType, spec *field.Path) (errs field.ErrorList) {
	if match == nil {
		errs = append(errs, field.Required(spec.Child("matchConstraints"), ""))
	}
	errs = append(errs, supportedIf(failure, spec.Child("failurePolicy"), admissionv1.Fail, admissionv1.Ignore)...)
	return errs
}

func expressed(expression string, path *field.Path) field.ErrorList {
	if expression != "" {
		return readable(expression, path)
	}
	return field.ErrorList{field.Required(path, "expression is not specified")}
}

func validatePolicyBinding(o *admissionv1.ValidatingAdmissionPolicyBinding) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	errs = required(spec, "policyName", o.Spec.PolicyName)
	actions, at := o.Spec.ValidationActions, spec.Child("validationActions")
	if len(actions) == 0 {
		errs = append(errs, field.Required(at, ""))
	}
	for i, action := range actions {
		errs = append(errs, supported(action, at.Index(i), admissionv1.Audit, admissionv1.Deny, admissionv1.Warn)...)
	}
	if slices.Contains(actions, admissionv1.Deny) && slices.Contains(actions, admissionv1.Warn) {
		errs = append(errs, field.Invalid(at, actions, "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
	}
	return errs
}
