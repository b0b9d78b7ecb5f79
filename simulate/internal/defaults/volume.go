// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package defaults

import corev1 "k8s.io/api/core/v1"

// volumeMode is the default mode of files in volumes made from objects.
const volumeMode = 0o644

func defaultPodVolume(v *corev1.VolumeSource) {
	if *v == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.Secret != nil {
		OrElse(&v.Secret.DefaultMode, volumeMode)
	}
	if v.ConfigMap != nil {
		OrElse(&v.ConfigMap.DefaultMode, volumeMode)
	}
	if v.HostPath != nil {
		OrElse(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.DownwardAPI != nil {
		OrElse(&v.DownwardAPI.DefaultMode, volumeMode)
		for i := range v.DownwardAPI.Items {
			if ref := v.DownwardAPI.Items[i].FieldRef; ref != nil {
				ZeroElse(&ref.APIVersion, "v1")
			}
		}
	}
	if v.Projected != nil {
		defaultProjected(v.Projected)
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		OrElse(&v.Ephemeral.VolumeClaimTemplate.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	}
	if v.ISCSI != nil {
		ZeroElse(&v.ISCSI.ISCSIInterface, iscsiInterface)
	}
	if v.RBD != nil {
		defaultBlockImage(&v.RBD.RBDPool, &v.RBD.RadosUser, &v.RBD.Keyring)
	}
	if v.ScaleIO != nil {
		ZeroElse(&v.ScaleIO.StorageMode, scaleIOMode)
		ZeroElse(&v.ScaleIO.FSType, scaleIOFiles)
	}
	defaultAzureDisk(v.AzureDisk)
	if v.Image != nil {
		ZeroElse(&v.Image.PullPolicy, pullOf(v.Image.Reference))
	}
}

// Defaults of network volumes.
const (
	iscsiInterface = "default"
	scaleIOMode    = "ThinProvisioned"
	scaleIOFiles   = "xfs"
)

func defaultBlockImage(pool, user, keyring *string) {
	ZeroElse(pool, "rbd")
	ZeroElse(user, "admin")
	ZeroElse(keyring, "/etc/ceph/keyring")
}

func defaultAzureDisk(d *corev1.AzureDiskVolumeSource) {
	if d == nil {
		return
	}
	OrElse(&d.CachingMode, corev1.AzureDataDiskCachingReadWrite)
	OrElse(&d.Kind, corev1.AzureSharedBlobDisk)
	OrElse(&d.FSType, "ext4")
	OrElse(&d.ReadOnly, false)
}

func defaultVolume(o *corev1.PersistentVolume) {
	s := &o.Spec
	OrElse(&s.VolumeMode, corev1.PersistentVolumeFilesystem)
	ZeroElse(&s.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
	if s.HostPath != nil {
		OrElse(&s.HostPath.Type, corev1.HostPathUnset)
	}
	if s.ISCSI != nil {
		ZeroElse(&s.ISCSI.ISCSIInterface, iscsiInterface)
	}
	if s.RBD != nil {
		defaultBlockImage(&s.RBD.RBDPool, &s.RBD.RadosUser, &s.RBD.Keyring)
	}
	if s.ScaleIO != nil {
		ZeroElse(&s.ScaleIO.StorageMode, scaleIOMode)
		ZeroElse(&s.ScaleIO.FSType, scaleIOFiles)
	}
	defaultAzureDisk(s.AzureDisk)
}

// defaultClaim makes dataSource and dataSourceRef of a claim agree.
func defaultClaim(o *corev1.PersistentVolumeClaim) {
	s := &o.Spec
	OrElse(&s.VolumeMode, corev1.PersistentVolumeFilesystem)
	if d := s.DataSource; d != nil && s.DataSourceRef == nil && (d.APIGroup == nil || *d.APIGroup == "") && d.Kind != "PersistentVolumeClaim" {
		s.DataSource = nil // a claim is populated from nothing else of the core API
	}
	switch {
	case s.DataSource != nil && s.DataSourceRef == nil:
		s.DataSourceRef = &corev1.TypedObjectReference{APIGroup: s.DataSource.APIGroup, Kind: s.DataSource.Kind, Name: s.DataSource.Name}
	case s.DataSource == nil && s.DataSourceRef != nil && (s.DataSourceRef.Namespace == nil || *s.DataSourceRef.Namespace == ""):
		s.DataSource = &corev1.TypedLocalObjectReference{APIGroup: s.DataSourceRef.APIGroup, Kind: s.DataSourceRef.Kind, Name: s.DataSourceRef.Name}
	}
}

// defaultLimitRange derives default limits and requests from the minimum and maximum.
func defaultLimitRange(o *corev1.LimitRange) {
	fill := func(to *corev1.ResourceList, from corev1.ResourceList) {
		for name, amount := range from {
			if _, given := (*to)[name]; given {
				continue
			}
			if *to == nil {
				*to = corev1.ResourceList{}
			}
			(*to)[name] = amount.DeepCopy()
		}
	}
	for i := range o.Spec.Limits {
		if l := &o.Spec.Limits[i]; l.Type == corev1.LimitTypeContainer {
			fill(&l.Default, l.Max)
			fill(&l.DefaultRequest, l.Default)
			fill(&l.DefaultRequest, l.Min)
		}
	}
}

// tokenSeconds is the default lifetime of a projected token.
const tokenSeconds = 3600

func defaultProjected(p *corev1.ProjectedVolumeSource) {
	OrElse(&p.DefaultMode, volumeMode)
	for i := range p.Sources {
		if token := p.Sources[i].ServiceAccountToken; token != nil {
			OrElse(&token.ExpirationSeconds, tokenSeconds)
		}
		if down := p.Sources[i].DownwardAPI; down != nil {
			for j := range down.Items {
				if ref := down.Items[j].FieldRef; ref != nil {
					ZeroElse(&ref.APIVersion, "v1")
				}
			}
		}
	}
}
