// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/defaults"
)

func validateAutoscalers(obj, _ runtime.Object) field.ErrorList {
	switch o := obj.(type) {
	case *autoscalingv1.HorizontalPodAutoscaler:
		return validateAutoscaler(defaults.AutoscalerToV2(o))
	case *autoscalingv2.HorizontalPodAutoscaler:
		return validateAutoscaler(o)
	}
	return nil
}

// validateAutoscaler says what is wrong with an autoscaler of either version, in the
// words of the later one.
func validateAutoscaler(o *autoscalingv2.HorizontalPodAutoscaler) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	most := spec.Child("maxReplicas")
	errs = nonNegativeIf(spec, "minReplicas", o.Spec.MinReplicas)
	switch n := o.Spec.MaxReplicas; {
	case n == 0:
		errs = append(errs, field.Required(most, ""))
	case n < 0:
		errs = append(errs, field.Invalid(most, n, "must be greater than or equal to 1"))
	}
	if least := o.Spec.MinReplicas; least != nil && o.Spec.MaxReplicas < *least {
		errs = append(errs, field.Invalid(most, o.Spec.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	errs = append(errs, validateScaled(o.Spec.ScaleTargetRef, spec.Child("scaleTargetRef"))...)
	errs = append(errs, validateMetrics(o.Spec.Metrics, spec.Child("metrics"))...)
	if o.Spec.Behavior != nil {
		errs = append(errs, validateBehavior(o.Spec.Behavior.ScaleUp, spec.Child("behavior", "scaleUp"))...)
		errs = append(errs, validateBehavior(o.Spec.Behavior.ScaleDown, spec.Child("behavior", "scaleDown"))...)
	}
	return errs
}

// validateScaled looks at the reference to what is scaled.
func validateScaled(ref autoscalingv2.CrossVersionObjectReference, at *field.Path) (errs field.ErrorList) {
	for _, part := range []struct{ name, value string }{{"kind", ref.Kind}, {"name", ref.Name}} {
		if part.value == "" {
			errs = append(errs, field.Required(at.Child(part.name), ""))
			continue
		}
		errs = append(errs, invalids(at.Child(part.name), part.value, content.IsPathSegmentName(part.value))...)
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	switch {
	case err != nil:
		errs = append(errs, field.Invalid(at.Child("apiVersion"), ref.APIVersion, err.Error()))
	case gv.Group == "" && ref.Kind != "ReplicationController":
		errs = append(errs, field.Invalid(at.Child("apiVersion"), ref.APIVersion, "apiVersion must specify API group"))
	}
	return errs
}
