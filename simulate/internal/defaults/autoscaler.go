// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"encoding/json"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Annotations of a v1 autoscaler that hold what only v2 has fields for.
const (
	scalerMetrics    = "autoscaling.alpha.kubernetes.io/metrics"
	scalerCurrent    = "autoscaling.alpha.kubernetes.io/current-metrics"
	scalerConditions = "autoscaling.alpha.kubernetes.io/conditions"
	scalerBehavior   = "autoscaling.alpha.kubernetes.io/behavior"
)

// AutoscalerToV2 converts a v1 autoscaler to v2, without its defaults. It ignores annotations that
// cannot be parsed.
func AutoscalerToV2(o *autoscalingv1.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscaler {
	out := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: o.ObjectMeta}
	out.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(o.Spec.ScaleTargetRef), MinReplicas: o.Spec.MinReplicas, MaxReplicas: o.Spec.MaxReplicas,
	}
	out.Status = autoscalingv2.HorizontalPodAutoscalerStatus{
		ObservedGeneration: o.Status.ObservedGeneration, LastScaleTime: o.Status.LastScaleTime,
		CurrentReplicas: o.Status.CurrentReplicas, DesiredReplicas: o.Status.DesiredReplicas,
	}
	annotations := maps.Clone(o.Annotations)
	// said removes an annotation, decodes it into of, and reports whether it had a value.
	said := func(name string, of any) bool {
		text, ok := annotations[name]
		delete(annotations, name)
		return ok && json.Unmarshal([]byte(text), of) == nil
	}
	var metrics []autoscalingv1.MetricSpec
	if said(scalerMetrics, &metrics) {
		for i := range metrics {
			out.Spec.Metrics = append(out.Spec.Metrics, newerMetric(&metrics[i]))
		}
	}
	if busy := o.Spec.TargetCPUUtilizationPercentage; busy != nil {
		out.Spec.Metrics = append(out.Spec.Metrics, autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: busy}}})
	}
	var behavior autoscalingv2.HorizontalPodAutoscalerBehavior
	if said(scalerBehavior, &behavior) && behavior != (autoscalingv2.HorizontalPodAutoscalerBehavior{}) {
		out.Spec.Behavior = &behavior
	}
	var current []autoscalingv1.MetricStatus
	if said(scalerCurrent, &current) {
		for i := range current {
			out.Status.CurrentMetrics = append(out.Status.CurrentMetrics, newerMetricStatus(&current[i]))
		}
	} else if busy := o.Status.CurrentCPUUtilizationPercentage; busy != nil {
		out.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricStatus{
			Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: busy}}}}
	}
	var conditions []autoscalingv2.HorizontalPodAutoscalerCondition
	if said(scalerConditions, &conditions) {
		out.Status.Conditions = conditions
	}
	out.Annotations = annotations
	return out
}

// AutoscalerToV1 converts a v2 autoscaler to v1.
func AutoscalerToV1(o *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv1.HorizontalPodAutoscaler {
	out := &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: o.ObjectMeta}
	out.Spec = autoscalingv1.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(o.Spec.ScaleTargetRef), MinReplicas: o.Spec.MinReplicas, MaxReplicas: o.Spec.MaxReplicas,
	}
	out.Status = autoscalingv1.HorizontalPodAutoscalerStatus{
		ObservedGeneration: o.Status.ObservedGeneration, LastScaleTime: o.Status.LastScaleTime,
		CurrentReplicas: o.Status.CurrentReplicas, DesiredReplicas: o.Status.DesiredReplicas,
	}
	var metrics []autoscalingv1.MetricSpec
	for i := range o.Spec.Metrics {
		m := &o.Spec.Metrics[i]
		if m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil && m.Resource.Name == corev1.ResourceCPU && m.Resource.Target.AverageUtilization != nil {
			if out.Spec.TargetCPUUtilizationPercentage == nil { // the first of two, as on a real server
				out.Spec.TargetCPUUtilizationPercentage = m.Resource.Target.AverageUtilization
			}
			continue
		}
		metrics = append(metrics, olderMetric(m))
	}
	var current []autoscalingv1.MetricStatus
	for i := range o.Status.CurrentMetrics {
		m := &o.Status.CurrentMetrics[i]
		if m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil && m.Resource.Name == corev1.ResourceCPU {
			out.Status.CurrentCPUUtilizationPercentage = m.Resource.Current.AverageUtilization
		}
		current = append(current, olderMetricStatus(m))
	}
	annotations := maps.Clone(o.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotate := func(name string, there bool, what any) {
		delete(annotations, name)
		if text, err := json.Marshal(what); there && err == nil {
			annotations[name] = string(text)
		}
	}
	annotate(scalerMetrics, len(metrics) > 0, metrics)
	annotate(scalerCurrent, len(current) > 0, current)
	annotate(scalerConditions, len(o.Status.Conditions) > 0, o.Status.Conditions)
	annotate(scalerBehavior, o.Spec.Behavior != nil, newAnnotatedBehavior(o.Spec.Behavior))
	out.Annotations = annotations
	return out
}

// annotatedBehavior is the behavior in an annotation, with the names of Go fields.
type annotatedBehavior struct{ ScaleUp, ScaleDown *annotatedRules }

type annotatedRules struct {
	StabilizationWindowSeconds *int32
	SelectPolicy               *autoscalingv2.ScalingPolicySelect
	Policies                   []annotatedPolicy
	Tolerance                  *resource.Quantity
}

type annotatedPolicy struct {
	Type                 autoscalingv2.HPAScalingPolicyType
	Value, PeriodSeconds int32
}

func newAnnotatedBehavior(b *autoscalingv2.HorizontalPodAutoscalerBehavior) *annotatedBehavior {
	if b == nil {
		return nil
	}
	rules := func(r *autoscalingv2.HPAScalingRules) *annotatedRules {
		if r == nil {
			return nil
		}
		out := &annotatedRules{StabilizationWindowSeconds: r.StabilizationWindowSeconds, SelectPolicy: r.SelectPolicy, Tolerance: r.Tolerance}
		for _, p := range r.Policies {
			out.Policies = append(out.Policies, annotatedPolicy(p))
		}
		return out
	}
	return &annotatedBehavior{rules(b.ScaleUp), rules(b.ScaleDown)}
}
