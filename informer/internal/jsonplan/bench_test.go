// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/informer/internal/share"
)

// BenchmarkPlan decodes an object by plan, without and with sharing, and by the
// reference.
func BenchmarkPlan(b *testing.B) {
	for _, of := range []struct {
		name string
		typ  reflect.Type
		text string
	}{
		{"Pod", reflect.TypeFor[corev1.Pod](), examplePod(b)},
		{"custom", reflect.TypeFor[fleet](), exampleFleet},
		{"unstructured", reflect.TypeFor[unstructured.Unstructured](), examplePod(b)},
	} {
		raw := []byte(of.text)
		bench := func(name string, decode func(into any) error) {
			b.Run(of.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				for b.Loop() {
					if err := decode(reflect.New(of.typ).Interface()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		s := subjectOf(b, of.typ)
		bench("plan", func(into any) error { _, err := s.plan.Decode(raw, into, Options{}); return err })
		table := share.NewTable()
		bench("shared", func(into any) error { _, err := s.plan.Decode(raw, into, Options{Table: table}); return err })
		bench("reference", func(into any) error { return reference(raw, into) })
	}
}
