// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func policyPrinters() printers {
	const bindings, hooks, scaler = "Name|Role|Age|+Users|+Groups|+ServiceAccounts", "Name|Webhooks#|Age", "Name|Reference|Targets|MinPods|MaxPods|Replicas|Age"
	return printers{
		"rbac.authorization.k8s.io/v1 RoleBinding": printed(heads(bindings), func(o *rbacv1.RoleBinding) []any {
			return append([]any{o.Name, o.RoleRef.Kind + "/" + o.RoleRef.Name, age(o.CreationTimestamp)}, subjectsOf(o.Subjects)...)
		}),
		"rbac.authorization.k8s.io/v1 ClusterRoleBinding": printed(heads(bindings), func(o *rbacv1.ClusterRoleBinding) []any {
			return append([]any{o.Name, o.RoleRef.Kind + "/" + o.RoleRef.Name, age(o.CreationTimestamp)}, subjectsOf(o.Subjects)...)
		}),
		"coordination.k8s.io/v1 Lease": printed(heads("Name|Holder|Age"), func(o *coordinationv1.Lease) []any {
			return []any{o.Name, orValue(o.Spec.HolderIdentity, ""), age(o.CreationTimestamp)}
		}),
		"policy/v1 PodDisruptionBudget": printed(heads("Name|Min Available|Max Unavailable|Allowed Disruptions#|Age"), func(o *policyv1.PodDisruptionBudget) []any {
			return []any{o.Name, share(o.Spec.MinAvailable), share(o.Spec.MaxUnavailable), int64(o.Status.DisruptionsAllowed), age(o.CreationTimestamp)}
		}),
		"scheduling.k8s.io/v1 PriorityClass": printed(heads("Name|Value#|Global-Default?|Age|PreemptionPolicy"), func(o *schedulingv1.PriorityClass) []any {
			return []any{o.Name, int64(o.Value), o.GlobalDefault, age(o.CreationTimestamp), orValue(o.PreemptionPolicy, "")}
		}),
		"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration": printed(heads(hooks), func(o *admissionv1.ValidatingWebhookConfiguration) []any {
			return []any{o.Name, int64(len(o.Webhooks)), age(o.CreationTimestamp)}
		}),
		"admissionregistration.k8s.io/v1 MutatingWebhookConfiguration": printed(heads(hooks), func(o *admissionv1.MutatingWebhookConfiguration) []any {
			return []any{o.Name, int64(len(o.Webhooks)), age(o.CreationTimestamp)}
		}),
		"autoscaling/v2 HorizontalPodAutoscaler": printed(heads(scaler), autoscalerCells),
		"autoscaling/v1 HorizontalPodAutoscaler": printed(heads(scaler), func(o *autoscalingv1.HorizontalPodAutoscaler) []any {
			newer := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: o.ObjectMeta}
			newer.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference(o.Spec.ScaleTargetRef)
			newer.Spec.MinReplicas, newer.Spec.MaxReplicas, newer.Status.CurrentReplicas = o.Spec.MinReplicas, o.Spec.MaxReplicas, o.Status.CurrentReplicas
			if target := o.Spec.TargetCPUUtilizationPercentage; target != nil {
				metric := &autoscalingv2.ResourceMetricSource{Name: "cpu", Target: autoscalingv2.MetricTarget{AverageUtilization: target}}
				newer.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: metric}}
			}
			return autoscalerCells(newer)
		}),
	}
}

// share returns a count or percentage of Pods in a budget.
func share(of *intstr.IntOrString) string {
	if of == nil {
		return "N/A"
	}
	return of.String()
}

// subjectsOf returns the users, groups and service accounts of a binding.
func subjectsOf(subjects []rbacv1.Subject) []any {
	var users, groups, accounts []string
	for _, s := range subjects {
		switch s.Kind {
		case rbacv1.UserKind:
			users = append(users, s.Name)
		case rbacv1.GroupKind:
			groups = append(groups, s.Name)
		case rbacv1.ServiceAccountKind:
			accounts = append(accounts, s.Namespace+"/"+s.Name)
		}
	}
	return []any{strings.Join(users, ", "), strings.Join(groups, ", "), strings.Join(accounts, ", ")}
}

func autoscalerCells(o *autoscalingv2.HorizontalPodAutoscaler) []any {
	least := cellUnset
	if o.Spec.MinReplicas != nil {
		least = fmt.Sprint(*o.Spec.MinReplicas)
	}
	return []any{o.Name, o.Spec.ScaleTargetRef.Kind + "/" + o.Spec.ScaleTargetRef.Name, targetsOf(o), least, int64(o.Spec.MaxReplicas), int64(o.Status.CurrentReplicas), age(o.CreationTimestamp)}
}

// targetsAtMost is how many metrics a cell shows.
const targetsAtMost = 2

// targetsOf returns the current values and the targets of metrics.
func targetsOf(o *autoscalingv2.HorizontalPodAutoscaler) string {
	var all []string
	for i, spec := range o.Spec.Metrics {
		status := autoscalingv2.MetricStatus{}
		if i < len(o.Status.CurrentMetrics) {
			status = o.Status.CurrentMetrics[i]
		}
		all = append(all, metricOf(spec, status))
	}
	if len(all) > targetsAtMost {
		return fmt.Sprintf("%s + %d more...", strings.Join(all[:targetsAtMost], ", "), len(all)-targetsAtMost)
	}
	return or(strings.Join(all, ", "), cellNone)
}

func metricOf(spec autoscalingv2.MetricSpec, status autoscalingv2.MetricStatus) string {
	var is *autoscalingv2.MetricValueStatus
	switch {
	case spec.Resource != nil:
		if status.Resource != nil {
			is = &status.Resource.Current
		}
		return spec.Resource.Name.String() + ": " + usage(spec.Resource.Target, is)
	case spec.ContainerResource != nil:
		if status.ContainerResource != nil {
			is = &status.ContainerResource.Current
		}
		return spec.ContainerResource.Name.String() + ": " + usage(spec.ContainerResource.Target, is)
	case spec.Pods != nil:
		if status.Pods != nil {
			is = &status.Pods.Current
		}
		return amount(spec.Pods.Target, is, "")
	case spec.Object != nil:
		if status.Object != nil {
			is = &status.Object.Current
		}
		return amount(spec.Object.Target, is, " (avg)")
	case spec.External != nil:
		if status.External != nil {
			is = &status.External.Current
		}
		return amount(spec.External.Target, is, " (avg)")
	}
	return "<unknown type>"
}

// usage returns the target of a resource: an amount, or a percentage.
func usage(target autoscalingv2.MetricTarget, is *autoscalingv2.MetricValueStatus) string {
	if target.AverageValue != nil {
		return amount(target, is, "")
	}
	now, wanted := cellUnknown, "<auto>"
	if is != nil && is.AverageUtilization != nil {
		now = fmt.Sprintf("%d%%", *is.AverageUtilization)
	}
	if target.AverageUtilization != nil {
		wanted = fmt.Sprintf("%d%%", *target.AverageUtilization)
	}
	return now + "/" + wanted
}

// amount returns the target of a metric, in total or for each Pod.
func amount(target autoscalingv2.MetricTarget, is *autoscalingv2.MetricValueStatus, each string) string {
	now := cellUnknown
	if target.AverageValue != nil {
		if is != nil && is.AverageValue != nil {
			now = is.AverageValue.String()
		}
		return now + "/" + target.AverageValue.String() + each
	}
	if is != nil && is.Value != nil {
		now = is.Value.String()
	}
	return now + "/" + target.Value.String()
}
