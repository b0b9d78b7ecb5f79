// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateClaim(o, old *corev1.PersistentVolumeClaim) field.ErrorList {
	if old != nil {
		return nil // what may change of a bound claim is not held here
	}
	return validateClaimSpec(&o.Spec, field.NewPath("spec"))
}

func validateAccessModes(modes []corev1.PersistentVolumeAccessMode, path *field.Path) (errs field.ErrorList) {
	if len(modes) == 0 {
		return field.ErrorList{field.Required(path, "at least 1 access mode is required")}
	}
	for _, mode := range modes {
		errs = append(errs, supported(mode, path, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod)...)
	}
	if len(modes) > 1 && slices.Contains(modes, corev1.ReadWriteOncePod) {
		errs = append(errs, field.Forbidden(path, "may not use ReadWriteOncePod with other access modes"))
	}
	return errs
}

func validateClaimSpec(s *corev1.PersistentVolumeClaimSpec, path *field.Path) (errs field.ErrorList) {
	errs = validateAccessModes(s.AccessModes, path.Child("accessModes"))
	if s.Selector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(s.Selector, selectorOptions, path.Child("selector"))...)
	}
	storage := path.Child("resources").Key("storage")
	if amount, asked := s.Resources.Requests[corev1.ResourceStorage]; !asked {
		errs = append(errs, field.Required(storage, ""))
	} else if amount.Sign() <= 0 {
		errs = append(errs, field.Invalid(storage, amount.String(), "must be greater than zero"))
	}
	if s.StorageClassName != nil && *s.StorageClassName != "" {
		errs = append(errs, invalids(path.Child("storageClassName"), *s.StorageClassName, utilvalidation.IsDNS1123Subdomain(*s.StorageClassName))...)
	}
	if s.VolumeAttributesClassName != nil && *s.VolumeAttributesClassName != "" {
		errs = append(errs, invalids(path.Child("volumeAttributesClassName"), *s.VolumeAttributesClassName, utilvalidation.IsDNS1123Subdomain(*s.VolumeAttributesClassName))...)
	}
	errs = append(errs, supportedIf(s.VolumeMode, path.Child("volumeMode"), corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)...)
	return append(errs, validateDataSources(s, path)...)
}

func validateDataSources(s *corev1.PersistentVolumeClaimSpec, path *field.Path) (errs field.ErrorList) {
	reference := func(group *string, kind, name string, at *field.Path) {
		errs = append(errs, required(at, "name", name)...)
		errs = append(errs, required(at, "kind", kind)...)
		if core := group == nil || *group == ""; core && kind != "PersistentVolumeClaim" {
			errs = append(errs, field.Invalid(at, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
		}
	}
	if d := s.DataSource; d != nil {
		reference(d.APIGroup, d.Kind, d.Name, path.Child("dataSource"))
	}
	if d := s.DataSourceRef; d != nil {
		reference(d.APIGroup, d.Kind, d.Name, path.Child("dataSourceRef"))
	}
	if d, ref := s.DataSource, s.DataSourceRef; d != nil && ref != nil && (d.Kind != ref.Kind || d.Name != ref.Name || !reflect.DeepEqual(d.APIGroup, ref.APIGroup)) {
		errs = append(errs, field.Invalid(path, path.Child("dataSource"), "must match dataSourceRef"))
	}
	return errs
}

// validateVolumeOfCluster holds a PersistentVolume.
func validateVolumeOfCluster(o, old *corev1.PersistentVolume) (errs field.ErrorList) {
	if old != nil {
		return nil
	}
	s, path := &o.Spec, field.NewPath("spec")
	errs = validateAccessModes(s.AccessModes, path.Child("accessModes"))
	if len(errs) == 1 && errs[0].Type == field.ErrorTypeRequired {
		errs[0].Detail = ""
	}
	capacity := path.Child("capacity")
	if len(s.Capacity) == 0 {
		errs = append(errs, field.Required(capacity, ""))
	}
	if amount, ok := s.Capacity[corev1.ResourceStorage]; !ok || len(s.Capacity) > 1 {
		errs = append(errs, field.NotSupported(capacity, s.Capacity, []string{string(corev1.ResourceStorage)}))
	} else if amount.Sign() <= 0 {
		errs = append(errs, field.Invalid(capacity.Key("storage"), amount.String(), "must be greater than zero"))
	}
	errs = append(errs, supported(s.PersistentVolumeReclaimPolicy, path.Child("persistentVolumeReclaimPolicy"), corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain)...)
	errs = append(errs, validateVolumeSources(s, path)...)
	if s.NodeAffinity != nil && s.NodeAffinity.Required != nil {
		errs = append(errs, validateNodeSelector(s.NodeAffinity.Required, path.Child("nodeAffinity", "required"))...)
	}
	if s.StorageClassName != "" {
		errs = append(errs, invalids(path.Child("storageClassName"), s.StorageClassName, utilvalidation.IsDNS1123Subdomain(s.StorageClassName))...)
	}
	errs = append(errs, supportedIf(s.VolumeMode, path.Child("volumeMode"), corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)...)
	if s.HostPath != nil && s.HostPath.Path == "/" && s.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		errs = append(errs, field.Forbidden(path.Child("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'"))
	}
	return errs
}

// validateVolumeSources wants one source of a PersistentVolume.
func validateVolumeSources(s *corev1.PersistentVolumeSpec, path *field.Path) (errs field.ErrorList) {
	given := 0
	source := reflect.ValueOf(&s.PersistentVolumeSource).Elem()
	for i := range source.NumField() {
		if source.Field(i).IsNil() {
			continue
		}
		name, _, _ := strings.Cut(source.Type().Field(i).Tag.Get("json"), ",")
		at := path.Child(name)
		if given++; given > 1 {
			errs = append(errs, field.Forbidden(at, "may not specify more than 1 volume type"))
			continue
		}
		switch name {
		case "hostPath":
			errs = append(errs, validateHostPath(s.HostPath, at)...)
		case "nfs":
			errs = append(errs, validateNFS(s.NFS, at)...)
		case "csi":
			errs = append(errs, validateDriverName(s.CSI.Driver, at.Child("driver"))...)
			errs = append(errs, required(at, "volumeHandle", s.CSI.VolumeHandle)...)
		case "local":
			errs = append(errs, required(at, "path", s.Local.Path)...)
			errs = append(errs, climbing(s.Local.Path, at.Child("path"))...)
			if s.NodeAffinity == nil || s.NodeAffinity.Required == nil {
				errs = append(errs, field.Required(path.Child("nodeAffinity"), "Local volume requires node affinity"))
			}
		}
	}
	if given == 0 {
		errs = append(errs, field.Required(path, "must specify a volume type"))
	}
	return errs
}
