// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

var (
	coreEvents  = schema.GroupResource{Resource: "events"}
	laterEvents = schema.GroupResource{Group: "events.k8s.io", Resource: "events"}

	// eventFields maps the fields of an Event to their names in its later group.
	eventFields = map[string]string{
		"involvedObject": "regarding", "message": "note", "reportingComponent": "reportingController",
		"source": "deprecatedSource", "count": "deprecatedCount",
		"firstTimestamp": "deprecatedFirstTimestamp", "lastTimestamp": "deprecatedLastTimestamp",
	}
	// eventReporters are always present in the older group, and omitted if empty in the
	// later one.
	eventReporters = []string{"reportingComponent", "reportingController", "reportingInstance"}
)

// convertEvent converts an Event between its two groups.
func convertEvent(obj *object.Object, _, to *Kind) (*object.Object, error) {
	fields := Loose(obj, to).Object
	for _, name := range eventReporters {
		if fields[name] == "" {
			delete(fields, name)
		}
	}
	later := to.Group == laterEvents.Group
	for was, is := range eventFields {
		if !later {
			was, is = is, was
		}
		if value, ok := fields[was]; ok {
			delete(fields, was)
			fields[is] = value
		}
	}
	for _, name := range []string{"reportingComponent", "reportingInstance"} {
		if _, ok := fields[name]; !ok && !later {
			fields[name] = ""
		}
	}
	return &object.Object{Fields: fields, Corrupt: obj.Corrupt}, nil
}

// autoscalers are stored as v2. What v1 has no fields for is in annotations there, as on a
// real server.
var autoscalers = schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}

// convertAutoscaler converts an autoscaler between its versions.
func convertAutoscaler(obj *object.Object, _, to *Kind) (*object.Object, error) {
	var out runtime.Object
	var annotations map[string]string
	if to.Version == "v1" {
		in, err := object.TypedOf[autoscalingv2.HorizontalPodAutoscaler](obj)
		if err != nil {
			return nil, err
		}
		older := defaults.AutoscalerToV1(in)
		out, annotations = older, older.Annotations
	} else {
		in, err := object.TypedOf[autoscalingv1.HorizontalPodAutoscaler](obj)
		if err != nil {
			return nil, err
		}
		newer := defaults.AutoscalerToV2(in)
		defaults.Autoscaler(newer)
		out, annotations = newer, newer.Annotations
	}
	made, err := runtime.DefaultUnstructuredConverter.ToUnstructured(out)
	if err != nil {
		return nil, err
	}
	fields := Loose(obj, to).Object
	for _, part := range []string{"spec", "status"} {
		if _, ok := fields[part]; ok {
			fields[part] = made[part]
		}
	}
	metadata, _ := fields["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	delete(metadata, "annotations")
	fields["metadata"] = metadata
	if len(annotations) > 0 {
		jsontree.SetIn(fields, textsOf(annotations), "metadata", "annotations")
	}
	return &object.Object{Fields: fields, Corrupt: obj.Corrupt}, nil
}

func textsOf(of map[string]string) map[string]any {
	out := make(map[string]any, len(of))
	for name, text := range of {
		out[name] = text
	}
	return out
}
