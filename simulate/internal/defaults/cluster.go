// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

func defaultStorageClass(o *storagev1.StorageClass) {
	OrElse(&o.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
	OrElse(&o.VolumeBindingMode, storagev1.VolumeBindingImmediate)
}

func defaultResourceSlice(o *resourcev1.ResourceSlice) {
	for _, d := range o.Spec.Devices {
		for i := range d.Taints {
			OrElse(&d.Taints[i].TimeAdded, object.Now())
		}
	}
}

func defaultDriver(o *storagev1.CSIDriver) {
	s := &o.Spec
	OrElse(&s.AttachRequired, true)
	OrElse(&s.PodInfoOnMount, false)
	OrElse(&s.StorageCapacity, false)
	OrElse(&s.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	OrElse(&s.RequiresRepublish, false)
	OrElse(&s.SELinuxMount, false)
	OrElse(&s.PreventPodSchedulingIfMissing, false)
	if len(s.VolumeLifecycleModes) == 0 {
		s.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
}

func defaultPriorityLevel(o *flowcontrolv1.PriorityLevelConfiguration) {
	s := &o.Spec
	if s.Exempt != nil {
		OrElse(&s.Exempt.NominalConcurrencyShares, 0)
		OrElse(&s.Exempt.LendablePercent, 0)
	}
	if s.Limited == nil {
		return
	}
	OrElse(&s.Limited.NominalConcurrencyShares, 30)
	OrElse(&s.Limited.LendablePercent, 0)
	if q := s.Limited.LimitResponse.Queuing; q != nil {
		ZeroElse(&q.HandSize, 8)
		ZeroElse(&q.Queues, 64)
		ZeroElse(&q.QueueLengthLimit, 50)
	}
}

func defaultPolicy(failure **admissionv1.FailurePolicyType, match *admissionv1.MatchResources) {
	OrElse(failure, admissionv1.Fail)
	defaultMatch(match)
}

func defaultMatch(m *admissionv1.MatchResources) {
	if m == nil {
		return
	}
	OrElse(&m.MatchPolicy, admissionv1.Equivalent)
	OrElse(&m.NamespaceSelector, metav1.LabelSelector{})
	OrElse(&m.ObjectSelector, metav1.LabelSelector{})
	for _, rules := range [][]admissionv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			OrElse(&rules[i].Scope, admissionv1.AllScopes)
		}
	}
}

func defaultDevices(d *resourcev1.DeviceClaim) {
	count := func(mode *resourcev1.DeviceAllocationMode, count *int64, tolerations []resourcev1.DeviceToleration) {
		ZeroElse(mode, resourcev1.DeviceAllocationModeExactCount)
		if *mode == resourcev1.DeviceAllocationModeExactCount {
			ZeroElse(count, 1)
		}
		for i := range tolerations {
			ZeroElse(&tolerations[i].Operator, resourcev1.DeviceTolerationOpEqual)
		}
	}
	for _, r := range d.Requests {
		if r.Exactly != nil {
			count(&r.Exactly.AllocationMode, &r.Exactly.Count, r.Exactly.Tolerations)
		}
		for i := range r.FirstAvailable {
			sub := &r.FirstAvailable[i]
			count(&sub.AllocationMode, &sub.Count, sub.Tolerations)
		}
	}
}
