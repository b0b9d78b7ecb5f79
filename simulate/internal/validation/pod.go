// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"math"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validatePod(o, old *corev1.Pod) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validatePodSpec(&o.Spec, spec)
	if old == nil {
		if len(o.Spec.EphemeralContainers) > 0 {
			errs = append(errs, field.Forbidden(spec.Child("ephemeralContainers"), "cannot be set on create"))
		}
		if len(o.Spec.SchedulingGates) > 0 && o.Spec.NodeName != "" {
			errs = append(errs, field.Forbidden(spec.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"))
		}
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

// podRules are the parts of a Pod's spec, and of templates of Pods, each with
// its rule. They get the path of the spec.
var podRules = []func(s *corev1.PodSpec, path *field.Path) field.ErrorList{
	validateContainers, validatePolicies, validatePodNames, validateHostNamespaces, validateSystem,
	validateScheduling, validateDNS, validatePodSecurityContext, validateClaimReferences,
}

func validatePodSpec(s *corev1.PodSpec, path *field.Path) (errs field.ErrorList) {
	for _, rule := range podRules {
		errs = append(errs, rule(s, path)...)
	}
	return errs
}

// supported wants a value to be among those that there are.
func supported[T ~string](value T, path *field.Path, values ...T) field.ErrorList {
	if slices.Contains(values, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, values)}
}

// supportedIf is supported for a field that may not be there.
func supportedIf[T ~string](value *T, path *field.Path, values ...T) field.ErrorList {
	if value == nil {
		return nil
	}
	return supported(*value, path, values...)
}

func nonNegative[N int32 | int64](path *field.Path, name string, value N) field.ErrorList {
	return apivalidation.ValidateNonnegativeField(int64(value), path.Child(name))
}

// nonNegativeIf is nonNegative for a field that may not be there.
func nonNegativeIf[N int32 | int64](path *field.Path, name string, value *N) field.ErrorList {
	if value == nil {
		return nil
	}
	return nonNegative(path, name, *value)
}

// invalids is an error for each problem of a value.
func invalids(path *field.Path, value any, problems []string) (errs field.ErrorList) {
	for _, problem := range problems {
		errs = append(errs, field.Invalid(path, value, problem))
	}
	return errs
}

func validatePolicies(s *corev1.PodSpec, path *field.Path) (errs field.ErrorList) {
	errs = supported(s.RestartPolicy, path.Child("restartPolicy"), corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	errs = append(errs, supportedIf(s.PreemptionPolicy, path.Child("preemptionPolicy"), corev1.PreemptLowerPriority, corev1.PreemptNever)...)
	if n := s.ActiveDeadlineSeconds; n != nil && (*n < 1 || *n > math.MaxInt32) {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *n, utilvalidation.InclusiveRangeError(1, math.MaxInt32)))
	}
	return errs
}

func validatePodNames(s *corev1.PodSpec, path *field.Path) (errs field.ErrorList) {
	subdomain := func(name, value string) {
		if value != "" {
			errs = append(errs, invalids(path.Child(name), value, utilvalidation.IsDNS1123Subdomain(value))...)
		}
	}
	label := func(name, value string) {
		if value != "" {
			errs = append(errs, invalids(path.Child(name), value, utilvalidation.IsDNS1123Label(value))...)
		}
	}
	subdomain("serviceAccountName", s.ServiceAccountName)
	subdomain("nodeName", s.NodeName)
	subdomain("priorityClassName", s.PriorityClassName)
	label("hostname", s.Hostname)
	label("subdomain", s.Subdomain)
	if s.RuntimeClassName != nil {
		subdomain("runtimeClassName", *s.RuntimeClassName)
	}
	return errs
}

func validateHostNamespaces(s *corev1.PodSpec, path *field.Path) (errs field.ErrorList) {
	if s.ShareProcessNamespace != nil && *s.ShareProcessNamespace && s.HostPID {
		errs = append(errs, field.Invalid(path.Child("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled"))
	}
	if s.HostUsers != nil && !*s.HostUsers {
		for _, each := range []struct {
			name string
			set  bool
		}{{"hostNetwork", s.HostNetwork}, {"HostPID", s.HostPID}, {"HostIPC", s.HostIPC}} {
			if each.set {
				errs = append(errs, field.Forbidden(path.Child(each.name), "when `hostUsers` is false"))
			}
		}
	}
	if !s.HostNetwork {
		return errs
	}
	for i, c := range s.Containers {
		for j, p := range c.Ports {
			if p.HostPort != 0 && p.HostPort != p.ContainerPort {
				errs = append(errs, field.Invalid(path.Child("containers").Index(i).Child("ports").Index(j).Child("hostPort"), p.HostPort, "must match `containerPort` when `hostNetwork` is true"))
			}
		}
	}
	return errs
}

// validateSystem keeps from a Pod of one operating system what only another has.
func validateSystem(s *corev1.PodSpec, path *field.Path) (errs field.ErrorList) {
	if s.OS == nil {
		return nil
	}
	if errs = supported(s.OS.Name, path.Child("os"), corev1.Linux, corev1.Windows); len(errs) > 0 {
		return errs
	}
	forbid := func(set bool, path *field.Path) {
		if !set {
			return
		}
		text := "cannot be set for a windows pod"
		if s.OS.Name == corev1.Linux {
			text = "windows options cannot be set for a linux pod"
		}
		errs = append(errs, field.Forbidden(path, text))
	}
	c := s.SecurityContext
	if s.OS.Name == corev1.Linux {
		forbid(c != nil && c.WindowsOptions != nil, path.Child("securityContext", "windowsOptions"))
		for i, c := range s.Containers {
			forbid(c.SecurityContext != nil && c.SecurityContext.WindowsOptions != nil, path.Child("containers").Index(i).Child("securityContext", "windowsOptions"))
		}
		return errs
	}
	forbid(s.HostPID, path.Child("hostPID"))
	forbid(s.HostIPC, path.Child("hostIPC"))
	forbid(s.ShareProcessNamespace != nil, path.Child("shareProcessNamespace"))
	if c != nil {
		at := path.Child("securityContext")
		forbid(c.SELinuxOptions != nil, at.Child("seLinuxOptions"))
		forbid(c.SeccompProfile != nil, at.Child("seccompProfile"))
		forbid(c.FSGroup != nil, at.Child("fsGroup"))
		forbid(len(c.Sysctls) > 0, at.Child("sysctls"))
		forbid(c.RunAsUser != nil, at.Child("runAsUser"))
		forbid(c.RunAsGroup != nil, at.Child("runAsGroup"))
		forbid(len(c.SupplementalGroups) > 0, at.Child("supplementalGroups"))
	}
	for i, container := range s.Containers {
		if c := container.SecurityContext; c != nil {
			at := path.Child("containers").Index(i).Child("securityContext")
			forbid(c.SELinuxOptions != nil, at.Child("seLinuxOptions"))
			forbid(c.Capabilities != nil, at.Child("capabilities"))
			forbid(c.ReadOnlyRootFilesystem != nil, at.Child("readOnlyRootFilesystem"))
			forbid(c.Privileged != nil, at.Child("privileged"))
			forbid(c.AllowPrivilegeEscalation != nil, at.Child("allowPrivilegeEscalation"))
			forbid(c.ProcMount != nil, at.Child("procMount"))
			forbid(c.RunAsUser != nil, at.Child("runAsUser"))
			forbid(c.RunAsGroup != nil, at.Child("runAsGroup"))
		}
	}
	return errs
}

// podClaim shows a claim as the real server's inner type, whose fields have no
// JSON names.
type podClaim struct {
	Name                                         string
	ResourceClaimName, ResourceClaimTemplateName *string
}

func validateClaimReferences(s *corev1.PodSpec, path *field.Path) (errs field.ErrorList) {
	names := sets.New[string]()
	for i, c := range s.ResourceClaims {
		at := path.Child("resourceClaims").Index(i)
		errs = append(errs, labelName(c.Name, at.Child("name"))...)
		if c.Name != "" && names.Has(c.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
		}
		names.Insert(c.Name)
		switch {
		case c.ResourceClaimName != nil && c.ResourceClaimTemplateName != nil:
			errs = append(errs, field.Invalid(at, podClaim{c.Name, c.ResourceClaimName, c.ResourceClaimTemplateName}, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"))
		case c.ResourceClaimName == nil && c.ResourceClaimTemplateName == nil:
			errs = append(errs, field.Invalid(at, podClaim{Name: c.Name}, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"))
		}
	}
	for i, c := range s.Containers {
		for j, claim := range c.Resources.Claims {
			if names.Has(claim.Name) {
				continue
			}
			err := field.NotFound(path.Child("containers").Index(i).Child("resources", "claims").Index(j), claim.Name)
			if err.Detail = "must be one of the names in pod.spec.resourceClaims"; len(names) == 0 {
				err.Detail += " which is empty"
			}
			errs = append(errs, err)
		}
	}
	return errs
}

func labelName(name string, path *field.Path) (errs field.ErrorList) {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return invalids(path, name, utilvalidation.IsDNS1123Label(name))
}

func portNumber(port int32, path *field.Path) (errs field.ErrorList) {
	return invalids(path, port, utilvalidation.IsValidPortNum(int(port)))
}

var selectorOptions = metav1validation.LabelSelectorValidationOptions{}
