// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

func storagePrinters() printers {
	return printers{
		"v1 PersistentVolume":      printed(heads("Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age|+VolumeMode"), volumeCells),
		"v1 PersistentVolumeClaim": printed(heads("Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|+VolumeMode"), claimCells),
		"storage.k8s.io/v1 StorageClass": printed(heads("Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age"), func(o *storagev1.StorageClass) []any {
			name := o.Name
			if o.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
				name += " (default)"
			}
			return []any{name, o.Provisioner, orValue(o.ReclaimPolicy, "Delete"), orValue(o.VolumeBindingMode, "Immediate"),
				o.AllowVolumeExpansion != nil && *o.AllowVolumeExpansion, age(o.CreationTimestamp)}
		}),
	}
}

func volumeCells(o *corev1.PersistentVolume) []any {
	size := o.Spec.Capacity[corev1.ResourceStorage]
	claim, phase := "", string(o.Status.Phase)
	if o.Spec.ClaimRef != nil {
		claim = o.Spec.ClaimRef.Namespace + "/" + o.Spec.ClaimRef.Name
	}
	if !object.Unset(o.DeletionTimestamp) {
		phase = "Terminating"
	}
	class := o.Spec.StorageClassName
	if old, ok := o.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		class = old
	}
	return []any{o.Name, size.String(), modesOf(o.Spec.AccessModes), string(o.Spec.PersistentVolumeReclaimPolicy), phase, claim, class,
		orValue(o.Spec.VolumeAttributesClassName, cellUnset), o.Status.Reason, age(o.CreationTimestamp), orValue(o.Spec.VolumeMode, cellUnset)}
}

func claimCells(o *corev1.PersistentVolumeClaim) []any {
	phase, size, modes := string(o.Status.Phase), "", ""
	if !object.Unset(o.DeletionTimestamp) {
		phase = "Terminating"
	}
	if o.Spec.VolumeName != "" {
		has := o.Status.Capacity[corev1.ResourceStorage]
		size, modes = has.String(), modesOf(o.Status.AccessModes)
	}
	class := orValue(o.Spec.StorageClassName, "")
	if old, ok := o.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		class = old
	}
	return []any{o.Name, phase, o.Spec.VolumeName, size, modes, class, orValue(o.Spec.VolumeAttributesClassName, cellUnset), age(o.CreationTimestamp), orValue(o.Spec.VolumeMode, cellUnset)}
}

// modesOf abbreviates access modes.
func modesOf(modes []corev1.PersistentVolumeAccessMode) string {
	var out []string
	for _, m := range []struct {
		mode  corev1.PersistentVolumeAccessMode
		short string
	}{{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"}, {corev1.ReadWriteOncePod, "RWOP"}} {
		if slices.Contains(modes, m.mode) {
			out = append(out, m.short)
		}
	}
	return strings.Join(out, ",")
}
