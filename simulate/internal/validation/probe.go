// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// probeAction is what a probe does, or a container when it starts or stops.
type probeAction struct {
	exec  *corev1.ExecAction
	http  *corev1.HTTPGetAction
	tcp   *corev1.TCPSocketAction
	grpc  *corev1.GRPCAction
	sleep *corev1.SleepAction
}

func (h probeAction) validate(grace int64, path *field.Path) (errs field.ErrorList) {
	given := false
	one := func(set bool, name string, rule func(at *field.Path) field.ErrorList) {
		switch {
		case !set:
		case given:
			errs = append(errs, field.Forbidden(path.Child(name), "may not specify more than 1 handler type"))
		default:
			given = true
			errs = append(errs, rule(path.Child(name))...)
		}
	}
	one(h.exec != nil, "exec", func(at *field.Path) field.ErrorList {
		if len(h.exec.Command) == 0 {
			return field.ErrorList{field.Required(at.Child("command"), "")}
		}
		return nil
	})
	one(h.http != nil, "httpGet", func(at *field.Path) field.ErrorList { return validateHTTPGet(h.http, at) })
	one(h.tcp != nil, "tcpSocket", func(at *field.Path) field.ErrorList { return portOrName(h.tcp.Port, at.Child("port")) })
	one(h.grpc != nil, "grpc", func(at *field.Path) field.ErrorList { return portNumber(h.grpc.Port, at.Child("port")) })
	one(h.sleep != nil, "sleep", func(at *field.Path) field.ErrorList {
		if h.sleep.Seconds < 0 || h.sleep.Seconds > grace {
			return field.ErrorList{field.Invalid(at, h.sleep.Seconds, fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", grace))}
		}
		return nil
	})
	if !given {
		errs = append(errs, field.Required(path, "must specify a handler type"))
	}
	return errs
}

func validateHTTPGet(h *corev1.HTTPGetAction, path *field.Path) (errs field.ErrorList) {
	errs = portOrName(h.Port, path.Child("port"))
	errs = append(errs, supported(h.Scheme, path.Child("scheme"), corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
	for _, header := range h.HTTPHeaders {
		errs = append(errs, invalids(path.Child("httpHeaders"), header.Name, utilvalidation.IsHTTPHeaderName(header.Name))...)
	}
	return errs
}

// portOrName holds a port that may be named.
func portOrName(port intstr.IntOrString, path *field.Path) field.ErrorList {
	if port.Type == intstr.Int {
		return portNumber(port.IntVal, path)
	}
	return invalids(path, port.StrVal, utilvalidation.IsValidPortName(port.StrVal))
}

// validateProbe holds a probe. once says why one success must be enough, ungraced
// why the probe has no grace period; empty: it need not be, it may have one.
func validateProbe(p *corev1.Probe, once, ungraced string, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := probeAction{p.Exec, p.HTTPGet, p.TCPSocket, p.GRPC, nil}.validate(0, path)
	errs = append(errs, nonNegative(path, "initialDelaySeconds", p.InitialDelaySeconds)...)
	errs = append(errs, nonNegative(path, "timeoutSeconds", p.TimeoutSeconds)...)
	errs = append(errs, nonNegative(path, "periodSeconds", p.PeriodSeconds)...)
	errs = append(errs, nonNegative(path, "successThreshold", p.SuccessThreshold)...)
	errs = append(errs, nonNegative(path, "failureThreshold", p.FailureThreshold)...)
	grace := path.Child("terminationGracePeriodSeconds")
	if s := p.TerminationGracePeriodSeconds; s != nil {
		if *s <= 0 {
			errs = append(errs, field.Invalid(grace, *s, "must be greater than 0"))
		}
		if ungraced != "" {
			errs = append(errs, field.Invalid(grace, *s, ungraced))
		}
	}
	if once != "" && p.SuccessThreshold != 1 {
		errs = append(errs, field.Invalid(path.Child("successThreshold"), p.SuccessThreshold, once))
	}
	return errs
}
