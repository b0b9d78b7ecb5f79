// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"path"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// volumeRule holds kinds of volumes to their rules. Each is at the place of its
// field, and the fields of the type are looked at in their order.
func volumeRule(v *corev1.VolumeSource, name string, at *field.Path) field.ErrorList {
	switch name {
	case "emptyDir":
		if v.EmptyDir.SizeLimit != nil && v.EmptyDir.SizeLimit.Sign() < 0 {
			return field.ErrorList{field.Forbidden(at.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity")}
		}
	case "hostPath":
		return validateHostPath(v.HostPath, at)
	case "secret":
		return append(required(at, "secretName", v.Secret.SecretName), validateFiles(v.Secret.DefaultMode, v.Secret.Items, at)...)
	case "configMap":
		return append(required(at, "name", v.ConfigMap.Name), validateFiles(v.ConfigMap.DefaultMode, v.ConfigMap.Items, at)...)
	case "persistentVolumeClaim":
		return required(at, "claimName", v.PersistentVolumeClaim.ClaimName)
	case "nfs":
		return validateNFS(v.NFS, at)
	case "csi":
		return validateDriverName(v.CSI.Driver, at.Child("driver"))
	case "downwardAPI":
		return validateDownward(v.DownwardAPI.Items, v.DownwardAPI.DefaultMode, at)
	case "projected":
		return validateProjected(v.Projected, at)
	case "ephemeral":
		return validateEphemeral(v.Ephemeral, at.Child("volumeClaimTemplate"))
	case "gcePersistentDisk":
		return required(at, "pdName", v.GCEPersistentDisk.PDName)
	case "awsElasticBlockStore":
		return required(at, "volumeID", v.AWSElasticBlockStore.VolumeID)
	case "flexVolume":
		return required(at, "driver", v.FlexVolume.Driver)
	}
	return nil
}

// validateVolume wants one source, which follows its rule.
func validateVolume(v *corev1.Volume, path *field.Path) (errs field.ErrorList) {
	errs = labelName(v.Name, path.Child("name"))
	given := 0
	source := reflect.ValueOf(&v.VolumeSource).Elem()
	if v.EmptyDir != nil { // which a real server looks at first
		given++
		errs = append(errs, volumeRule(&v.VolumeSource, "emptyDir", path.Child("emptyDir"))...)
	}
	for i := range source.NumField() {
		if source.Field(i).IsNil() || source.Type().Field(i).Name == "EmptyDir" {
			continue
		}
		name, _, _ := strings.Cut(source.Type().Field(i).Tag.Get("json"), ",")
		if given++; given > 1 {
			errs = append(errs, field.Forbidden(path.Child(name), "may not specify more than 1 volume type"))
			continue
		}
		errs = append(errs, volumeRule(&v.VolumeSource, name, path.Child(name))...)
	}
	if given == 0 {
		errs = append(errs, field.Required(path, "must specify a volume type"))
	}
	return errs
}

func required(path *field.Path, name, value string) field.ErrorList {
	if value != "" {
		return nil
	}
	return field.ErrorList{field.Required(path.Child(name), "")}
}

// climbing refuses a path that leads out of where it begins.
func climbing(name string, path *field.Path) field.ErrorList {
	if slices.Contains(strings.Split(name, "/"), "..") {
		return field.ErrorList{field.Invalid(path, name, "must not contain '..'")}
	}
	return nil
}

// insidePath wants a path to stay inside; an empty one does.
func insidePath(name string, at *field.Path) (errs field.ErrorList) {
	if path.IsAbs(name) {
		errs = append(errs, field.Invalid(at, name, "must be a relative path"))
	}
	return append(errs, climbing(name, at)...)
}

func validateEphemeral(e *corev1.EphemeralVolumeSource, template *field.Path) field.ErrorList {
	if e.VolumeClaimTemplate == nil {
		return field.ErrorList{field.Required(template, "")}
	}
	return validateClaimSpec(&e.VolumeClaimTemplate.Spec, template.Child("spec"))
}

func validateHostPath(h *corev1.HostPathVolumeSource, path *field.Path) (errs field.ErrorList) {
	if errs = required(path, "path", h.Path); len(errs) > 0 {
		return errs
	}
	errs = climbing(h.Path, path.Child("path"))
	if h.Type == nil {
		return errs
	}
	return append(errs, supported(*h.Type, path.Child("type"), corev1.HostPathUnset, corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory,
		corev1.HostPathDirectoryOrCreate, corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket)...)
}

func validateNFS(n *corev1.NFSVolumeSource, at *field.Path) (errs field.ErrorList) {
	errs = append(required(at, "server", n.Server), required(at, "path", n.Path)...)
	if !path.IsAbs(n.Path) {
		errs = append(errs, field.Invalid(at.Child("path"), n.Path, "must be an absolute path"))
	}
	return errs
}

func validateDriverName(name string, path *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "")}
	case len(name) > 63:
		return field.ErrorList{field.TooLong(path, "", 63)}
	}
	return invalids(path, name, utilvalidation.IsDNS1123Subdomain(strings.ToLower(name)))
}

const lastFileMode = 0o777

func validateMode(mode *int32, path *field.Path) field.ErrorList {
	if mode != nil && (*mode < 0 || *mode > lastFileMode) {
		return field.ErrorList{field.Invalid(path, *mode, "must be a number between 0 and 0777 (octal), both inclusive")}
	}
	return nil
}

func validateFiles(mode *int32, items []corev1.KeyToPath, path *field.Path) (errs field.ErrorList) {
	errs = validateMode(mode, path.Child("defaultMode"))
	for i, item := range items {
		at := path.Child("items").Index(i)
		errs = append(errs, required(at, "key", item.Key)...)
		errs = append(errs, validateFileName(item.Path, at.Child("path"))...)
		errs = append(errs, validateMode(item.Mode, at.Child("mode"))...)
	}
	return errs
}

func validateFileName(name string, path *field.Path) (errs field.ErrorList) {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	errs = insidePath(name, path)
	if len(errs) == 0 && strings.HasPrefix(name, "..") {
		errs = append(errs, field.Invalid(path, name, "must not start with '..'"))
	}
	return errs
}

func validateDownward(items []corev1.DownwardAPIVolumeFile, mode *int32, path *field.Path) (errs field.ErrorList) {
	errs = validateMode(mode, path.Child("defaultMode"))
	for _, item := range items {
		errs = append(errs, validateFileName(item.Path, path.Child("path"))...)
		switch {
		case item.FieldRef != nil && item.ResourceFieldRef != nil:
			errs = append(errs, field.Invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
		case item.FieldRef != nil:
			errs = append(errs, validateFieldRef(item.FieldRef, volumeFields, path.Child("fieldRef"))...)
		case item.ResourceFieldRef != nil:
			errs = append(errs, required(path.Child("resourceFieldRef"), "containerName", item.ResourceFieldRef.ContainerName)...)
			errs = append(errs, validateResourceRef(item.ResourceFieldRef, path.Child("resourceFieldRef"))...)
		default:
			errs = append(errs, field.Required(path.Child("fieldRef"), "one of fieldRef and resourceFieldRef is required"))
		}
		errs = append(errs, validateMode(item.Mode, path.Child("mode"))...)
	}
	return errs
}

// How long a projected token can be good for, in seconds.
const (
	shortestToken = 10 * 60
	longestToken  = 1 << 32
)

func validateProjected(p *corev1.ProjectedVolumeSource, path *field.Path) (errs field.ErrorList) {
	errs = validateMode(p.DefaultMode, path.Child("defaultMode"))
	for i, s := range p.Sources {
		at, given := path.Child("sources").Index(i), 0
		one := func(set bool, rule func() field.ErrorList) {
			if !set {
				return
			}
			if given++; given > 1 {
				errs = append(errs, field.Forbidden(at, "may not specify more than 1 volume type per source"))
				return
			}
			errs = append(errs, rule()...)
		}
		one(s.Secret != nil, func() field.ErrorList {
			return append(required(at.Child("secret"), "name", s.Secret.Name), validateFiles(nil, s.Secret.Items, at.Child("secret"))...)
		})
		one(s.ConfigMap != nil, func() field.ErrorList {
			return append(required(at.Child("configMap"), "name", s.ConfigMap.Name), validateFiles(nil, s.ConfigMap.Items, at.Child("configMap"))...)
		})
		one(s.DownwardAPI != nil, func() field.ErrorList { return validateDownward(s.DownwardAPI.Items, nil, at.Child("downwardAPI")) })
		one(s.ServiceAccountToken != nil, func() field.ErrorList {
			return validateTokenFile(s.ServiceAccountToken, at.Child("serviceAccountToken"))
		})
	}
	return errs
}

func validateTokenFile(t *corev1.ServiceAccountTokenProjection, path *field.Path) (errs field.ErrorList) {
	switch s := t.ExpirationSeconds; {
	case s != nil && *s < shortestToken:
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), *s, "may not specify a duration less than 10 minutes"))
	case s != nil && *s > longestToken:
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), *s, "may not specify a duration larger than 2^32 seconds"))
	}
	return append(errs, required(path, "path", t.Path)...)
}
