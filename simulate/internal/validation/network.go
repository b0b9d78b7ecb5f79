// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"net/netip"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateIngress(o *networkingv1.Ingress) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	if o.Spec.DefaultBackend == nil && len(o.Spec.Rules) == 0 {
		errs = append(errs, field.Invalid(spec, o.Spec.Rules, "either `defaultBackend` or `rules` must be specified"))
	}
	if o.Spec.DefaultBackend != nil {
		errs = append(errs, validateBackend(o.Spec.DefaultBackend, spec.Child("defaultBackend"))...)
	}
	for i, rule := range o.Spec.Rules {
		errs = append(errs, validateIngressRule(&rule, spec.Child("rules").Index(i))...)
	}
	for i, tls := range o.Spec.TLS {
		at := spec.Child("tls").Index(i)
		for j, host := range tls.Hosts {
			errs = append(errs, hostName(host, at.Child("hosts").Index(j))...)
		}
		if tls.SecretName != "" {
			errs = append(errs, invalids(at.Child("secretName"), tls.SecretName, utilvalidation.IsDNS1123Subdomain(tls.SecretName))...)
		}
	}
	if class := o.Spec.IngressClassName; class != nil {
		errs = append(errs, invalids(spec.Child("ingressClassName"), *class, utilvalidation.IsDNS1123Subdomain(*class))...)
	}
	return errs
}

// hostName is a name that may begin with a wildcard.
func hostName(name string, path *field.Path) field.ErrorList {
	if strings.Contains(name, "*") {
		return invalids(path, name, utilvalidation.IsWildcardDNS1123Subdomain(name))
	}
	return invalids(path, name, utilvalidation.IsDNS1123Subdomain(name))
}

func validateIngressRule(rule *networkingv1.IngressRule, at *field.Path) (errs field.ErrorList) {
	if rule.Host != "" {
		if _, err := netip.ParseAddr(rule.Host); err == nil {
			errs = append(errs, field.Invalid(at.Child("host"), rule.Host, "must be a DNS name, not an IP address"))
		}
		errs = append(errs, hostName(rule.Host, at.Child("host"))...)
	}
	if rule.HTTP == nil {
		return errs
	}
	if len(rule.HTTP.Paths) == 0 {
		errs = append(errs, field.Required(at.Child("http", "paths"), ""))
	}
	for i := range rule.HTTP.Paths {
		p, each := &rule.HTTP.Paths[i], at.Child("http", "paths").Index(i)
		errs = append(errs, validateIngressPath(p, each)...)
		errs = append(errs, validateBackend(&p.Backend, each.Child("backend"))...)
	}
	return errs
}

func validateIngressPath(p *networkingv1.HTTPIngressPath, at *field.Path) (errs field.ErrorList) {
	if p.PathType == nil {
		return field.ErrorList{field.Required(at.Child("pathType"), "pathType must be specified")}
	}
	switch *p.PathType {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
		if !path.IsAbs(p.Path) {
			return field.ErrorList{field.Invalid(at.Child("path"), p.Path, "must be an absolute path")}
		}
		for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(p.Path, part) {
				errs = append(errs, field.Invalid(at.Child("path"), p.Path, "must not contain '"+part+"'"))
			}
		}
		for _, end := range []string{"/..", "/."} {
			if strings.HasSuffix(p.Path, end) {
				errs = append(errs, field.Invalid(at.Child("path"), p.Path, "cannot end with '"+end+"'"))
			}
		}
	case networkingv1.PathTypeImplementationSpecific:
		if p.Path != "" && !path.IsAbs(p.Path) {
			errs = append(errs, field.Invalid(at.Child("path"), p.Path, "must be an absolute path"))
		}
	default:
		errs = supported(*p.PathType, at.Child("pathType"), networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix)
	}
	return errs
}

func validateBackend(b *networkingv1.IngressBackend, path *field.Path) (errs field.ErrorList) {
	switch {
	case b.Resource != nil && b.Service != nil:
		return field.ErrorList{field.Invalid(path, "", "cannot set both resource and service backends")}
	case b.Resource != nil:
		return append(required(path.Child("resource"), "kind", b.Resource.Kind), required(path.Child("resource"), "name", b.Resource.Name)...)
	case b.Service == nil:
		return field.ErrorList{field.Invalid(path, "", "resource or service backend is required")}
	}
	at := path.Child("service")
	if b.Service.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	} else {
		errs = append(errs, invalids(at.Child("name"), b.Service.Name, utilvalidation.IsDNS1123Label(b.Service.Name))...)
	}
	switch port := b.Service.Port; {
	case port.Name != "" && port.Number != 0:
		errs = append(errs, field.Invalid(path, "", "cannot set both port name & port number"))
	case port.Name != "":
		errs = append(errs, invalids(at.Child("port", "name"), port.Name, utilvalidation.IsValidPortName(port.Name))...)
	case port.Number != 0:
		errs = append(errs, portNumber(port.Number, at.Child("port", "number"))...)
	default:
		errs = append(errs, field.Required(path, "port name or number is required"))
	}
	return errs
}

func validateIngressClass(o *networkingv1.IngressClass) (errs field.ErrorList) {
	path := field.NewPath("spec")
	if errs = required(path, "controller", o.Spec.Controller); len(errs) == 0 {
		errs = utilvalidation.IsDomainPrefixedPath(path.Child("controller"), o.Spec.Controller)
	}
	p, at := o.Spec.Parameters, path.Child("parameters")
	if p == nil {
		return errs
	}
	errs = append(append(errs, required(at, "kind", p.Kind)...), required(at, "name", p.Name)...)
	scope := ""
	if p.Scope != nil {
		scope = *p.Scope
	}
	errs = append(errs, supported(scope, at.Child("scope"), networkingv1.IngressClassParametersReferenceScopeCluster, networkingv1.IngressClassParametersReferenceScopeNamespace)...)
	switch given := p.Namespace != nil && *p.Namespace != ""; {
	case scope == networkingv1.IngressClassParametersReferenceScopeCluster && p.Namespace != nil:
		errs = append(errs, field.Forbidden(at.Child("namespace"), "`parameters.scope` is set to 'Cluster'"))
	case scope == networkingv1.IngressClassParametersReferenceScopeNamespace && !given:
		errs = append(errs, field.Required(at.Child("namespace"), "`parameters.scope` is set to 'Namespace'"))
	}
	return errs
}

func validateNetworkPolicy(o *networkingv1.NetworkPolicy) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	errs = metav1validation.ValidateLabelSelector(&o.Spec.PodSelector, selectorOptions, spec.Child("podSelector"))
	for i, rule := range o.Spec.Ingress {
		errs = append(errs, validatePeers(rule.From, rule.Ports, "from", spec.Child("ingress").Index(i))...)
	}
	for i, rule := range o.Spec.Egress {
		errs = append(errs, validatePeers(rule.To, rule.Ports, "to", spec.Child("egress").Index(i))...)
	}
	if len(o.Spec.PolicyTypes) > 2 {
		return append(errs, field.Invalid(spec.Child("policyTypes"), o.Spec.PolicyTypes, "may not specify more than two policyTypes"))
	}
	for i, each := range o.Spec.PolicyTypes {
		errs = append(errs, supported(each, spec.Child("policyTypes").Index(i), networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)...)
	}
	return errs
}

func validatePeers(peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort, name string, path *field.Path) (errs field.ErrorList) {
	for i, p := range ports {
		errs = append(errs, validatePolicyPort(&p, path.Child("ports").Index(i))...)
	}
	for i, p := range peers {
		at := path.Child(name).Index(i)
		if p.PodSelector != nil {
			errs = append(errs, metav1validation.ValidateLabelSelector(p.PodSelector, selectorOptions, at.Child("podSelector"))...)
		}
		if p.NamespaceSelector != nil {
			errs = append(errs, metav1validation.ValidateLabelSelector(p.NamespaceSelector, selectorOptions, at.Child("namespaceSelector"))...)
		}
		selects := p.PodSelector != nil || p.NamespaceSelector != nil
		if p.IPBlock != nil {
			errs = append(errs, validateBlock(p.IPBlock, at.Child("ipBlock"))...)
		}
		switch {
		case p.IPBlock != nil && selects:
			errs = append(errs, field.Forbidden(at, "may not specify both ipBlock and another peer"))
		case p.IPBlock == nil && !selects:
			errs = append(errs, field.Required(at, "must specify a peer"))
		}
	}
	return errs
}

func validatePolicyPort(p *networkingv1.NetworkPolicyPort, path *field.Path) (errs field.ErrorList) {
	if p.Protocol != nil {
		errs = supported(*p.Protocol, path.Child("protocol"), corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
	}
	end := path.Child("endPort")
	if p.Port == nil {
		if p.EndPort != nil {
			errs = append(errs, field.Invalid(end, *p.EndPort, "may not be specified when `port` is not specified"))
		}
		return errs
	}
	errs = append(errs, portOrName(*p.Port, path.Child("port"))...)
	switch {
	case p.EndPort == nil:
	case p.Port.Type == intstr.String:
		errs = append(errs, field.Invalid(end, *p.EndPort, "may not be specified when `port` is non-numeric"))
	case *p.EndPort < p.Port.IntVal:
		errs = append(errs, field.Invalid(end, *p.EndPort, "must be greater than or equal to `port`"))
	}
	return errs
}

func validateBlock(b *networkingv1.IPBlock, path *field.Path) (errs field.ErrorList) {
	if b.CIDR == "" {
		return field.ErrorList{field.Required(path.Child("cidr"), "")}
	}
	if errs = utilvalidation.IsValidCIDRForLegacyField(path.Child("cidr"), b.CIDR, false, nil); len(errs) > 0 {
		return errs
	}
	whole, err := netip.ParsePrefix(b.CIDR)
	if err != nil {
		return nil // one that older servers took
	}
	for i, except := range b.Except {
		at := path.Child("except").Index(i)
		if wrong := utilvalidation.IsValidCIDRForLegacyField(at, except, false, nil); len(wrong) > 0 {
			errs = append(errs, wrong...)
			continue
		}
		part, err := netip.ParsePrefix(except)
		if err == nil && (!whole.Contains(part.Addr()) || part.Bits() <= whole.Bits()) {
			errs = append(errs, field.Invalid(at, except, "must be a strict subset of `cidr`"))
		}
	}
	return errs
}
