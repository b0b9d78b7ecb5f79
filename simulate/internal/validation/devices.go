// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateDeviceClass(o *resourcev1.DeviceClass) field.ErrorList {
	return validateDeviceSelectors(o.Spec.Selectors, field.NewPath("spec", "selectors"))
}

func validateResourceClaim(o *resourcev1.ResourceClaim) field.ErrorList {
	return validateDeviceClaim(&o.Spec.Devices, field.NewPath("spec", "devices"))
}

func validateResourceClaimTemplate(o *resourcev1.ResourceClaimTemplate) field.ErrorList {
	return validateDeviceClaim(&o.Spec.Spec.Devices, field.NewPath("spec", "spec", "devices"))
}

func validateTaintRule(o *resourcev1.DeviceTaintRule) field.ErrorList {
	return validateDeviceTaint(&o.Spec.Taint, field.NewPath("spec", "taint"))
}

func validateDeviceClaim(d *resourcev1.DeviceClaim, path *field.Path) (errs field.ErrorList) {
	var names []string // by which constraints and configurations know requests
	for i := range d.Requests {
		r, at := &d.Requests[i], path.Child("requests").Index(i)
		errs = append(errs, validateDeviceName(r.Name, at.Child("name"))...)
		if slices.Contains(names, r.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), r.Name))
		}
		names = append(names, r.Name)
		switch exactly := r.Exactly; {
		case exactly == nil && len(r.FirstAvailable) == 0:
			errs = append(errs, field.Required(at, "exactly one of `exactly` or `firstAvailable` is required"))
		case exactly != nil && len(r.FirstAvailable) > 0:
			errs = append(errs, field.Invalid(at, r, "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"))
		case exactly != nil:
			errs = append(errs, validateDeviceRequest(exactly.DeviceClassName, exactly.AllocationMode, exactly.Count, exactly.Selectors, at.Child("exactly"))...)
		}
		for j := range r.FirstAvailable {
			sub, at := &r.FirstAvailable[j], at.Child("firstAvailable").Index(j)
			errs = append(errs, validateDeviceName(sub.Name, at.Child("name"))...)
			names = append(names, r.Name+"/"+sub.Name)
			errs = append(errs, validateDeviceRequest(sub.DeviceClassName, sub.AllocationMode, sub.Count, sub.Selectors, at)...)
		}
	}
	known := func(requests []string, at *field.Path) {
		for i, name := range requests {
			if !slices.Contains(names, name) {
				errs = append(errs, field.Invalid(at.Index(i), name, "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"))
			}
		}
	}
	for i, c := range d.Constraints {
		known(c.Requests, path.Child("constraints").Index(i).Child("requests"))
	}
	for i, c := range d.Config {
		at := path.Child("config").Index(i)
		known(c.Requests, at.Child("requests"))
		if c.Opaque != nil {
			errs = append(errs, validateDeviceDriver(c.Opaque.Driver, at.Child("opaque", "driver"))...)
		}
	}
	return errs
}

func validateDeviceRequest(class string, mode resourcev1.DeviceAllocationMode, count int64, selectors []resourcev1.DeviceSelector, at *field.Path) (errs field.ErrorList) {
	if class == "" {
		errs = append(errs, field.Required(at.Child("deviceClassName"), ""))
	} else {
		errs = append(errs, invalids(at.Child("deviceClassName"), class, utilvalidation.IsDNS1123Subdomain(class))...)
	}
	errs = append(errs, supported(mode, at.Child("allocationMode"), resourcev1.DeviceAllocationModeAll, resourcev1.DeviceAllocationModeExactCount)...)
	switch {
	case mode == resourcev1.DeviceAllocationModeAll && count != 0:
		errs = append(errs, field.Invalid(at.Child("count"), count, "must not be specified when allocationMode is 'All'"))
	case mode == resourcev1.DeviceAllocationModeExactCount && count <= 0:
		errs = append(errs, field.Invalid(at.Child("count"), count, "must be greater than zero"))
	}
	return append(errs, validateDeviceSelectors(selectors, at.Child("selectors"))...)
}

func validateDeviceSelectors(selectors []resourcev1.DeviceSelector, path *field.Path) (errs field.ErrorList) {
	for i, s := range selectors {
		at := path.Index(i).Child("cel")
		if s.CEL == nil {
			errs = append(errs, field.Required(at, ""))
			continue
		}
		errs = append(errs, readable(s.CEL.Expression, at.Child("expression"))...)
	}
	return errs
}

func validateResourceSlice(o *resourcev1.ResourceSlice) (errs field.ErrorList) {
	s, path := &o.Spec, field.NewPath("spec")
	errs = validateDeviceDriver(s.Driver, path.Child("driver"))
	errs = append(errs, required(path.Child("pool"), "name", s.Pool.Name)...)
	places := 0
	for _, given := range []bool{
		s.NodeName != nil && *s.NodeName != "", s.NodeSelector != nil, s.AllNodes != nil && *s.AllNodes, s.PerDeviceNodeSelection != nil && *s.PerDeviceNodeSelection,
	} {
		if given {
			places++
		}
	}
	const one = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
	switch {
	case places == 0:
		errs = append(errs, field.Required(path, one))
	case places > 1:
		errs = append(errs, field.Invalid(path, "", one+", but multiple fields are set"))
	}
	seen := map[string]bool{}
	for i := range s.Devices {
		d, at := &s.Devices[i], path.Child("devices").Index(i)
		errs = append(errs, validateDeviceName(d.Name, at.Child("name"))...)
		if seen[d.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), d.Name))
		}
		seen[d.Name] = true
		for j := range d.Taints {
			errs = append(errs, validateDeviceTaint(&d.Taints[j], at.Child("taints").Index(j))...)
		}
	}
	return errs
}

func validateDeviceDriver(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return invalids(path, name, utilvalidation.IsDNS1123Subdomain(name))
}

func validateDeviceName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return invalids(path, name, utilvalidation.IsDNS1123Label(name))
}

func validateDeviceTaint(t *resourcev1.DeviceTaint, path *field.Path) (errs field.ErrorList) {
	errs = metav1validation.ValidateLabelName(t.Key, path.Child("key"))
	errs = append(errs, invalids(path.Child("value"), t.Value, utilvalidation.IsValidLabelValue(t.Value))...)
	if t.Effect == "" {
		return append(errs, field.Required(path.Child("effect"), ""))
	}
	return append(errs, supported(t.Effect, path.Child("effect"), resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNone)...)
}
