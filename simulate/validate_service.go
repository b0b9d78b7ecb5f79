// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateService(o, old *corev1.Service) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	headless := o.Spec.ClusterIP == corev1.ClusterIPNone
	if len(o.Spec.Ports) == 0 && !headless && o.Spec.Type != corev1.ServiceTypeExternalName {
		errs = append(errs, field.Required(spec.Child("ports"), ""))
	}
	switch o.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer:
	case corev1.ServiceTypeExternalName:
		if o.Spec.ExternalName == "" {
			errs = append(errs, field.Required(spec.Child("externalName"), ""))
		}
	default:
		errs = append(errs, field.NotSupported(spec.Child("type"), o.Spec.Type, []corev1.ServiceType{
			corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort}))
	}
	errs = append(errs, metav1validation.ValidateLabels(o.Spec.Selector, spec.Child("selector"))...)
	errs = append(errs, validateServicePorts(o.Spec.Ports, spec.Child("ports"))...)
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
		switch p.Protocol {
		case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
		default:
			errs = append(errs, field.NotSupported(at.Child("protocol"), p.Protocol, []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}))
		}
		if p.TargetPort.Type == intstr.Int {
			errs = append(errs, portNumber(p.TargetPort.IntVal, at.Child("targetPort"))...)
		} else {
			for _, problem := range utilvalidation.IsValidPortName(p.TargetPort.StrVal) {
				errs = append(errs, field.Invalid(at.Child("targetPort"), p.TargetPort.StrVal, problem))
			}
		}
		one := numbered{p.Port, p.Protocol}
		if numbers[one] {
			errs = append(errs, field.Duplicate(at, corev1.ServicePort{Protocol: p.Protocol, Port: p.Port}))
		}
		numbers[one] = true
	}
	return errs
}
