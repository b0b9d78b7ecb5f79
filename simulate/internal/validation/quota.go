// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	// quotaCompute is what Pods ask for that a quota can bound.
	quotaCompute = []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
	}
	// quotaStorage is the storage that a quota can bound.
	quotaStorage = []corev1.ResourceName{
		corev1.ResourceEphemeralStorage, corev1.ResourceRequestsEphemeralStorage, corev1.ResourceLimitsEphemeralStorage, corev1.ResourceRequestsStorage,
	}
	// quotaCounts are the kinds whose objects a quota can count under a name without a prefix.
	quotaCounts = []corev1.ResourceName{
		corev1.ResourcePods, corev1.ResourceServices, corev1.ResourceReplicationControllers, corev1.ResourceQuotas, corev1.ResourceSecrets,
		corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers,
	}
	// quotaScopes are the scopes of quotas; the first ones are there or not, without values.
	quotaScopes = []corev1.ResourceQuotaScope{
		corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort,
		corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity, corev1.ResourceQuotaScopeVolumeAttributesClass,
	}
)

// plainScopes is how many of quotaScopes have no values.
const plainScopes = 4

func validateQuota(o *corev1.ResourceQuota) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	for name, amount := range o.Spec.Hard {
		errs = append(errs, validateQuotaAmount(name, amount, spec.Child("hard").Key(string(name)))...)
	}
	for _, scope := range o.Spec.Scopes {
		errs = append(errs, validateScope(o, scope, spec.Child("scopes"), o.Spec.Scopes)...)
	}
	errs = append(errs, validateScopes(o.Spec.Scopes, spec.Child("scopes"), o.Spec.Scopes)...)
	if o.Spec.ScopeSelector == nil {
		return Once(errs)
	}
	return Once(append(errs, validateScopeSelector(o, spec.Child("scopeSelector", "matchExpressions"))...))
}

func validateQuotaAmount(name corev1.ResourceName, amount resource.Quantity, at *field.Path) (errs field.ErrorList) {
	errs = invalids(at, string(name), utilvalidation.IsQualifiedName(string(name)))
	text := strings.TrimPrefix(string(name), "requests.")
	counts := slices.Contains(quotaCounts, name) || strings.HasPrefix(text, "count/")
	bare := !strings.Contains(string(name), "/")
	known := counts || slices.Contains(quotaCompute, name) || slices.Contains(quotaStorage, name) || strings.HasPrefix(text, corev1.ResourceHugePagesPrefix)
	if bare && !known {
		errs = append(errs, field.Invalid(at, string(name), "must be a standard resource for quota"))
	}
	if amount.Sign() < 0 {
		errs = append(errs, field.Invalid(at, amount.String(), "must be greater than or equal to 0"))
	}
	if slices.Contains(quotaCounts, name) && amount.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(at, amount.String(), "must be an integer"))
	}
	return errs
}

// validateScope wants a scope that there is, of Pods or claims as what is bounded is.
func validateScope(o *corev1.ResourceQuota, scope corev1.ResourceQuotaScope, at *field.Path, shown any) field.ErrorList {
	if !slices.Contains(quotaScopes, scope) {
		return field.ErrorList{field.Invalid(at, shown, "unsupported scope")}
	}
	for name := range o.Spec.Hard {
		ofPods, compute := name == corev1.ResourcePods, slices.Contains(quotaCompute, name)
		fits := ofPods || compute
		switch {
		case !ofPods && !compute && !slices.Contains(quotaCounts, name) && !slices.Contains(quotaStorage, name):
			continue // of somebody else's, or storage of a class
		case scope == corev1.ResourceQuotaScopeBestEffort:
			fits = ofPods
		case scope == corev1.ResourceQuotaScopeVolumeAttributesClass:
			fits = name == corev1.ResourcePersistentVolumeClaims || name == corev1.ResourceRequestsStorage
		}
		if !fits {
			return field.ErrorList{field.Invalid(at, shown, "unsupported scope applied to resource")}
		}
	}
	return nil
}

// validateScopes refuses scopes of which no object can have all.
func validateScopes(scopes []corev1.ResourceQuotaScope, at *field.Path, shown any) field.ErrorList {
	both := func(a, b corev1.ResourceQuotaScope) bool {
		return slices.Contains(scopes, a) && slices.Contains(scopes, b)
	}
	if both(corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort) ||
		both(corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating) {
		return field.ErrorList{field.Invalid(at, shown, "conflicting scopes")}
	}
	return nil
}

func validateScopeSelector(o *corev1.ResourceQuota, at *field.Path) (errs field.ErrorList) {
	expressions := o.Spec.ScopeSelector.MatchExpressions
	var scopes []corev1.ResourceQuotaScope
	for _, e := range expressions {
		errs = append(errs, validateScope(o, e.ScopeName, at, expressions)...)
		scopes = append(scopes, e.ScopeName)
		n := slices.Index(quotaScopes, e.ScopeName)
		plain := n >= 0 && n < plainScopes || e.ScopeName == corev1.ResourceQuotaScopeCrossNamespacePodAffinity
		if plain && e.Operator != corev1.ScopeSelectorOpExists {
			errs = append(errs, field.Invalid(at.Child("operator"), e.Operator, "must be 'Exists' for this scope"))
		}
		switch e.Operator {
		case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
			if len(e.Values) == 0 {
				errs = append(errs, field.Required(at.Child("values"), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"))
			}
		case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
			if len(e.Values) > 0 {
				errs = append(errs, field.Invalid(at.Child("values"), e.Values, "must be no value when `operator` is 'Exists' or 'DoesNotExist' for scope selector"))
			}
		default:
			errs = append(errs, field.Invalid(at.Child("operator"), e.Operator, "not a valid selector operator"))
		}
	}
	return append(errs, validateScopes(scopes, at, expressions)...)
}
