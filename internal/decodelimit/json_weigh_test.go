// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decodelimit_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/internal/testing/hostile"
)

// schema has its own decoding and contains itself, like the schemas of CRDs.
type schema struct {
	Name, Title, Pattern, Format, Type, Ref, Version string
	Properties                                       map[string]schema
	Items                                            *orBool
	Enum                                             []json.RawMessage
}

type orBool struct {
	Allows bool
	Schema *schema
}

func (o *orBool) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &o.Schema) }

// odd has a field of each shape.
type odd struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	*corev1.PodIP
	Pods     []corev1.Pod                   `json:"pods"`
	Pointers []**corev1.Container           `json:"pointers"`
	Map      map[string]corev1.Container    `json:"map"`
	Maps     map[string]map[string][]string `json:"maps"`
	Numbers  map[int]corev1.Container       `json:"numbers"`
	Array    [4]corev1.Container            `json:"array"`
	Any      any                            `json:"any"`
	Ports    []intstr.IntOrString           `json:"ports"`
	Times    map[string]metav1.Time         `json:"times"`
	Schema   *schema                        `json:"schema"`
	Schemas  []orBool                       `json:"schemas"`
	Quoted   int64                          `json:"quoted,string"`
	Bytes    []byte                         `json:"bytes"`
	Self     *odd                           `json:"self"`
	Hidden   []corev1.Pod                   `json:"-"`
}

const head = `"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b"}`

var kinds = []struct {
	name  string
	empty func() any
	paths []string
}{
	{"Pod", func() any { return &corev1.Pod{} }, []string{
		"spec.containers", "spec.containers[].env", "spec.containers[].resources.limits", "spec.nodeSelector", "spec.volumes", "metadata.annotations",
		"metadata.managedFields", "metadata.managedFields[].fieldsV1", "status.conditions", "unknown", "spec",
	}},
	{"ConfigMap", func() any { return &corev1.ConfigMap{} }, []string{"data", "binaryData", "data.a", "immutable"}},
	{"Deployment", func() any { return &appsv1.Deployment{} }, []string{"spec.template.spec.initContainers", "spec.selector.matchExpressions"}},
	{"Ingress", func() any { return &networkingv1.Ingress{} }, []string{"spec.rules", "spec.rules[].http.paths"}},
	{"odd", func() any { return &odd{} }, []string{
		"pods", "pointers", "map", "maps", "maps.a", "numbers", "array", "any", "ports", "times", "schema.Properties", "schema.items", "schema", "schemas",
		"quoted", "bytes", "self.self.self", "self.any", "self.map", "ip", "hidden", "schema.Enum",
	}},
	{"unstructured", func() any { return &unstructured.Unstructured{} }, []string{"spec", "spec.a"}},
	{"map", func() any { return &map[string]any{} }, []string{"spec"}},
}

// allocated returns what f allocates, plus a little from the rest of the
// process.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// noise allows for allocations of the rest of the process and the fixed cost of
// decoding.
const noise = 16 << 10

func TestPlan_NeverWeighsLessThanDecodingAllocates_H7(t *testing.T) {
	const size = 20 << 10
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			into := kind.empty()
			plan := decodelimit.JSONPlanOf(reflect.TypeOf(into))
			_ = kjson.UnmarshalCaseSensitivePreserveInts([]byte("{"+head+"}"), kind.empty()) // caches the type's fields
			for _, input := range hostile.Objects(size, head, kind.paths...) {
				w, err := plan.Weigh(input.Text, decodelimit.Unlimited, nil)
				if errors.Is(err, decodelimit.ErrTooDeep) {
					continue
				}
				if err != nil {
					t.Errorf("%s: %v, want a weight", input.Name, err)
				}
				if bound := plan.Bound(input.Text); bound < w.Decoded {
					t.Errorf("%s: it weighs %d, which is more than the bound of %d", input.Name, w.Decoded, bound)
				}
				var decoded any
				took := allocated(func() {
					decoded = kind.empty()
					_ = kjson.UnmarshalCaseSensitivePreserveInts(input.Text, decoded)
				})
				if took > w.Decoded+noise {
					t.Errorf("%s: %d bytes are allocated for %d, and it weighs %d", input.Name, took, len(input.Text), w.Decoded)
				}
				if took > 128<<10 && w.Decoded > 40*took {
					t.Errorf("%s: %d bytes are allocated, and it weighs %d, which refuses what is harmless", input.Name, took, w.Decoded)
				}
				var tree any
				if took := allocated(func() { _ = kjson.UnmarshalCaseSensitivePreserveInts(input.Text, &tree) }); took > w.Tree+noise {
					t.Errorf("%s: the tree takes %d bytes, and it weighs %d", input.Name, took, w.Tree)
				}
				text, err := json.Marshal(decoded)
				if err != nil {
					continue // the type itself rejects the value
				}
				if int64(len(text)) > w.Encoded+noise/32 {
					t.Errorf("%s: it is encoded in %d bytes, and %d are estimated", input.Name, len(text), w.Encoded)
				}
				tree = nil
				if took := allocated(func() { _ = kjson.UnmarshalCaseSensitivePreserveInts(text, &tree) }); took > w.Tree+w.Filled+noise {
					t.Errorf("%s: what it is encoded as takes %d bytes, and %d are estimated", input.Name, took, w.Tree+w.Filled)
				}
			}
		})
	}
}

func TestPlan_StopsAtTheLimit_H7(t *testing.T) {
	const limit = 1 << 20
	plan := decodelimit.JSONPlanOf(reflect.TypeFor[*corev1.Pod]())
	bomb := `{"spec":{"containers":[{}` + strings.Repeat(",{}", 1<<20) + `]}}`
	took := allocated(func() {
		w, err := plan.Weigh([]byte(bomb), limit, nil)
		if !errors.Is(err, decodelimit.ErrTooHeavy) || w.Values > 10_000 {
			t.Errorf("weighed %+v, %v; want an end soon after %d bytes", w, err, limit)
		}
	})
	if took > 4*int64(len(bomb)) {
		t.Errorf("weighing allocates %d bytes", took)
	}
}

func TestPlan_DecodesRawValuesAlso(t *testing.T) {
	type envelope struct {
		Request *struct {
			Object json.RawMessage `json:"object"`
		} `json:"request"`
	}
	plain := decodelimit.JSONPlanOf(reflect.TypeFor[envelope]())
	text := []byte(`{"request":{"object":{"spec":{"containers":[{},{},{},{},{},{},{},{}]}}}}`)
	before, err := plain.Weigh(text, decodelimit.Unlimited, nil)
	if err != nil || before.Decoded > 3000 {
		t.Errorf("raw: %+v, %v; want the bytes alone", before, err)
	}
	pod := decodelimit.JSONPlanOf(reflect.TypeFor[*corev1.Pod]())
	after, err := plain.With(pod, "request", "object").Weigh(text, decodelimit.Unlimited, nil)
	if size := int64(reflect.TypeFor[corev1.Container]().Size()); err != nil || after.Decoded < before.Decoded+8*size {
		t.Errorf("with the type: %+v, %v; want more than eight containers of %d bytes", after, err, size)
	}
	again, _ := plain.Weigh(text, decodelimit.Unlimited, nil)
	if again != before {
		t.Errorf("the plan that it was made of has changed: %+v, was %+v", again, before)
	}
}

func TestPlan_WhatIsNoJSONHasNoWeight(t *testing.T) {
	for _, input := range hostile.Garbage() {
		_, err := decodelimit.AnyJSON().Weigh(input.Text, decodelimit.Unlimited, nil)
		if json.Valid(input.Text) && err != nil {
			t.Errorf("%s: %v, want a weight", input.Name, err)
		}
	}
	for _, text := range []string{"", "{", "[", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `[1`, `[1 2]`, `{1:2}`, `"`, `"\`, "{}{}", "}", `{"a" 1}`} {
		if _, err := decodelimit.AnyJSON().Weigh([]byte(text), decodelimit.Unlimited, nil); err == nil {
			t.Errorf("%q has a weight", text)
		}
	}
}

// Every text that the decoder accepts has a weight, which includes its memory.
func FuzzPlan_Weighs(f *testing.F) {
	for _, input := range append(hostile.Objects(64, head, "pods", "map", "any", "schema.items", "array"), hostile.Garbage()...) {
		f.Add(input.Text)
	}
	plan := decodelimit.JSONPlanOf(reflect.TypeFor[*odd]())
	bounded := map[string]*decodelimit.JSONPlan{
		"a tree": decodelimit.AnyJSON(), "a Pod": decodelimit.JSONPlanOf(reflect.TypeFor[*corev1.Pod]()), "an Ingress": decodelimit.JSONPlanOf(reflect.TypeFor[*networkingv1.Ingress]()),
	}
	for _, input := range hostile.Objects(64, head, "pods", "map", "any", "schema.items", "array", "schemas", "ports") {
		_ = kjson.UnmarshalCaseSensitivePreserveInts(input.Text, &odd{}) // caches the types' fields
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		w, err := plan.Weigh(text, decodelimit.Unlimited, nil)
		if json.Valid(text) && err != nil && !errors.Is(err, decodelimit.ErrTooDeep) {
			t.Fatalf("%q: %v, and it is JSON", text, err)
		}
		if err != nil {
			return
		}
		for name, plan := range bounded {
			if w, err := plan.Weigh(text, decodelimit.Unlimited, nil); err == nil && plan.Bound(text) < w.Decoded {
				t.Errorf("%q: it weighs %d as %s, which is more than the bound of %d", text, w.Decoded, name, plan.Bound(text))
			}
		}
		took := allocated(func() { _ = kjson.UnmarshalCaseSensitivePreserveInts(text, &odd{}) })
		if took > w.Decoded+noise {
			t.Errorf("%q: %d bytes are allocated, and it weighs %d", text, took, w.Decoded)
		}
	})
}
