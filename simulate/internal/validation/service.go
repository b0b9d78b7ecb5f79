// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The ports of nodes that Services get.
const (
	FirstNodePort = 30000
	NodePorts     = 2768
)

func validateService(o, old *corev1.Service) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	headless := o.Spec.ClusterIP == corev1.ClusterIPNone
	if len(o.Spec.Ports) == 0 && !headless && o.Spec.Type != corev1.ServiceTypeExternalName {
		errs = append(errs, field.Required(spec.Child("ports"), ""))
	}
	errs = append(errs, supported(o.Spec.Type, spec.Child("type"), corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName,
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)...)
	if o.Spec.Type == corev1.ServiceTypeExternalName {
		errs = append(errs, required(spec, "externalName", o.Spec.ExternalName)...)
	}
	errs = append(errs, metav1validation.ValidateLabels(o.Spec.Selector, spec.Child("selector"))...)
	errs = append(errs, validateServicePorts(o.Spec.Ports, spec.Child("ports"))...)
	errs = append(errs, validateNodePorts(&o.Spec, spec.Child("ports"))...)
	if old == nil {
		errs = append(errs, validateServiceReach(&o.Spec, spec)...)
	}
	if old != nil && old.Spec.ClusterIP != "" && o.Spec.ClusterIP != old.Spec.ClusterIP &&
		o.Spec.Type != corev1.ServiceTypeExternalName && old.Spec.Type != corev1.ServiceTypeExternalName {
		errs = append(errs, field.Invalid(spec.Child("clusterIPs").Index(0), []string{o.Spec.ClusterIP}, "may not change once set"))
	}
	return errs
}

func validateServicePorts(ports []corev1.ServicePort, path *field.Path) (errs field.ErrorList) {
	type numbered struct {
		port     int32
		protocol corev1.Protocol
	}
	names, numbers := map[string]bool{}, map[numbered]bool{}
	for i, p := range ports {
		at := path.Index(i)
		if p.Name == "" && len(ports) > 1 {
			errs = append(errs, field.Required(at.Child("name"), ""))
		}
		if p.Name != "" {
			errs = append(errs, labelName(p.Name, at.Child("name"))...)
			if names[p.Name] {
				errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
			}
			names[p.Name] = true
		}
		errs = append(errs, portNumber(p.Port, at.Child("port"))...)
		errs = append(errs, supported(p.Protocol, at.Child("protocol"), corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
		if p.TargetPort.Type == intstr.Int {
			errs = append(errs, portNumber(p.TargetPort.IntVal, at.Child("targetPort"))...)
		} else {
			errs = append(errs, invalids(at.Child("targetPort"), p.TargetPort.StrVal, utilvalidation.IsValidPortName(p.TargetPort.StrVal))...)
		}
		one := numbered{p.Port, p.Protocol}
		if numbers[one] {
			errs = append(errs, field.Duplicate(at, corev1.ServicePort{Protocol: p.Protocol, Port: p.Port}))
		}
		numbers[one] = true
	}
	return errs
}

// validateNodePorts validates the ports of nodes, and the protocols of applications.
func validateNodePorts(s *corev1.ServiceSpec, path *field.Path) (errs field.ErrorList) {
	external := s.Type == corev1.ServiceTypeNodePort || s.Type == corev1.ServiceTypeLoadBalancer
	for i, p := range s.Ports {
		at := path.Index(i)
		if p.AppProtocol != nil {
			errs = append(errs, invalids(at.Child("appProtocol"), *p.AppProtocol, utilvalidation.IsQualifiedName(*p.AppProtocol))...)
		}
		switch {
		case p.NodePort == 0:
		case !external:
			errs = append(errs, field.Forbidden(at.Child("nodePort"), fmt.Sprintf("may not be used when `type` is '%s'", s.Type)))
		case p.NodePort < FirstNodePort || p.NodePort >= FirstNodePort+NodePorts:
			errs = append(errs, field.Invalid(at.Child("nodePort"), p.NodePort, "provided port is not in the valid range. The range of valid ports is 30000-32767"))
		}
	}
	return errs
}

// validateSessionAffinity validates how long a client keeps its endpoint.
func validateSessionAffinity(s *corev1.ServiceSpec, spec *field.Path) field.ErrorList {
	errs := supported(s.SessionAffinity, spec.Child("sessionAffinity"), corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
	if c := s.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		if n := *c.ClientIP.TimeoutSeconds; n <= 0 || n > corev1.DefaultClientIPServiceAffinitySeconds*8 {
			errs = append(errs, field.Invalid(spec.Child("sessionAffinityConfig", "clientIP", "timeoutSeconds"), n, "must be greater than 0 and less than 86400"))
		}
	}
	return errs
}

// validateServiceReach holds what says from where a Service is reached.
func validateServiceReach(s *corev1.ServiceSpec, spec *field.Path) (errs field.ErrorList) {
	balanced := s.Type == corev1.ServiceTypeLoadBalancer
	external := balanced || s.Type == corev1.ServiceTypeNodePort || len(s.ExternalIPs) > 0
	errs = validateSessionAffinity(s, spec)
	switch at := spec.Child("externalTrafficPolicy"); {
	case s.ExternalTrafficPolicy == "":
	case !external:
		errs = append(errs, field.Invalid(at, s.ExternalTrafficPolicy, "may only be set for externally-accessible services"))
	default:
		errs = append(errs, supported(s.ExternalTrafficPolicy, at, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)...)
	}
	errs = append(errs, supportedIf(s.InternalTrafficPolicy, spec.Child("internalTrafficPolicy"), corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)...)
	errs = append(errs, supportedIf(s.TrafficDistribution, spec.Child("trafficDistribution"), corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)...)
	if s.HealthCheckNodePort != 0 && !(balanced && s.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal) {
		errs = append(errs, field.Invalid(spec.Child("healthCheckNodePort"), s.HealthCheckNodePort, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"allocateLoadBalancerNodePorts", s.AllocateLoadBalancerNodePorts != nil},
		{"loadBalancerClass", s.LoadBalancerClass != nil},
		{"LoadBalancerSourceRanges", len(s.LoadBalancerSourceRanges) > 0}, // as a real server writes it
	} {
		if f.set && !balanced {
			errs = append(errs, field.Forbidden(spec.Child(f.name), "may only be used when `type` is 'LoadBalancer'"))
		}
	}
	for i, each := range s.LoadBalancerSourceRanges {
		if balanced {
			errs = append(errs, utilvalidation.IsValidCIDRForLegacyField(spec.Child("LoadBalancerSourceRanges").Index(i), strings.TrimSpace(each), false, nil)...)
		}
	}
	return append(errs, validateServiceAddresses(s, spec)...)
}

// validateServiceAddresses holds addresses, in a cluster that has those of one family.
func validateServiceAddresses(s *corev1.ServiceSpec, spec *field.Path) (errs field.ErrorList) {
	for i, ip := range s.ExternalIPs {
		at := spec.Child("externalIPs").Index(i)
		if wrong := validateIP(ip, at); len(wrong) > 0 {
			errs = append(errs, wrong...)
		} else if address, _ := netip.ParseAddr(ip); address.IsLoopback() {
			errs = append(errs, field.Invalid(at, ip, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
		}
	}
	if s.Type == corev1.ServiceTypeExternalName {
		if s.ExternalName != "" {
			errs = append(errs, invalids(spec.Child("externalName"), s.ExternalName, utilvalidation.IsDNS1123Subdomain(strings.TrimSuffix(s.ExternalName, ".")))...)
		}
		return errs
	}
	switch at := spec.Child("clusterIPs").Index(0); {
	case s.ClusterIP == corev1.ClusterIPNone && s.Type != corev1.ServiceTypeClusterIP:
		errs = append(errs, field.Invalid(at, s.ClusterIP, fmt.Sprintf("may not be set to 'None' for %s services", s.Type)))
	case s.ClusterIP != corev1.ClusterIPNone && s.ClusterIP != "":
		errs = append(errs, validateIP(s.ClusterIP, at)...)
	}
	if headless := s.ClusterIP == corev1.ClusterIPNone && len(s.Selector) == 0; headless {
		return errs
	}
	if p := s.IPFamilyPolicy; p != nil && *p == corev1.IPFamilyPolicyRequireDualStack {
		errs = append(errs, field.Invalid(spec.Child("ipFamilyPolicy"), *p, "this cluster is not configured for dual-stack services"))
	}
	for i, family := range s.IPFamilies {
		if family != corev1.IPv4Protocol {
			errs = append(errs, field.Invalid(spec.Child("ipFamilies").Index(i), family, "not configured on this cluster"))
		}
	}
	return errs
}
