// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decodelimit

import (
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// own has quantities that its own UnmarshalJSON reads.
type own struct {
	hidden resource.Quantity
}

func (o *own) UnmarshalJSON(text []byte) error { return o.hidden.UnmarshalJSON(text) }

type embeds struct {
	resource.Quantity
}

type inline struct {
	holder `json:",inline"`
}

type holder struct {
	Sizes  []resource.Quantity           `json:"sizes"`
	ByName map[string]*resource.Quantity `json:"byName"`
	Deep   **[]map[string]holder         `json:"deep"`
	Own    *own                          `json:"own"`
	Embeds embeds                        `json:"embeds"`
	Big    *big.Int                      `json:"big"`
	Ratio  big.Rat                       `json:"ratio"`
	Float  big.Float                     `json:"float"`
	Text   string                        `json:"text"`
}

func TestPlan_CostlyNumbersAreFoundWhereTheirTypesAre(t *testing.T) {
	p := CostlyPlanOf(reflect.TypeFor[*inline]())
	digits := strings.Repeat("7", 10_001)
	for text, found := range map[string]bool{
		`{"sizes":["1","1e-10000000"]}`:                           true,
		`{"sizes":[1,1e-10000000]}`:                               true,
		` { "s\u0069zes" : [ "1E+00000000000129" ]}`:              true,
		`{"byName":{"a":null,"b":"1e999999999999"}}`:              true,
		`{"deep":[{"x":{"sizes":[],"sizes":["-.1e-128"]}}]}`:      true,
		`{"own":{"any":[{"name":"1e-10000000"}]}}`:                true,
		`{"own":"1e-10000000"}`:                                   true,
		`{"embeds":"1e-10000000"}`:                                true,
		`{"sizes":["` + digits[:129] + `"]}`:                      true,
		`{"sizes":["0.` + strings.Repeat("0", 127) + `1"]}`:       true,
		`{"big":` + digits + `}`:                                  true,
		`{"ratio":"` + digits[:5001] + "/" + digits[:5001] + `"}`: true,
		`{"ratio":"1\u0065-1000000"}`:                             true,
		`{"ratio":"0x1p999999"}`:                                  true,
		`{"float":"1e1000000000"}`:                                true,

		`{"text":"1e-10000000"}`:                                  false,
		`{"other":"1e-10000000"}`:                                 false,
		`{"byName":{"1e-10000000":"1"}}`:                          false,
		`{"sizes":["1e100","1e-100","0.1","1Ei","2E","1P","1e"]}`: false,
		`{"sizes":["` + digits[:100] + `"]}`:                      false,
		`{"own":{"any":["a1e99999999","1e12"]}}`:                  false,
		`{"big":` + digits[:10_000] + `}`:                         false,
		`{"ratio":"0x1e99999"}`:                                   false,
		`{"sizes":[` + strings.Repeat(`"1",`, 99) + `"1"]}`:       false,
		`{"sizes":[{"a":"1e-10000000"`:                            false,
		`{"sizes"`:                                                false, `{`: false, ``: false, `[`: false, `{"sizes":[1`: false, `{"a" 1}`: false,
	} {
		if err := p.JSON([]byte(text)); (err != nil) != found {
			t.Errorf("%.80s: %v, want an error: %t", text, err, found)
		} else if found && !strings.Contains(err.Error(), "number") {
			t.Errorf("%.80s: %v, want an error that shows the number", text, err)
		}
	}
}

func TestOf_TypesThatLeadToNoCostlyValueHaveNoPlan(t *testing.T) {
	if p := CostlyPlanOf(reflect.TypeFor[*corev1.ConfigMap]()); p != nil {
		t.Errorf("a ConfigMap has the plan %+v: it contains no number of any size", p)
	}
	if p := CostlyPlanOf(reflect.TypeFor[*corev1.Pod]()); p == nil || p != CostlyPlanOf(reflect.TypeFor[*corev1.Pod]()) {
		t.Error("a Pod has no plan, or a new one each time")
	}
}

func TestPlan_ProtobufAsJSON(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Spec.Overhead = corev1.ResourceList{"memory": resource.MustParse("1e-9")}
	pod.Spec.Containers = []corev1.Container{{}, {Name: "1e-99999", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1e12")}}}}
	pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("1e13"))}}}}
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	p := CostlyPlanOf(reflect.TypeOf(pod))
	if err := p.Protobuf(raw); err != nil {
		t.Errorf("%v, want nothing found in a Pod whose quantities are ordinary", err)
	}
	for i := range raw { // a message that ends early is left to the decoder
		_ = p.Protobuf(raw[:i])
	}
	pod.Spec.Volumes[0].EmptyDir.SizeLimit = nil
	for _, in := range []string{"overhead", "limits", "volume"} {
		costly := pod.DeepCopy()
		q := resource.MustParse("1e200")
		switch in {
		case "overhead":
			costly.Spec.Overhead["memory"] = q
		case "limits":
			costly.Spec.Containers[1].Resources.Limits["cpu"] = q
		case "volume":
			costly.Spec.Volumes[0].EmptyDir.SizeLimit = &q
		}
		raw, err := costly.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Protobuf(raw); err == nil || !strings.Contains(err.Error(), "e19") && !strings.Contains(err.Error(), "e20") {
			t.Errorf("%s: %v, want an error with the quantity", in, err)
		}
	}
}

// The canonical form of what is accepted is accepted too: an operator writes what it has
// read.
func TestBounds_TheCanonicalFormIsWithinThemToo(t *testing.T) {
	for exponent := -140; exponent <= 140; exponent++ {
		for _, digits := range []string{"1", "10", "1000000", "1.5", "0.001", "123456789123456789123456789", "-1000"} {
			text := fmt.Sprintf("%se%d", digits, exponent)
			if ofQuantity.check([]byte(text)) != nil {
				continue
			}
			q, err := resource.ParseQuantity(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			q.Add(resource.Quantity{}) // which forgets the text
			if err := ofQuantity.check([]byte(q.String())); err != nil {
				t.Errorf("%s is accepted, and its canonical form %s is not: %v", text, q.String(), err)
			}
		}
	}
}

func FuzzCostlyPlan(f *testing.F) {
	f.Add([]byte(`{"sizes":["1e5"],"deep":[{"a":{"own":{"a":[1]}}}]}`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		_ = CostlyPlanOf(reflect.TypeFor[*inline]()).JSON(text)
		_ = CostlyPlanOf(reflect.TypeFor[*corev1.Pod]()).Protobuf(text)
	})
}

// What a schema of crdgen accepts is decoded.
func TestPatterns_WhatTheyAcceptIsDecoded(t *testing.T) {
	bound, all := regexp.MustCompile(BoundQuantity), regexp.MustCompile(AnyQuantity)
	for text, accepted := range map[string]bool{
		"1e99": true, "+1.5e-099": true, ".5E+7": true, "1Ei": true, "100m": true, "1e0000000000000000000000000012": true,
		"99999999999999999999999999999e99": true, "-9999999999999999999999999999e99": true, "0.9999999999999999999999999e-99": true,
		"1e100": false, "1e-10000000": false, "1e": false, "1e1.5": false, "e5": false,
	} {
		if got := bound.MatchString(text); got != accepted {
			t.Errorf("%s: accepted is %t, want %t", text, got, accepted)
		}
		if !accepted {
			continue
		}
		if len(text) > LongestQuantity || !all.MatchString(text) {
			t.Errorf("%s: it is not accepted in all", text)
		}
		if err := ofQuantity.check([]byte(text)); err != nil {
			t.Errorf("%s: %v, want it decoded", text, err)
		}
	}
}
