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

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/autoscaling"
)

// ruled are the built-in kinds that have rules here beyond those of metadata.
var ruled = []string{
	"configmaps", "secrets", "pods", "podtemplates", "replicationcontrollers", "persistentvolumeclaims", "persistentvolumes", "services", "deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps",
	"jobs.batch", "cronjobs.batch", "events", "events.events.k8s.io", "ingresses.networking.k8s.io", "ingressclasses.networking.k8s.io", "networkpolicies.networking.k8s.io",
	"poddisruptionbudgets.policy", "certificatesigningrequests.certificates.k8s.io", "clustertrustbundles.certificates.k8s.io",
	"leases.coordination.k8s.io", "horizontalpodautoscalers.autoscaling",
	"roles.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
	"mutatingwebhookconfigurations.admissionregistration.k8s.io", "validatingwebhookconfigurations.admissionregistration.k8s.io",
}

// HasRules reports whether there are rules here for a built-in resource.
func HasRules(resource string) bool {
	return slices.Contains(ruled, resource) || slices.Contains(administered, resource)
}

// was is the old object in its type; nil: there is none.
func was[T any](old runtime.Object) *T {
	typed, _ := any(old).(*T)
	return typed
}

// Validate says what is wrong with the content of an object. old is nil
// for a new one.
func Validate(obj, old runtime.Object) field.ErrorList {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		return validateConfigMap(o, was[corev1.ConfigMap](old))
	case *corev1.Secret:
		return validateSecret(o, was[corev1.Secret](old))
	case *corev1.Pod:
		return validatePod(o, was[corev1.Pod](old))
	case *corev1.Service:
		return validateService(o, was[corev1.Service](old))
	case *appsv1.Deployment:
		return validateDeployment(o, was[appsv1.Deployment](old))
	case *appsv1.ReplicaSet:
		return validateReplicaSet(o, was[appsv1.ReplicaSet](old))
	case *appsv1.StatefulSet:
		return validateStatefulSet(o, was[appsv1.StatefulSet](old))
	case *appsv1.DaemonSet:
		return validateDaemonSet(o, was[appsv1.DaemonSet](old))
	case *batchv1.Job:
		return validateJob(o, was[batchv1.Job](old))
	case *batchv1.CronJob:
		return validateCronJob(o)
	case *corev1.PodTemplate:
		return validateTemplate(&o.Template, field.NewPath("template"))
	case *corev1.ReplicationController:
		return validateReplicationController(o)
	case *corev1.PersistentVolumeClaim:
		return validateClaim(o, was[corev1.PersistentVolumeClaim](old))
	case *corev1.PersistentVolume:
		return validateVolumeOfCluster(o, was[corev1.PersistentVolume](old))
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		return validateHooks(o.Webhooks)
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		var hooks []admissionregistrationv1.MutatingWebhook
		for i := range o.Webhooks {
			hooks = append(hooks, hookOf(&o.Webhooks[i]))
		}
		return validateHooks(hooks)
	case *coordinationv1.Lease:
		return validateLease(o)
	case *autoscalingv2.HorizontalPodAutoscaler:
		return validateAutoscaler(o)
	case *autoscalingv1.HorizontalPodAutoscaler:
		return validateAutoscaler(autoscaling.Newer(o))
	case *corev1.Event:
		return validateCoreEvent(o)
	case *eventsv1.Event:
		return validateEvent(o, was[eventsv1.Event](old))
	case *networkingv1.Ingress:
		return validateIngress(o)
	case *networkingv1.IngressClass:
		return validateIngressClass(o)
	case *networkingv1.NetworkPolicy:
		return validateNetworkPolicy(o)
	case *policyv1.PodDisruptionBudget:
		return validateDisruptionBudget(o)
	case *certificatesv1.CertificateSigningRequest:
		return validateSigningRequest(o, was[certificatesv1.CertificateSigningRequest](old))
	case *certificatesv1.ClusterTrustBundle:
		return validateTrustBundle(o)
	case *rbacv1.Role:
		return validateRules(o.Rules, true)
	case *rbacv1.ClusterRole:
		return validateRules(o.Rules, false)
	case *rbacv1.RoleBinding:
		b := binding{role: &o.RoleRef, subjects: o.Subjects, kinds: []string{"Role", "ClusterRole"}}
		if before := was[rbacv1.RoleBinding](old); before != nil {
			b.old = &before.RoleRef
		}
		return b.validate()
	case *rbacv1.ClusterRoleBinding:
		b := binding{role: &o.RoleRef, subjects: o.Subjects, kinds: []string{"ClusterRole"}}
		if before := was[rbacv1.ClusterRoleBinding](old); before != nil {
			b.old = &before.RoleRef
		}
		return b.validate()
	}
	if old == nil {
		return validateAdministered(obj)
	}
	return nil
}

func immutable(old, now any, path *field.Path, message string) field.ErrorList {
	if reflect.DeepEqual(old, now) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, now, message)}
}

func validateConfigMap(o, old *corev1.ConfigMap) field.ErrorList {
	errs := validateData(o.Data, o.BinaryData, field.NewPath(""))
	if old == nil || old.Immutable == nil || !*old.Immutable {
		return errs
	}
	if o.Immutable == nil || !*o.Immutable {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
	}
	if !reflect.DeepEqual(o.Data, old.Data) {
		errs = append(errs, field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
	}
	if !reflect.DeepEqual(o.BinaryData, old.BinaryData) {
		errs = append(errs, field.Forbidden(field.NewPath("binaryData"), "field is immutable when `immutable` is set"))
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
	if old.Immutable == nil || !*old.Immutable {
		return errs
	}
	if o.Immutable == nil || !*o.Immutable {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
	}
	if !reflect.DeepEqual(o.Data, old.Data) {
		errs = append(errs, field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
	}
	return errs
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
