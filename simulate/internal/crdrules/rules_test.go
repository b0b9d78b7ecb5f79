// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crdrules_test

import (
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/crdrules"
)

func widgets() *apiextensions.CustomResourceDefinition {
	return &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.test.example.com"},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: "test.example.com", Version: "v1", Scope: apiextensions.NamespaceScoped, PreserveUnknownFields: new(false),
			Names:      apiextensions.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions:   []apiextensions.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}},
			Validation: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{Type: "object"}},
			Conversion: &apiextensions.CustomResourceConversion{Strategy: apiextensions.NoneConverter},
		},
		Status: apiextensions.CustomResourceDefinitionStatus{StoredVersions: []string{"v1"}},
	}
}

func TestRules_NameWhatIsWrong(t *testing.T) {
	type crd = apiextensions.CustomResourceDefinition
	for _, c := range []struct {
		change func(c *crd)
		want   string // the fields of the errors
	}{
		{func(*crd) {}, ""},
		{func(c *crd) { c.Spec.Group = "nodot" }, "spec.group"},
		{func(c *crd) { c.Spec.Scope = "World" }, "spec.scope"},
		{func(c *crd) { c.Spec.Names.ListKind = "Widget" }, "spec.names.listKind"},
		{func(c *crd) { c.Spec.Names.Singular = "" }, "spec.names.singular"},
		{func(c *crd) { c.Spec.Names.ShortNames = []string{"W"} }, "spec.names.shortNames[0]"},
		{func(c *crd) { c.Spec.Versions[0].Storage = false }, "spec.versions"},
		{func(c *crd) { c.Spec.Validation = nil }, "spec.versions[0].schema.openAPIV3Schema"},
		{func(c *crd) { c.Spec.PreserveUnknownFields = new(true) }, "spec.preserveUnknownFields"},
		{func(c *crd) { c.Status.StoredVersions = []string{"v1", "v0"} }, "status.storedVersions[1]"},
	} {
		crd := widgets()
		c.change(crd)
		var fields []string
		for _, err := range (&crdrules.Rules{CRD: crd}).Validate() {
			fields = append(fields, err.Field)
		}
		if got := strings.Join(fields, " "); got != c.want {
			t.Errorf("wrong are %q, want %q, in %+v", got, c.want, crd.Spec)
		}
	}
}

// The scope and the kind of objects that may be stored do not change.
func TestRules_HoldAnEstablishedDefinition(t *testing.T) {
	old, crd := widgets(), widgets()
	old.Status.Conditions = []apiextensions.CustomResourceDefinitionCondition{{Type: apiextensions.Established, Status: apiextensions.ConditionTrue}}
	crd.Spec.Scope, crd.Spec.Names.Kind = apiextensions.ClusterScoped, "Gadget"
	for _, c := range []struct {
		old  *apiextensions.CustomResourceDefinition
		want int
	}{{nil, 0}, {widgets(), 0}, {old, 2}} {
		if errs := (&crdrules.Rules{CRD: crd, Old: c.old}).Validate(); len(errs) != c.want {
			t.Errorf("after %v: got %v, want %d errors", c.old, errs, c.want)
		}
	}
}
