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

func validateEnv(env []corev1.EnvVar, path *field.Path) (errs field.ErrorList) {
	for i, e := range env {
		at := path.Index(i)
		if e.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		} else {
			errs = append(errs, invalids(at.Child("name"), e.Name, utilvalidation.IsRelaxedEnvVarName(e.Name))...)
		}
		if e.ValueFrom != nil {
			errs = append(errs, validateValueFrom(e, at.Child("valueFrom"))...)
		}
	}
	return errs
}

// envFields and volumeFields are what of a Pod its containers can be told.
var (
	metadataFields = []string{"metadata.name", "metadata.namespace", "metadata.uid"}
	envFields      = slices.Concat(metadataFields, []string{"spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"})
	volumeFields   = slices.Concat(metadataFields, []string{"metadata.labels", "metadata.annotations"})
	resourceFields = []string{"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"}
)

func validateValueFrom(e corev1.EnvVar, path *field.Path) (errs field.ErrorList) {
	from, sources := e.ValueFrom, 0
	if r := from.FieldRef; r != nil {
		sources++
		errs = append(errs, validateFieldRef(r, envFields, path.Child("fieldRef"))...)
	}
	if r := from.ResourceFieldRef; r != nil {
		sources++
		errs = append(errs, validateResourceRef(r, path.Child("resourceFieldRef"))...)
	}
	if r := from.ConfigMapKeyRef; r != nil {
		sources++
		errs = append(errs, validateKeyRef(r.Name, r.Key, path.Child("configMapKeyRef"))...)
	}
	if r := from.SecretKeyRef; r != nil {
		sources++
		errs = append(errs, validateKeyRef(r.Name, r.Key, path.Child("secretKeyRef"))...)
	}
	if from.FileKeyRef != nil {
		sources++
	}
	switch {
	case sources == 0:
		errs = append(errs, field.Invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case e.Value != "":
		errs = append(errs, field.Invalid(path, "", "may not be specified when `value` is not empty"))
	case sources > 1:
		errs = append(errs, field.Invalid(path, "", "may not have more than one field specified at a time"))
	}
	return errs
}

// validateFieldRef wants a field among allowed ones, or one label or annotation.
func validateFieldRef(r *corev1.ObjectFieldSelector, allowed []string, path *field.Path) field.ErrorList {
	at := path.Child("fieldPath")
	known := slices.Concat(envFields, volumeFields)
	name, key, keyed := strings.Cut(strings.TrimSuffix(r.FieldPath, "']"), "['")
	switch {
	case r.APIVersion == "":
		return field.ErrorList{field.Required(path.Child("apiVersion"), "")}
	case r.FieldPath == "":
		return field.ErrorList{field.Required(at, "")}
	case r.APIVersion != "v1":
		return field.ErrorList{field.Invalid(at, r.FieldPath, "error converting fieldPath: unsupported pod version: "+r.APIVersion)}
	case keyed && (name == "metadata.labels" || name == "metadata.annotations"):
		return invalids(path, key, utilvalidation.IsQualifiedName(strings.ToLower(key)))
	case !slices.Contains(known, r.FieldPath):
		return field.ErrorList{field.Invalid(at, r.FieldPath, "error converting fieldPath: field label not supported: "+r.FieldPath)}
	case !slices.Contains(allowed, r.FieldPath):
		return field.ErrorList{field.NotSupported(at, r.FieldPath, allowed)}
	}
	return nil
}

// divisors are in what parts an amount can be told.
var divisors = map[string][]string{
	"cpu":     {"1m", "1"},
	"memory":  {"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"},
	"storage": {"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"},
}

func validateResourceRef(r *corev1.ResourceFieldSelector, path *field.Path) field.ErrorList {
	_, name, _ := strings.Cut(r.Resource, ".")
	switch {
	case r.Resource == "":
		return field.ErrorList{field.Required(path.Child("resource"), "")}
	case strings.HasPrefix(name, corev1.ResourceHugePagesPrefix):
		return nil
	case !slices.Contains(resourceFields, r.Resource):
		return field.ErrorList{field.NotSupported(path.Child("resource"), r.Resource, resourceFields)}
	}
	name = strings.TrimPrefix(name, "ephemeral-")
	if r.Divisor.Cmp(resource.MustParse("0")) != 0 && !slices.Contains(divisors[name], r.Divisor.String()) {
		text := "only divisor's values 1m and 1 are supported with the cpu resource"
		if name != "cpu" {
			text = "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the " + name + " resource"
		}
		return field.ErrorList{field.Invalid(path.Child("divisor"), r.Resource, text)}
	}
	return nil
}

func validateKeyRef(name, key string, path *field.Path) (errs field.ErrorList) {
	errs = invalids(path.Child("name"), name, utilvalidation.IsDNS1123Subdomain(name))
	if key == "" {
		return append(errs, field.Required(path.Child("key"), ""))
	}
	return append(errs, invalids(path.Child("key"), key, utilvalidation.IsConfigMapKey(key))...)
}

func validateEnvFrom(from []corev1.EnvFromSource, path *field.Path) (errs field.ErrorList) {
	for i, e := range from {
		at := path.Index(i)
		if e.Prefix != "" {
			errs = append(errs, invalids(at.Child("prefix"), e.Prefix, utilvalidation.IsRelaxedEnvVarName(e.Prefix))...)
		}
		if e.ConfigMapRef != nil && e.ConfigMapRef.Name == "" {
			errs = append(errs, field.Required(at.Child("configMapRef", "name"), ""))
		}
		if e.SecretRef != nil && e.SecretRef.Name == "" {
			errs = append(errs, field.Required(at.Child("secretRef", "name"), ""))
		}
		switch {
		case e.ConfigMapRef == nil && e.SecretRef == nil:
			errs = append(errs, field.Invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
		case e.ConfigMapRef != nil && e.SecretRef != nil:
			errs = append(errs, field.Invalid(path, "", "may not have more than one field specified at a time"))
		}
	}
	return errs
}
