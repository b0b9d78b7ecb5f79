// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package defaults_test

import (
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/defaults"
)

// An autoscaler of v2 comes back from v1 as it was, and leaves no annotation behind.
func TestAutoscaler_ComesBackFromTheOlderVersion(t *testing.T) {
	of := func(text string) *resource.Quantity { return new(resource.MustParse(text)) }
	named := autoscalingv2.MetricIdentifier{Name: "m", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
	what := autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"}
	share := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(7))}
	amount := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: of("3")}
	o := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "h", Annotations: map[string]string{"mine": "stays"}}}
	o.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: what, MinReplicas: new(int32(2)), MaxReplicas: 5,
		Metrics: []autoscalingv2.MetricSpec{
			{Type: "Object", Object: &autoscalingv2.ObjectMetricSource{DescribedObject: what, Metric: named, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: of("9")}}},
			{Type: "Pods", Pods: &autoscalingv2.PodsMetricSource{Metric: named, Target: amount}},
			{Type: "External", External: &autoscalingv2.ExternalMetricSource{Metric: named, Target: amount}},
			{Type: "ContainerResource", ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: "memory", Container: "c", Target: amount}},
			{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{Name: "cpu", Target: share}}, // the last, as v1 has it
		},
		Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleUp:   &autoscalingv2.HPAScalingRules{Tolerance: of("100m"), Policies: []autoscalingv2.HPAScalingPolicy{{Type: "Pods", Value: 1, PeriodSeconds: 2}}},
			ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(3)), SelectPolicy: new(autoscalingv2.DisabledPolicySelect)},
		},
	}
	o.Status = autoscalingv2.HorizontalPodAutoscalerStatus{
		ObservedGeneration: new(int64(4)), CurrentReplicas: 1, DesiredReplicas: 2,
		CurrentMetrics: []autoscalingv2.MetricStatus{
			{Type: "Object", Object: &autoscalingv2.ObjectMetricStatus{DescribedObject: what, Metric: named, Current: autoscalingv2.MetricValueStatus{Value: of("9")}}},
			{Type: "Pods", Pods: &autoscalingv2.PodsMetricStatus{Metric: named, Current: autoscalingv2.MetricValueStatus{AverageValue: of("8")}}},
			{Type: "External", External: &autoscalingv2.ExternalMetricStatus{Metric: named, Current: autoscalingv2.MetricValueStatus{Value: of("1"), AverageValue: of("8")}}},
			{Type: "ContainerResource", ContainerResource: &autoscalingv2.ContainerResourceMetricStatus{Name: "cpu", Container: "c", Current: autoscalingv2.MetricValueStatus{AverageValue: of("8")}}},
			{Type: "Resource", Resource: &autoscalingv2.ResourceMetricStatus{Name: "cpu", Current: autoscalingv2.MetricValueStatus{AverageUtilization: new(int32(6)), AverageValue: of("8")}}},
		},
		Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: "AbleToScale", Status: "True", Reason: "R"}},
	}
	older := defaults.AutoscalerToV1(o)
	if busy := older.Spec.TargetCPUUtilizationPercentage; busy == nil || *busy != 7 || len(older.Annotations) != 5 {
		t.Errorf("as v1 it is %+v with %v, want a target of 7 and four annotations beside its own", older.Spec, older.Annotations)
	}
	if back := defaults.AutoscalerToV2(older); !equality.Semantic.DeepEqual(back, o) {
		t.Errorf("it came back as\n%+v\nwant\n%+v", back, o)
	}
}

// Of two targets for the CPU v1 has the first, as a real server does.
func TestAutoscaler_FirstTargetForTheCPUIsTheOlderVersions(t *testing.T) {
	o := &autoscalingv2.HorizontalPodAutoscaler{}
	for _, busy := range []int32{7, 8} {
		o.Spec.Metrics = append(o.Spec.Metrics, autoscalingv2.MetricSpec{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{
			Name: "cpu", Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(busy)}}})
	}
	older := defaults.AutoscalerToV1(o)
	if busy := older.Spec.TargetCPUUtilizationPercentage; busy == nil || *busy != 7 || len(older.Annotations) != 0 {
		t.Errorf("as v1 it is %+v with %v, want a target of 7 and no annotations", older.Spec, older.Annotations)
	}
}

// An annotation that tells of no rule is no behavior.
func TestAutoscaler_EmptyBehaviorIsNone(t *testing.T) {
	for _, text := range []string{"{}", "null", "{"} {
		o := &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"autoscaling.alpha.kubernetes.io/behavior": text}}}
		if newer := defaults.AutoscalerToV2(o); newer.Spec.Behavior != nil || len(newer.Annotations) != 0 {
			t.Errorf("%s: got behavior %+v and annotations %v, want neither", text, newer.Spec.Behavior, newer.Annotations)
		}
	}
}
