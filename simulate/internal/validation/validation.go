// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package validation says what is wrong with the content of objects of built-in
// kinds, beyond their metadata: of new ones, and of ones that replace others.
// Its functions are pure.
package validation

import (
	"encoding/json"
	"reflect"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// A Rule returns what is wrong with the content of an object of one kind. old is nil for a new
// object.
type Rule func(obj, old runtime.Object) field.ErrorList

// RuleOf returns the rule of a built-in resource, or nil if there is none beyond metadata's.
func RuleOf(resource string) Rule { return rules[resource] }

var rules = map[string]Rule{
	"configmaps":             withOld(validateConfigMap),
	"secrets":                withOld(validateSecret),
	"pods":                   withOld(validatePod),
	"podtemplates":           onWrite(validatePodTemplate),
	"replicationcontrollers": onWrite(validateReplicationController),
	"persistentvolumeclaims": withOld(validateClaim),
	"persistentvolumes":      withOld(validateVolumeOfCluster),
	"services":               withOld(validateService),
	"events":                 onWrite(validateCoreEvent),
	"limitranges":            onCreate(validateLimitRange),
	"nodes":                  onCreate(validateNode),
	"resourcequotas":         onCreate(validateQuota),
	"deployments.apps":       withOld(validateDeployment),
	"replicasets.apps":       withOld(validateReplicaSet),
	"statefulsets.apps":      withOld(validateStatefulSet),
	"daemonsets.apps":        withOld(validateDaemonSet),
	"jobs.batch":             withOld(validateJob),
	"cronjobs.batch":         onWrite(validateCronJob),

	"horizontalpodautoscalers.autoscaling":                     validateAutoscalers,
	"poddisruptionbudgets.policy":                              onWrite(validateDisruptionBudget),
	"events.events.k8s.io":                                     withOld(validateEvent),
	"leases.coordination.k8s.io":                               onWrite(validateLease),
	"certificatesigningrequests.certificates.k8s.io":           withOld(validateSigningRequest),
	"clustertrustbundles.certificates.k8s.io":                  onWrite(validateTrustBundle),
	"endpointslices.discovery.k8s.io":                          onCreate(validateEndpointSlice),
	"flowschemas.flowcontrol.apiserver.k8s.io":                 onCreate(validateFlowSchema),
	"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": onCreate(validateLevel),
	"ingresses.networking.k8s.io":                              onWrite(validateIngress),
	"ingressclasses.networking.k8s.io":                         onWrite(validateIngressClass),
	"networkpolicies.networking.k8s.io":                        onWrite(validateNetworkPolicy),
	"ipaddresses.networking.k8s.io":                            onCreate(validateAddress),
	"servicecidrs.networking.k8s.io":                           onCreate(validateServiceRange),
	"priorityclasses.scheduling.k8s.io":                        onCreate(validatePriorityClass),
	"runtimeclasses.node.k8s.io":                               onCreate(validateRuntimeClass),
	"storageversionmigrations.storagemigration.k8s.io":         onCreate(validateMigration),

	"roles.rbac.authorization.k8s.io":               onWrite(validateRole),
	"clusterroles.rbac.authorization.k8s.io":        onWrite(validateClusterRole),
	"rolebindings.rbac.authorization.k8s.io":        withOld(validateRoleBinding),
	"clusterrolebindings.rbac.authorization.k8s.io": withOld(validateClusterRoleBinding),

	"storageclasses.storage.k8s.io":          onCreate(validateStorageClass),
	"csidrivers.storage.k8s.io":              onCreate(validateDriver),
	"csinodes.storage.k8s.io":                onCreate(validateNodeDrivers),
	"csistoragecapacities.storage.k8s.io":    onCreate(validateCapacity),
	"volumeattachments.storage.k8s.io":       onCreate(validateAttachment),
	"volumeattributesclasses.storage.k8s.io": onCreate(validateVolumeAttributes),

	"deviceclasses.resource.k8s.io":          onCreate(validateDeviceClass),
	"resourceclaims.resource.k8s.io":         onCreate(validateResourceClaim),
	"resourceclaimtemplates.resource.k8s.io": onCreate(validateResourceClaimTemplate),
	"resourceslices.resource.k8s.io":         onCreate(validateResourceSlice),
	"devicetaintrules.resource.k8s.io":       onCreate(validateTaintRule),

	"mutatingwebhookconfigurations.admissionregistration.k8s.io":     onWrite(validateMutatingHooks),
	"validatingwebhookconfigurations.admissionregistration.k8s.io":   onWrite(validateValidatingHooks),
	"validatingadmissionpolicies.admissionregistration.k8s.io":       onCreate(validatePolicy),
	"mutatingadmissionpolicies.admissionregistration.k8s.io":         onCreate(validateMutation),
	"validatingadmissionpolicybindings.admissionregistration.k8s.io": onCreate(validatePolicyBinding),
	"mutatingadmissionpolicybindings.admissionregistration.k8s.io":   onCreate(validateMutationBinding),
}

// withOld returns a rule that compares an object with the old one. Objects of another Go type
// have no rule.
func withOld[T any](validate func(o, old *T) field.ErrorList) Rule {
	return func(obj, old runtime.Object) field.ErrorList {
		o, ok := any(obj).(*T)
		if !ok {
			return nil
		}
		was, _ := any(old).(*T)
		return validate(o, was)
	}
}

// onWrite returns a rule for new and changed objects alike.
func onWrite[T any](validate func(o *T) field.ErrorList) Rule {
	return withOld(func(o, _ *T) field.ErrorList { return validate(o) })
}

// onCreate returns a rule for new objects, for kinds that only administrators and drivers write.
func onCreate[T any](validate func(o *T) field.ErrorList) Rule {
	return withOld(func(o, old *T) field.ErrorList {
		if old != nil {
			return nil
		}
		return validate(o)
	})
}

func immutable(old, now any, path *field.Path, message string) field.ErrorList {
	if reflect.DeepEqual(old, now) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, now, message)}
}

func validateConfigMap(o, old *corev1.ConfigMap) field.ErrorList {
	errs := validateData(o.Data, o.BinaryData, field.NewPath(""))
	if old == nil {
		return errs
	}
	return append(errs, validateUnchanged(old.Immutable, o.Immutable,
		part{"data", old.Data, o.Data}, part{"binaryData", old.BinaryData, o.BinaryData})...)
}

// part is a part of an object before and after a write.
type part struct {
	name     string
	old, now any
}

// validateUnchanged refuses changes of an object that is marked as immutable.
func validateUnchanged(old, now *bool, parts ...part) (errs field.ErrorList) {
	if !ptr.Deref(old, false) {
		return nil
	}
	for _, p := range append([]part{{"immutable", true, ptr.Deref(now, false)}}, parts...) {
		if !reflect.DeepEqual(p.old, p.now) {
			errs = append(errs, field.Forbidden(field.NewPath(p.name), "field is immutable when `immutable` is set"))
		}
	}
	return errs
}

// secretKeys are what Secrets of a type must have.
var secretKeys = map[corev1.SecretType][]string{
	corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey},
	corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
	corev1.SecretTypeSSHAuth:          {corev1.SSHAuthPrivateKey},
	corev1.SecretTypeTLS:              {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
}

func validateSecret(o, old *corev1.Secret) field.ErrorList {
	errs := validateData(o.Data, nil, field.NewPath("data"))
	for _, name := range secretKeys[o.Type] {
		if _, ok := o.Data[name]; !ok {
			errs = append(errs, field.Required(field.NewPath("data").Key(name), ""))
		}
	}
	for _, name := range []string{corev1.DockerConfigKey, corev1.DockerConfigJsonKey} {
		content, ok := o.Data[name]
		if !ok || !slices.Contains(secretKeys[o.Type], name) {
			continue
		}
		if err := json.Unmarshal(content, &map[string]any{}); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(name), "<secret contents redacted>", err.Error()))
		}
	}
	if o.Type == corev1.SecretTypeBasicAuth {
		_, user := o.Data[corev1.BasicAuthUsernameKey]
		if _, password := o.Data[corev1.BasicAuthPasswordKey]; !user && !password {
			errs = append(errs, field.Required(field.NewPath("data").Key(corev1.BasicAuthUsernameKey), ""), field.Required(field.NewPath("data").Key(corev1.BasicAuthPasswordKey), ""))
		}
	}
	if o.Type == corev1.SecretTypeServiceAccountToken && o.Annotations[corev1.ServiceAccountNameKey] == "" {
		errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
	}
	if old == nil {
		return errs
	}
	errs = append(errs, apivalidation.ValidateImmutableField(o.Type, old.Type, field.NewPath("type"))...)
	return append(errs, validateUnchanged(old.Immutable, o.Immutable, part{"data", old.Data, o.Data})...)
}

func validateLease(o *coordinationv1.Lease) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	if o.Spec.LeaseDurationSeconds != nil && *o.Spec.LeaseDurationSeconds <= 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseDurationSeconds"), *o.Spec.LeaseDurationSeconds, "must be greater than 0"))
	}
	if o.Spec.LeaseTransitions != nil && *o.Spec.LeaseTransitions < 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseTransitions"), *o.Spec.LeaseTransitions, "must be greater than or equal to 0"))
	}
	return errs
}

// Once is errs, each said once.
func Once(errs field.ErrorList) (out field.ErrorList) {
	said := map[string]bool{}
	for _, err := range errs {
		if text := err.Error(); !said[text] {
			said[text], out = true, append(out, err)
		}
	}
	return out
}
