// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 a server shows what old clients store

package encode

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func networkPrinters() printers {
	return printers{
		"v1 Service": printed(heads("Name|Type|Cluster-IP|External-IP|Port(s)|Age|+Selector"), serviceCells),
		"v1 Endpoints": printed(heads("Name|Endpoints|Age"), func(o *corev1.Endpoints) []any {
			return []any{o.Name, endpointsOf(o), age(o.CreationTimestamp)}
		}),
		"discovery.k8s.io/v1 EndpointSlice": printed(heads("Name|AddressType|Ports|Endpoints|Age"), sliceCells),
		"networking.k8s.io/v1 Ingress":      printed(heads("Name|Class|Hosts|Address|Ports|Age"), ingressCells),
		"networking.k8s.io/v1 IngressClass": printed(heads("Name|Controller|Parameters|Age"), func(o *networkingv1.IngressClass) []any {
			name, parameters := o.Name, cellNone
			if o.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
				name += " (default)"
			}
			if p := o.Spec.Parameters; p != nil {
				parameters = p.Kind
				if p.APIGroup != nil {
					parameters += "." + *p.APIGroup
				}
				parameters += "/" + p.Name
			}
			return []any{name, o.Spec.Controller, parameters, age(o.CreationTimestamp)}
		}),
		"networking.k8s.io/v1 NetworkPolicy": printed(heads("Name|Pod-Selector|Age"), func(o *networkingv1.NetworkPolicy) []any {
			return []any{o.Name, metav1.FormatLabelSelector(&o.Spec.PodSelector), age(o.CreationTimestamp)}
		}),
	}
}

func serviceCells(o *corev1.Service) []any {
	address := cellNone
	if len(o.Spec.ClusterIPs) > 0 {
		address = o.Spec.ClusterIPs[0]
	}
	var ports []string
	for _, p := range o.Spec.Ports {
		port := strconv.Itoa(int(p.Port))
		if p.NodePort > 0 {
			port += ":" + strconv.Itoa(int(p.NodePort))
		}
		ports = append(ports, port+"/"+string(p.Protocol))
	}
	return []any{o.Name, string(o.Spec.Type), address, reachedAt(o), or(strings.Join(ports, ","), cellNone), age(o.CreationTimestamp), labels.FormatLabels(o.Spec.Selector)}
}

// reachedAt returns the addresses of a Service outside the cluster.
func reachedAt(o *corev1.Service) string {
	switch o.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return or(strings.Join(o.Spec.ExternalIPs, ","), cellNone)
	case corev1.ServiceTypeExternalName:
		return o.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		var at []string
		for _, i := range o.Status.LoadBalancer.Ingress {
			at = append(at, or(i.IP, i.Hostname))
		}
		return or(strings.Join(append(distinct(at), o.Spec.ExternalIPs...), ","), "<pending>")
	}
	return cellUnknown
}

// distinct returns sorted texts without duplicates and without the empty one.
func distinct(all []string) []string {
	all = slices.DeleteFunc(all, func(one string) bool { return one == "" })
	slices.Sort(all)
	return slices.Compact(all)
}

func endpointsOf(o *corev1.Endpoints) string {
	if len(o.Subsets) == 0 {
		return cellNone
	}
	var all []string
	for _, subset := range o.Subsets {
		for _, a := range subset.Addresses {
			if len(subset.Ports) == 0 {
				all = append(all, a.IP)
			}
		}
		for _, p := range subset.Ports {
			for _, a := range subset.Addresses {
				all = append(all, net.JoinHostPort(a.IP, strconv.Itoa(int(p.Port))))
			}
		}
	}
	return some(all)
}

func sliceCells(o *discoveryv1.EndpointSlice) []any {
	var ports, addresses []string
	for _, p := range o.Ports {
		switch {
		case p.Port != nil:
			ports = append(ports, strconv.Itoa(int(*p.Port)))
		case p.Name != nil:
			ports = append(ports, *p.Name)
		default:
			ports = append(ports, "*")
		}
	}
	for _, e := range o.Endpoints {
		addresses = append(addresses, e.Addresses...)
	}
	return []any{o.Name, string(o.AddressType), or(some(ports), cellUnset), or(some(addresses), cellUnset), age(o.CreationTimestamp)}
}

func ingressCells(o *networkingv1.Ingress) []any {
	ports := "80"
	if len(o.Spec.TLS) > 0 {
		ports = "80, 443"
	}
	var hosts, at []string
	more := false
	for _, rule := range o.Spec.Rules {
		if more = more || len(hosts) == listedAtMost; !more && rule.Host != "" {
			hosts = append(hosts, rule.Host)
		}
	}
	shown := or(strings.Join(hosts, ","), "*")
	if more {
		shown += fmt.Sprintf(" + %d more...", len(o.Spec.Rules)-listedAtMost)
	}
	for _, i := range o.Status.LoadBalancer.Ingress {
		at = append(at, or(i.IP, i.Hostname))
	}
	return []any{o.Name, orValue(o.Spec.IngressClassName, cellNone), shown, strings.Join(distinct(at), ","), ports, age(o.CreationTimestamp)}
}
