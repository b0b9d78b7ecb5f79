// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crdfixture_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/testing/crdfixture"
)

func TestNew_DefinitionsShareNothing(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "test.flyball.dev", Version: "v1", Kind: "Gear"}
	of := func() *unstructured.Unstructured {
		return crdfixture.New(kind, map[string]any{"teeth": crdfixture.Integer}, nil)
	}
	a, b := of(), of()
	if a.GetName() != "gears.test.flyball.dev" {
		t.Errorf("the definition is named %q, want gears.test.flyball.dev", a.GetName())
	}
	teeth := func(crd *unstructured.Unstructured) map[string]any {
		versions, _, err := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
		if err != nil {
			t.Fatal(err)
		}
		schema, found, err := unstructured.NestedFieldNoCopy(versions.([]any)[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "teeth")
		if err != nil || !found {
			t.Fatalf("no schema of teeth: %v", err)
		}
		return schema.(map[string]any)
	}
	teeth(a)["default"] = "12"
	if len(teeth(b)) != 1 || len(crdfixture.Integer) != 1 {
		t.Errorf("another definition was changed: %v, %v", teeth(b), crdfixture.Integer)
	}
}
