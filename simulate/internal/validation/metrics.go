// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateMetrics looks at what an autoscaler goes by.
func validateMetrics(metrics []autoscalingv2.MetricSpec, path *field.Path) (errs field.ErrorList) {
	for i := range metrics {
		errs = append(errs, validateMetric(&metrics[i], path.Index(i))...)
	}
	return errs
}

func validateMetric(m *autoscalingv2.MetricSpec, path *field.Path) (errs field.ErrorList) {
	if m.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "must specify a metric source type"))
	}
	if wrong := supported(m.Type, path.Child("type"), autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType,
		autoscalingv2.ObjectMetricSourceType, autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType); len(wrong) > 0 {
		return append(errs, wrong...)
	}
	at := path.Child(strings.ToLower(string(m.Type[:1])) + string(m.Type[1:]))
	if map[autoscalingv2.MetricSourceType]bool{
		autoscalingv2.ResourceMetricSourceType:          m.Resource == nil,
		autoscalingv2.ContainerResourceMetricSourceType: m.ContainerResource == nil,
		autoscalingv2.PodsMetricSourceType:              m.Pods == nil,
		autoscalingv2.ObjectMetricSourceType:            m.Object == nil,
		autoscalingv2.ExternalMetricSourceType:          m.External == nil,
	}[m.Type] {
		return append(errs, field.Required(at, "must populate information for the given metric source"))
	}
	needs := func(value string, path *field.Path, what string) {
		if value == "" {
			errs = append(errs, field.Required(path, "must specify "+what))
		}
	}
	switch m.Type {
	case autoscalingv2.ResourceMetricSourceType:
		needs(string(m.Resource.Name), at.Child("name"), "a resource name")
		errs = append(errs, validateShare(&m.Resource.Target, at.Child("target"))...)
	case autoscalingv2.ContainerResourceMetricSourceType:
		needs(string(m.ContainerResource.Name), at.Child("name"), "a resource name")
		needs(m.ContainerResource.Container, at.Child("container"), "a container")
		errs = append(errs, validateShare(&m.ContainerResource.Target, at.Child("target"))...)
	case autoscalingv2.PodsMetricSourceType:
		needs(m.Pods.Metric.Name, at.Child("metric", "name"), "a metric name")
		errs = append(errs, validateTarget(&m.Pods.Target, at.Child("target"))...)
		if m.Pods.Target.AverageValue == nil || m.Pods.Target.AverageValue.Sign() != 1 && len(errs) == 0 {
			errs = append(errs, field.Required(at.Child("target", "averageValue"), "must specify a positive target averageValue"))
		}
	case autoscalingv2.ObjectMetricSourceType:
		errs = append(errs, required(at.Child("describedObject"), "kind", m.Object.DescribedObject.Kind)...)
		errs = append(errs, required(at.Child("describedObject"), "name", m.Object.DescribedObject.Name)...)
		needs(m.Object.Metric.Name, at.Child("metric", "name"), "a metric name")
		errs = append(errs, validateTarget(&m.Object.Target, at.Child("target"))...)
		if m.Object.Target.Value == nil && m.Object.Target.AverageValue == nil {
			errs = append(errs, field.Required(at.Child("target", "averageValue"), "must set either a target value or averageValue"))
		}
	case autoscalingv2.ExternalMetricSourceType:
		needs(m.External.Metric.Name, at.Child("metric", "name"), "a metric name")
		t, target := &m.External.Target, at.Child("target")
		errs = append(errs, validateTarget(t, target)...)
		errs = append(errs, oneOf(t.Value != nil, t.AverageValue != nil,
			field.Required(target.Child("averageValue"), "must set either a target value for metric or a per-pod target"),
			field.Forbidden(target.Child("value"), "may not set both a target value for metric and a per-pod target"))...)
	}
	return errs
}

// oneOf returns none if neither of two fields is set, and both if both are.
func oneOf(a, b bool, none, both *field.Error) field.ErrorList {
	switch {
	case !a && !b:
		return field.ErrorList{none}
	case a && b:
		return field.ErrorList{both}
	}
	return nil
}

// validateTarget is what holds for the targets of all metrics.
func validateTarget(t *autoscalingv2.MetricTarget, path *field.Path) (errs field.ErrorList) {
	switch t.Type {
	case "":
		errs = append(errs, field.Required(path.Child("type"), "must specify a metric target type"))
	case autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType:
	default:
		errs = append(errs, field.Invalid(path.Child("type"), t.Type, "must be either Utilization, Value, or AverageValue"))
	}
	if t.Value != nil && t.Value.Sign() != 1 {
		errs = append(errs, field.Invalid(path.Child("value"), t.Value.String(), "must be positive"))
	}
	if t.AverageValue != nil && t.AverageValue.Sign() != 1 {
		errs = append(errs, field.Invalid(path.Child("averageValue"), t.AverageValue.String(), "must be positive"))
	}
	return errs
}

// validateShare is the target of a metric of resources: a share of what is asked
// for, or an amount.
func validateShare(t *autoscalingv2.MetricTarget, path *field.Path) (errs field.ErrorList) {
	errs = validateTarget(t, path)
	share := path.Child("averageUtilization")
	if t.AverageUtilization != nil && *t.AverageUtilization < 1 {
		errs = append(errs, field.Invalid(share, *t.AverageUtilization, "must be greater than 0"))
	}
	return append(errs, oneOf(t.AverageUtilization != nil, t.AverageValue != nil,
		field.Required(share, "must set either a target raw value or a target utilization"),
		field.Forbidden(path.Child("averageValue"), "may not set both a target raw value and a target utilization"))...)
}

// How long an autoscaler may look back, in seconds.
const (
	longestWindow = 3600
	longestPeriod = 1800
)

func validateBehavior(rules *autoscalingv2.HPAScalingRules, path *field.Path) (errs field.ErrorList) {
	if rules == nil {
		return nil
	}
	window := path.Child("stabilizationWindowSeconds")
	switch s := rules.StabilizationWindowSeconds; {
	case s != nil && *s < 0:
		errs = append(errs, field.Invalid(window, *s, "must be greater than or equal to zero"))
	case s != nil && *s > longestWindow:
		errs = append(errs, field.Invalid(window, *s, "must be less than or equal to 3600"))
	}
	if t := rules.Tolerance; t != nil && t.Sign() < 0 {
		errs = append(errs, field.Invalid(path.Child("tolerance"), t.String(), "must be greater than or equal to 0"))
	}
	errs = append(errs, supportedIf(rules.SelectPolicy, path.Child("selectPolicy"), autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect)...)
	if len(rules.Policies) == 0 {
		errs = append(errs, field.Required(path.Child("policies"), "must specify at least one Policy"))
	}
	for i, p := range rules.Policies {
		at := path.Child("policies").Index(i)
		errs = append(errs, supported(p.Type, at.Child("type"), autoscalingv2.PercentScalingPolicy, autoscalingv2.PodsScalingPolicy)...)
		if p.Value <= 0 {
			errs = append(errs, field.Invalid(at.Child("value"), p.Value, "must be greater than zero"))
		}
		switch {
		case p.PeriodSeconds <= 0:
			errs = append(errs, field.Invalid(at.Child("periodSeconds"), p.PeriodSeconds, "must be greater than zero"))
		case p.PeriodSeconds > longestPeriod:
			errs = append(errs, field.Invalid(at.Child("periodSeconds"), p.PeriodSeconds, "must be less than or equal to 1800"))
		}
	}
	return errs
}
