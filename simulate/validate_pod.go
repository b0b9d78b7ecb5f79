// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validatePod(o, old *corev1.Pod) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validatePodSpec(&o.Spec, spec)
	if old == nil {
		return errs
	}
	// Of a Pod's spec only these may change.
	is, was := o.Spec.DeepCopy(), old.Spec.DeepCopy()
	if len(is.Containers) == len(was.Containers) {
		for i := range is.Containers {
			is.Containers[i].Image = was.Containers[i].Image
		}
	}
	if len(is.InitContainers) == len(was.InitContainers) {
		for i := range is.InitContainers {
			is.InitContainers[i].Image = was.InitContainers[i].Image
		}
	}
	is.ActiveDeadlineSeconds, is.NodeName = was.ActiveDeadlineSeconds, was.NodeName
	is.EphemeralContainers, is.TerminationGracePeriodSeconds = was.EphemeralContainers, was.TerminationGracePeriodSeconds
	is.SchedulingGates = was.SchedulingGates
	if len(is.Tolerations) >= len(was.Tolerations) {
		is.Tolerations = was.Tolerations
	}
	if !reflect.DeepEqual(is, was) {
		errs = append(errs, field.Forbidden(spec, "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"))
	}
	return errs
}

func validatePodSpec(s *corev1.PodSpec, path *field.Path) (errs field.ErrorList) {
	volumes := sets.New[string]()
	for i, v := range s.Volumes {
		at := path.Child("volumes").Index(i).Child("name")
		errs = append(errs, labelName(v.Name, at)...)
		if volumes.Has(v.Name) {
			errs = append(errs, field.Duplicate(at, v.Name))
		}
		volumes.Insert(v.Name)
	}
	names := sets.New[string]()
	if len(s.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), ""))
	}
	for i := range s.Containers {
		errs = append(errs, validateContainer(&s.Containers[i], volumes, names, path.Child("containers").Index(i))...)
	}
	for i := range s.InitContainers {
		errs = append(errs, validateContainer(&s.InitContainers[i], volumes, names, path.Child("initContainers").Index(i))...)
	}
	switch s.RestartPolicy {
	case corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever:
	default:
		errs = append(errs, field.NotSupported(path.Child("restartPolicy"), s.RestartPolicy, []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}))
	}
	if s.ServiceAccountName != "" {
		for _, problem := range utilvalidation.IsDNS1123Subdomain(s.ServiceAccountName) {
			errs = append(errs, field.Invalid(path.Child("serviceAccountName"), s.ServiceAccountName, problem))
		}
	}
	return errs
}

func labelName(name string, path *field.Path) (errs field.ErrorList) {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	for _, problem := range utilvalidation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, problem))
	}
	return errs
}

func validateContainer(c *corev1.Container, volumes, names sets.Set[string], path *field.Path) (errs field.ErrorList) {
	errs = append(errs, labelName(c.Name, path.Child("name"))...)
	if names.Has(c.Name) && c.Name != "" {
		errs = append(errs, field.Duplicate(path.Child("name"), c.Name))
	}
	names.Insert(c.Name)
	switch {
	case c.Image == "":
		errs = append(errs, field.Required(path.Child("image"), ""))
	case strings.TrimSpace(c.Image) != c.Image:
		errs = append(errs, field.Invalid(path.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	for i, p := range c.Ports {
		at := path.Child("ports").Index(i)
		if p.ContainerPort == 0 {
			errs = append(errs, field.Required(at.Child("containerPort"), ""))
		} else {
			errs = append(errs, portNumber(p.ContainerPort, at.Child("containerPort"))...)
		}
		if p.Name != "" {
			for _, problem := range utilvalidation.IsValidPortName(p.Name) {
				errs = append(errs, field.Invalid(at.Child("name"), p.Name, problem))
			}
		}
	}
	for i, e := range c.Env {
		if e.Name == "" {
			errs = append(errs, field.Required(path.Child("env").Index(i).Child("name"), ""))
		}
	}
	for i, m := range c.VolumeMounts {
		at := path.Child("volumeMounts").Index(i)
		if !volumes.Has(m.Name) {
			errs = append(errs, field.NotFound(at.Child("name"), m.Name))
		}
		if m.MountPath == "" {
			errs = append(errs, field.Required(at.Child("mountPath"), ""))
		}
	}
	return append(errs, validateResources(&c.Resources, path.Child("resources"))...)
}

func validateResources(r *corev1.ResourceRequirements, path *field.Path) (errs field.ErrorList) {
	for name, request := range r.Requests {
		if limit, limited := r.Limits[name]; limited && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(path.Child("requests"), request.String(), "must be less than or equal to "+string(name)+" limit of "+limit.String()))
		}
	}
	return errs
}

func portNumber(port int32, path *field.Path) (errs field.ErrorList) {
	for _, problem := range utilvalidation.IsValidPortNum(int(port)) {
		errs = append(errs, field.Invalid(path, port, problem))
	}
	return errs
}
