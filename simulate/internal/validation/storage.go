// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"net/netip"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateMutationBinding(o *admissionv1.MutatingAdmissionPolicyBinding) field.ErrorList {
	return required(field.NewPath("spec"), "policyName", o.Spec.PolicyName)
}

func validateVolumeAttributes(o *storagev1.VolumeAttributesClass) field.ErrorList {
	errs := validateDriverName(o.DriverName, field.NewPath("driverName"))
	if len(o.Parameters) == 0 {
		errs = append(errs, field.Required(field.NewPath("parameters"), "must contain at least one key/value pair"))
	}
	return errs
}

func validateStorageClass(o *storagev1.StorageClass) (errs field.ErrorList) {
	if o.Provisioner == "" {
		errs = append(errs, field.Required(field.NewPath("provisioner"), ""))
	} else {
		errs = append(errs, invalids(field.NewPath("provisioner"), o.Provisioner, utilvalidation.IsQualifiedName(strings.ToLower(o.Provisioner)))...)
	}
	if _, nameless := o.Parameters[""]; nameless {
		errs = append(errs, field.Invalid(field.NewPath("parameters"), "", "field can not be empty."))
	}
	errs = append(errs, supported(*o.ReclaimPolicy, field.NewPath("reclaimPolicy"), corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)...)
	errs = append(errs, supported(*o.VolumeBindingMode, field.NewPath("volumeBindingMode"), storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)...)
	for i, term := range o.AllowedTopologies {
		for j, e := range term.MatchLabelExpressions {
			at := field.NewPath("allowedTopologies").Index(i).Child("matchLabelExpressions").Index(j)
			if len(e.Values) == 0 {
				errs = append(errs, field.Required(at.Child("values"), ""))
			}
			seen := map[string]bool{}
			for k, value := range e.Values {
				if seen[value] {
					errs = append(errs, field.Duplicate(at.Child("values").Index(k), value))
				}
				seen[value] = true
			}
			errs = append(errs, metav1validation.ValidateLabelName(e.Key, at.Child("key"))...)
		}
	}
	return errs
}

func validateDriver(o *storagev1.CSIDriver) (errs field.ErrorList) {
	s, path := &o.Spec, field.NewPath("spec")
	errs = supported(*s.FSGroupPolicy, path.Child("fsGroupPolicy"), storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	for _, mode := range s.VolumeLifecycleModes {
		errs = append(errs, supported(mode, path.Child("volumeLifecycleModes"), storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral)...)
	}
	seen := map[string]bool{}
	for i, r := range s.TokenRequests {
		at := path.Child("tokenRequests").Index(i)
		if seen[r.Audience] {
			errs = append(errs, field.Duplicate(at.Child("audience"), r.Audience))
			continue
		}
		seen[r.Audience] = true
		if r.ExpirationSeconds != nil && *r.ExpirationSeconds < shortestToken {
			errs = append(errs, field.Invalid(at.Child("expirationSeconds"), *r.ExpirationSeconds, "may not specify a duration less than 10 minutes"))
		}
	}
	return errs
}

func validateNodeDrivers(o *storagev1.CSINode) (errs field.ErrorList) {
	seen := map[string]bool{}
	for i, d := range o.Spec.Drivers {
		at := field.NewPath("spec", "drivers").Index(i)
		errs = append(errs, validateDriverName(d.Name, at.Child("name"))...)
		errs = append(errs, required(at, "nodeID", d.NodeID)...)
		if d.Allocatable != nil {
			errs = append(errs, nonNegativeIf(at.Child("allocatable"), "count", d.Allocatable.Count)...)
		}
		for _, key := range d.TopologyKeys {
			errs = append(errs, invalids(at, key, utilvalidation.IsQualifiedName(key))...)
		}
		if seen[d.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), d.Name))
		}
		seen[d.Name] = true
	}
	return errs
}

func validateCapacity(o *storagev1.CSIStorageCapacity) (errs field.ErrorList) {
	errs = invalids(field.NewPath("storageClassName"), o.StorageClassName, utilvalidation.IsDNS1123Subdomain(o.StorageClassName))
	if o.Capacity != nil && o.Capacity.Sign() < 0 {
		errs = append(errs, field.Invalid(field.NewPath("capacity"), o.Capacity.String(), "must be greater than or equal to 0"))
	}
	return errs
}

func validateAttachment(o *storagev1.VolumeAttachment) (errs field.ErrorList) {
	s, path := &o.Spec, field.NewPath("spec")
	errs = append(errs, required(path, "attacher", s.Attacher)...)
	errs = append(errs, invalids(path.Child("nodeName"), s.NodeName, utilvalidation.IsDNS1123Subdomain(s.NodeName))...)
	inline, named := s.Source.InlineVolumeSpec, s.Source.PersistentVolumeName
	switch {
	case inline == nil && named == nil:
		errs = append(errs, field.Required(path.Child("source"), "must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
	case inline != nil && named != nil:
		errs = append(errs, field.Forbidden(path.Child("source"), "must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
	case inline != nil && inline.Capacity != nil:
		errs = append(errs, field.Forbidden(path.Child("source", "inlineVolumeSpec", "capacity"), "may not be specified in the context of inline volumes"))
	}
	return errs
}

func validateEndpointSlice(o *discoveryv1.EndpointSlice) (errs field.ErrorList) {
	if o.AddressType == "" {
		errs = append(errs, field.Required(field.NewPath("addressType"), ""))
	} else {
		errs = append(errs, supported(o.AddressType, field.NewPath("addressType"), discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)...)
	}
	for i, e := range o.Endpoints {
		at := field.NewPath("endpoints").Index(i)
		if len(e.Addresses) == 0 {
			errs = append(errs, field.Required(at.Child("addresses"), ""))
		}
		for j, address := range e.Addresses {
			switch o.AddressType {
			case discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6:
				if ip, err := netip.ParseAddr(address); err != nil || ip.Is4() != (o.AddressType == discoveryv1.AddressTypeIPv4) {
					errs = append(errs, field.Invalid(at.Child("addresses"), address, "must be an "+string(o.AddressType)+" address"))
				}
			case discoveryv1.AddressTypeFQDN:
				errs = append(errs, invalids(at.Child("addresses").Index(j), address, utilvalidation.IsDNS1123Subdomain(address))...)
			}
		}
		if e.Hostname != nil {
			errs = append(errs, invalids(at.Child("hostname"), *e.Hostname, utilvalidation.IsDNS1123Label(*e.Hostname))...)
		}
	}
	seen := map[string]bool{}
	for i, p := range o.Ports {
		at := field.NewPath("ports").Index(i)
		if p.Name != nil {
			if *p.Name != "" {
				errs = append(errs, invalids(at.Child("name"), *p.Name, utilvalidation.IsDNS1123Label(*p.Name))...)
			}
			if seen[*p.Name] {
				errs = append(errs, field.Duplicate(at.Child("name"), *p.Name))
			}
			seen[*p.Name] = true
		}
		errs = append(errs, supportedIf(p.Protocol, at.Child("protocol"), corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
	}
	return errs
}

// highestPriority is what a class of users can have.
const highestPriority = 1000000000

func validatePriorityClass(o *schedulingv1.PriorityClass) (errs field.ErrorList) {
	switch value, system := SystemPriorities[o.Name]; {
	case system && value == o.Value:
	case strings.HasPrefix(o.Name, "system-"):
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"), "priority class names with 'system-' prefix are reserved for system use only. error: "+o.Name+" is not a known system priority class"))
	case o.Value > highestPriority:
		errs = append(errs, field.Forbidden(field.NewPath("value"), "maximum allowed value of a user defined priority is 1000000000"))
	}
	return append(errs, supported(*o.PreemptionPolicy, field.NewPath("preemptionPolicy"), corev1.PreemptLowerPriority, corev1.PreemptNever)...)
}

func validateRuntimeClass(o *nodev1.RuntimeClass) (errs field.ErrorList) {
	errs = labelName(o.Handler, field.NewPath("handler"))
	if o.Overhead != nil {
		for name, amount := range o.Overhead.PodFixed {
			errs = append(errs, validateAmount(name, amount, field.NewPath("overhead", "limits").Key(string(name)))...)
		}
	}
	if o.Scheduling != nil {
		errs = append(errs, metav1validation.ValidateLabels(o.Scheduling.NodeSelector, field.NewPath("scheduling", "nodeSelector"))...)
		errs = append(errs, validateTolerations(o.Scheduling.Tolerations, field.NewPath("scheduling", "tolerations"))...)
	}
	return errs
}

// SystemPriorities are of classes that each cluster has.
var SystemPriorities = map[string]int32{"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}
