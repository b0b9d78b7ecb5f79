// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// affinitySeconds is the default duration for which a client stays with one endpoint.
const affinitySeconds = 10800

func defaultSecret(o *corev1.Secret) {
	for name, text := range o.StringData {
		if o.Data == nil {
			o.Data = map[string][]byte{}
		}
		o.Data[name] = []byte(text)
	}
	o.StringData = nil
	ZeroElse(&o.Type, corev1.SecretTypeOpaque)
}

func defaultNamespace(o *corev1.Namespace) {
	ZeroElse(&o.Status.Phase, corev1.NamespaceActive)
	if o.Name != "" { // else it is generated later
		metav1.SetMetaDataLabel(&o.ObjectMeta, corev1.LabelMetadataName, o.Name)
	}
}

func defaultService(o *corev1.Service) {
	ZeroElse(&o.Spec.SessionAffinity, corev1.ServiceAffinityNone)
	ZeroElse(&o.Spec.Type, corev1.ServiceTypeClusterIP)
	if o.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		if o.Spec.SessionAffinityConfig == nil || o.Spec.SessionAffinityConfig.ClientIP == nil || o.Spec.SessionAffinityConfig.ClientIP.TimeoutSeconds == nil {
			o.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(affinitySeconds))}}
		}
	} else {
		o.Spec.SessionAffinityConfig = nil
	}
	for i := range o.Spec.Ports {
		p := &o.Spec.Ports[i]
		ZeroElse(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	external := o.Spec.Type == corev1.ServiceTypeNodePort || o.Spec.Type == corev1.ServiceTypeLoadBalancer ||
		o.Spec.Type == corev1.ServiceTypeClusterIP && len(o.Spec.ExternalIPs) > 0
	if external {
		ZeroElse(&o.Spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if o.Spec.Type != corev1.ServiceTypeExternalName {
		OrElse(&o.Spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if o.Spec.Type == corev1.ServiceTypeLoadBalancer {
		OrElse(&o.Spec.AllocateLoadBalancerNodePorts, true)
	}
}

func PodQuality(pod *corev1.Pod) corev1.PodQOSClass {
	asks, guaranteed := false, true
	var each []corev1.ResourceRequirements
	if pod.Spec.Resources != nil {
		each = append(each, *pod.Spec.Resources) // only this one counts
	} else {
		for _, c := range append(append([]corev1.Container{}, pod.Spec.Containers...), pod.Spec.InitContainers...) {
			each = append(each, c.Resources)
		}
	}
	for _, r := range each {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			limit, limited := r.Limits[name]
			request, requested := r.Requests[name]
			limited, requested = limited && !limit.IsZero(), requested && !request.IsZero()
			asks = asks || limited || requested
			if !limited || requested && limit.Cmp(request) != 0 {
				guaranteed = false
			}
		}
	}
	switch {
	case !asks:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// defaultNode makes the two fields for the ranges of a node agree. If only one is set, it
// counts.
func defaultNode(o *corev1.Node) {
	s := &o.Spec
	switch {
	case s.PodCIDR == "" && len(s.PodCIDRs) > 0:
		s.PodCIDR = s.PodCIDRs[0]
	case s.PodCIDR != "" && (len(s.PodCIDRs) == 0 || s.PodCIDRs[0] != s.PodCIDR):
		s.PodCIDRs = []string{s.PodCIDR}
	}
	if o.Status.Allocatable == nil {
		o.Status.Allocatable = o.Status.Capacity.DeepCopy()
	}
}
