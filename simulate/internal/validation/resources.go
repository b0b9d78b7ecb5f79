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

// containerResources are what containers can ask for by a name without a domain.
var containerResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}

func validateResources(r *corev1.ResourceRequirements, path *field.Path) (errs field.ErrorList) {
	for name, limit := range r.Limits {
		errs = append(errs, validateAmount(name, limit, path.Child("limits").Key(string(name)))...)
	}
	for name, request := range r.Requests {
		errs = append(errs, validateAmount(name, request, path.Child("requests").Key(string(name)))...)
		limit, limited := r.Limits[name]
		plain := slices.Contains(containerResources, name) || strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
		switch {
		case !limited && !plain:
			errs = append(errs, field.Required(path.Child("limits"), "Limit must be set for non overcommitable resources"))
		case !limited:
		case !plain && request.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(path.Child("requests"), request.String(), "must be equal to "+string(name)+" limit of "+limit.String()))
		case request.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(path.Child("requests"), request.String(), "must be less than or equal to "+string(name)+" limit of "+limit.String()))
		}
	}
	return errs
}

// validateAmount holds one resource that a container asks for.
func validateAmount(name corev1.ResourceName, amount resource.Quantity, path *field.Path) (errs field.ErrorList) {
	huge := strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
	errs = invalids(path, string(name), utilvalidation.IsQualifiedName(string(name)))
	if !strings.Contains(string(name), "/") && !huge && !slices.Contains(containerResources, name) {
		errs = append(errs, field.Invalid(path, string(name), "must be a standard resource type or fully qualified"),
			field.Invalid(path, string(name), "must be a standard resource for containers"))
		return errs
	}
	if amount.Sign() < 0 {
		errs = append(errs, field.Invalid(path, amount.String(), "must be greater than or equal to 0"))
	}
	whole := strings.Contains(string(name), "/") && !strings.HasPrefix(string(name), "kubernetes.io/")
	if whole && amount.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(path, amount.String(), "must be an integer"))
	}
	return errs
}
