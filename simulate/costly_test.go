// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/flyball-dev/flyball/internal/decodelimit"
)

// Each level of items is read by an UnmarshalJSON of its own, so that 3,000 levels take
// 2 s and 120 MB.
func TestPlan_DeepSchemasAreFound(t *testing.T) {
	p := decodelimit.CostlyPlanOf(reflect.TypeFor[*apiextensionsv1.CustomResourceDefinition]())
	schema := func(levels int) []byte {
		return []byte(`{"spec":{"versions":[{"schema":{"openAPIV3Schema":` + strings.Repeat(`{"items":`, levels) + "{}" + strings.Repeat("}", levels) + `}}]}}`)
	}
	for levels, found := range map[int]bool{50: false, 150: false, 250: true, 9000: true} {
		if err := p.JSON(schema(levels)); (err != nil) != found {
			t.Errorf("a schema of %d levels: %v, want an error: %t", levels, err, found)
		}
	}
}
