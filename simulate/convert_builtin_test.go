// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/autoscaling"
)

var (
	olderEvents = schema.GroupResource{Resource: "events"}
	newerEvents = schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
)

// What is put, found, selected or removed as an Event of one group is one of the
// other.
func TestServer_EventsOfBothGroupsAreOne(t *testing.T) {
	s := New(Options{})
	about := corev1.ObjectReference{Kind: "Pod", Name: "p"}
	for _, put := range []runtime.Object{
		&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Regarding: about, Note: "n", ReportingController: "c"},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}, InvolvedObject: about, Message: "n", ReportingController: "c"},
	} {
		if _, err := s.Put(put); err != nil {
			t.Fatal(err)
		}
	}
	for path, check := range map[string]func(text []byte) (n int, notes string, err error){
		"/api/v1/events?fieldSelector=involvedObject.name%3Dp,reportingComponent%3Dc": func(text []byte) (int, string, error) {
			var list corev1.EventList
			err := json.Unmarshal(text, &list)
			notes := ""
			for _, e := range list.Items {
				notes += e.Message + e.InvolvedObject.Kind + e.ReportingController
			}
			return len(list.Items), notes, err
		},
		"/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Dp,reportingController%3Dc": func(text []byte) (int, string, error) {
			var list eventsv1.EventList
			err := json.Unmarshal(text, &list)
			notes := ""
			for _, e := range list.Items {
				notes += e.Note + e.Regarding.Kind + e.ReportingController
			}
			return len(list.Items), notes, err
		},
	} {
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if n, notes, err := check(answer.Body.Bytes()); err != nil || n != 2 || notes != "nPodcnPodc" {
			t.Errorf("%s: got %d events of %q (%v), want two of nPodc: %s", path, n, notes, err, answer.Body)
		}
	}
	for r, name := range map[string]string{"": "a", "events.k8s.io": "b"} {
		resource := olderEvents
		resource.Group = r
		if err := s.Remove(resource, types.NamespacedName{Namespace: "default", Name: name}); err != nil {
			t.Error(err)
		}
	}
	if here, there := s.Objects(olderEvents), s.Objects(newerEvents); len(here) != 0 || len(there) != 0 {
		t.Errorf("got %d and %d events, want none: they were removed", len(here), len(there))
	}
}

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
	older := autoscaling.Older(o)
	if busy := older.Spec.TargetCPUUtilizationPercentage; busy == nil || *busy != 7 || len(older.Annotations) != 5 {
		t.Errorf("as v1 it is %+v with %v, want a target of 7 and four annotations beside its own", older.Spec, older.Annotations)
	}
	if back := autoscaling.Newer(older); !equality.Semantic.DeepEqual(back, o) {
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
	older := autoscaling.Older(o)
	if busy := older.Spec.TargetCPUUtilizationPercentage; busy == nil || *busy != 7 || len(older.Annotations) != 0 {
		t.Errorf("as v1 it is %+v with %v, want a target of 7 and no annotations", older.Spec, older.Annotations)
	}
}

// An annotation that tells of no rule is no behavior.
func TestAutoscaler_EmptyBehaviorIsNone(t *testing.T) {
	for _, text := range []string{"{}", "null", "{"} {
		o := &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"autoscaling.alpha.kubernetes.io/behavior": text}}}
		if newer := autoscaling.Newer(o); newer.Spec.Behavior != nil || len(newer.Annotations) != 0 {
			t.Errorf("%s: got behavior %+v and annotations %v, want neither", text, newer.Spec.Behavior, newer.Annotations)
		}
	}
}

// Events go in both of their groups, whichever is named, and each is told of.
func TestServer_EventsAreUninstalledInBothGroups(t *testing.T) {
	for _, r := range []schema.GroupResource{olderEvents, newerEvents} {
		s := New(Options{})
		if _, err := s.Put(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, InvolvedObject: corev1.ObjectReference{Namespace: "default"}}); err != nil {
			t.Fatal(err)
		}
		before := s.Revision()
		s.Uninstall(r)
		if left := s.Objects(olderEvents); len(left) != 0 || s.Revision() == before {
			t.Errorf("Uninstall(%s) leaves %d events at revision %d, want none at another than %d", r, len(left), s.Revision(), before)
		}
		for _, path := range []string{"/api/v1/events", "/apis/events.k8s.io/v1/events"} {
			answer := httptest.NewRecorder()
			if s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil)); answer.Code != http.StatusNotFound {
				t.Errorf("after Uninstall(%s) %s is answered %d, want 404", r, path, answer.Code)
			}
		}
	}
}
