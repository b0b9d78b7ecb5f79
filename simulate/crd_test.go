// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simulate/internal/fixture"
)

const (
	crdsPath   = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	gizmosPath = "/apis/crd.example.com/v1/namespaces/ns/gizmos"
)

var gizmos = schema.GroupResource{Group: "crd.example.com", Resource: "gizmos"}

// gizmoCRD is a CRD with some of everything.
const gizmoCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.crd.example.com}
spec:
  group: crd.example.com
  scope: Namespaced
  names: {plural: gizmos, kind: Gizmo, shortNames: [gz], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [a]
            x-kubernetes-validations: [{rule: "!has(self.max) || self.min <= self.max", message: min is above max, fieldPath: .min}]
            properties:
              a: {type: string, maxLength: 10, pattern: '^[a-z]*$'}
              e: {type: string, enum: [up, down]}
              replicas: {type: integer, default: 1}
              min: {type: integer, default: 0}
              max: {type: integer}
              frozen: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: frozen cannot change}]}
              any: {type: object, x-kubernetes-preserve-unknown-fields: true}
              embedded: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
              set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              tags: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}, v: {type: string, default: none}}}}
          status:
            type: object
            properties: {replicas: {type: integer}, phase: {type: string, enum: [Up, Down]}}
`

// inJSON is YAML as JSON, with replacements.
func inJSON(t *testing.T, text string, oldnew ...string) string {
	t.Helper()
	out, err := yaml.YAMLToJSON([]byte(strings.NewReplacer(oldnew...).Replace(text)))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// gizmo is one with a spec and more, in YAML.
func gizmo(t *testing.T, name, spec string, more ...string) string {
	t.Helper()
	return inJSON(t, "apiVersion: crd.example.com/v1\nkind: Gizmo\nmetadata: {name: "+name+"}\nspec: "+spec+"\n"+strings.Join(more, "\n"))
}

// streamed is what a watch tells from now on until it ends or meanwhile is over,
// and "EOF" if it has ended.
func streamed(t *testing.T, w *fixture.World, path string, meanwhile func()) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://simulated"+path+"?watch=true", nil)
	w.Must(err)
	transport := w.Network.Transport()
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(req)
	w.Must(err)
	lines, ended := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(ended)
		for scan := bufio.NewScanner(answer.Body); scan.Scan(); {
			var event struct {
				Type   string
				Object struct {
					Metadata struct{ Name string }
				}
			}
			_ = json.Unmarshal(scan.Bytes(), &event)
			lines <- event.Type + " " + event.Object.Metadata.Name
		}
		lines <- "EOF"
	}()
	fixture.Pass(time.Second)
	meanwhile()
	fixture.Pass(time.Second)
	var told []string
	for len(lines) > 0 {
		told = append(told, <-lines)
	}
	_ = answer.Body.Close()
	<-ended
	return strings.Join(told, ", ")
}

func TestServer_CRDIsServedFromItsCreationOn_S13(t *testing.T) {
	converse(t,
		request{"GET " + gizmosPath, "", 404, `page_not_found`},
		request{"POST " + crdsPath, inJSON(t, gizmoCRD), 201, `"conditions":null "singular":"gizmo" "storedVersions":["v1"]`},
		request{"GET " + crdsPath + "/gizmos.crd.example.com", "", 200, `"NoConflicts" "InitialNamesAccepted" "listKind":"GizmoList" "manager":"kube-apiserver"`},
		request{"GET /apis/crd.example.com/v1", "", 200, `"shortNames":["gz"] "gizmos/status" "gizmos/scale" "categories":["all"]`},
		request{"POST " + gizmosPath, gizmo(t, "a", "{a: x}"), 201, `"replicas":1`},
		request{"GET " + gizmosPath + "/a/scale", "", 200, `"replicas":1`},
		request{"POST " + crdsPath, inJSON(t, gizmoCRD), 409, `AlreadyExists`},
		request{"PATCH " + crdsPath + "/gizmos.crd.example.com merge", `{"spec":{"scope":"Cluster"}}`, 422, `field_is_immutable`},
		request{"DELETE " + crdsPath + "/gizmos.crd.example.com", "", 200, `"deletionTimestamp" "InstanceDeletionPending" customresourcecleanup`},
		request{"GET " + crdsPath + "/gizmos.crd.example.com", "", 404, `NotFound`},
		request{"GET " + gizmosPath + "/a", "", 404, `page_not_found`},
		request{"POST " + crdsPath, inJSON(t, gizmoCRD), 201, ``},
		request{"GET " + gizmosPath + "/a", "", 404, `NotFound`},
	)
}

func TestServer_ChangedCRDEndsWatchesAndLeavesVersions_S13(t *testing.T) {
	fixture.Run(t, func(t *testing.T, w *fixture.World) {
		ask(t, w, "POST", crdsPath, "application/json", inJSON(t, gizmoCRD))
		_, before := ask(t, w, "POST", gizmosPath, "application/json", gizmo(t, "a", "{a: x, set: [p]}"))
		_, index := get(t, w, "/openapi/v3")
		changed := inJSON(t, gizmoCRD, "min: {type: integer, default: 0}", "min: {type: integer, default: 0}\n              fresh: {type: string, default: new}", "set: {", "gone: {")
		told := streamed(t, w, gizmosPath, func() {
			if answer, body := ask(t, w, "PATCH", crdsPath+"/gizmos.crd.example.com", "application/merge-patch+json", changed); answer.StatusCode != 200 {
				t.Fatal(body)
			}
		})
		if told != "ADDED a, EOF" {
			t.Errorf("watch: got %q, want its end and no event", told)
		}
		_, after := get(t, w, gizmosPath+"/a")
		if in(after, "spec", "fresh") != "new" || in(after, "metadata", "resourceVersion") != in(before, "metadata", "resourceVersion") {
			t.Errorf("got %v, want the new default at the old version", after)
		}
		_, list := get(t, w, gizmosPath)
		if text := fmt.Sprint(list); !strings.Contains(text, "fresh:new") {
			t.Errorf("list: got %s, want the new default", text)
		}
		_, next := get(t, w, "/openapi/v3")
		const path = "apis/crd.example.com/v1"
		if was, is := in(index, "paths", path), in(next, "paths", path); fmt.Sprint(was) == fmt.Sprint(is) {
			t.Errorf("the schemas' index says %v as before: nobody knows of the change", is)
		}
	})
}

func TestServer_DeletedCRDTakesItsObjects_S13(t *testing.T) {
	fixture.Run(t, func(t *testing.T, w *fixture.World) {
		ask(t, w, "POST", crdsPath, "application/json", inJSON(t, gizmoCRD))
		ask(t, w, "POST", gizmosPath, "application/json", gizmo(t, "a", "{a: x}"))
		ask(t, w, "POST", gizmosPath, "application/json", gizmo(t, "b", "{a: x}"))
		ask(t, w, "PATCH", gizmosPath+"/b", "application/merge-patch+json", `{"metadata":{"finalizers":["x.y/z"]}}`)
		told := streamed(t, w, gizmosPath, func() {
			ask(t, w, "DELETE", crdsPath+"/gizmos.crd.example.com", "application/json", "")
			if answer, body := ask(t, w, "POST", gizmosPath, "application/json", gizmo(t, "c", "{a: x}")); answer.StatusCode != 403 {
				t.Errorf("create in a kind that goes: got %d %v", answer.StatusCode, body)
			}
			if _, crd := get(t, w, crdsPath+"/gizmos.crd.example.com"); !strings.Contains(fmt.Sprint(crd), "InstanceDeletionInProgress") {
				t.Errorf("got %v, want a CRD that waits for its last object", crd)
			}
			ask(t, w, "PATCH", gizmosPath+"/b", "application/merge-patch+json", `{"metadata":{"finalizers":null}}`)
		})
		if want := "ADDED a, ADDED b, DELETED a, MODIFIED b, DELETED b, EOF"; told != want {
			t.Errorf("watch: got %q, want %q", told, want)
		}
		if answer, _ := get(t, w, crdsPath+"/gizmos.crd.example.com"); answer.StatusCode != 404 {
			t.Errorf("the CRD stays after its last object: %d", answer.StatusCode)
		}
		if w.Watches(gizmos) != 0 {
			t.Error("a watch of a kind that is gone is still served")
		}
	})
}

func TestServer_CRDsShareNoNames_S13(t *testing.T) {
	gadgets := inJSON(t, gizmoCRD, "gizmos", "gadgets", "kind: Gizmo", "singular: gadget, kind: Gizmo")
	converse(t,
		request{"POST " + crdsPath, inJSON(t, gizmoCRD), 201, ``},
		request{"POST " + crdsPath, gadgets, 201, ``},
		request{"GET " + crdsPath + "/gadgets.crd.example.com", "", 200, `ListKindConflict is_already_in_use NotAccepted`},
		request{"GET /apis/crd.example.com/v1/gadgets", "", 404, `page_not_found`},
		request{"DELETE " + crdsPath + "/gizmos.crd.example.com", "", 200, ``},
		request{"GET " + crdsPath + "/gadgets.crd.example.com", "", 200, `NoConflicts InitialNamesAccepted`},
		request{"GET /apis/crd.example.com/v1/gadgets", "", 200, `"items":[]`},
	)
}

func TestServer_VersionsOfACRD_S13(t *testing.T) {
	two := inJSON(t, gizmoCRD, "  - name: v1\n", "  - {name: v2, served: true, storage: false, deprecated: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}, extra: {type: string}}}}}}}\n  - {name: v3, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}\n  - name: v1\n")
	other := strings.Replace(gizmosPath, "/v1/", "/v2/", 1)
	converse(t,
		request{"POST " + crdsPath, two, 201, ``},
		request{"POST " + gizmosPath, gizmo(t, "a", "{a: x, min: 3}"), 201, ``},
		request{"GET " + other + "/a", "", 200, `crd.example.com/v2 "a":"x" !"min" crd.example.com/v2_Gizmo_is_deprecated`},
		request{"PATCH " + other + "/a merge", `{"spec":{"a":"y","extra":"z"}}`, 200, `"a":"y" !"extra"`},
		request{"GET " + gizmosPath + "/a", "", 200, `crd.example.com/v1 "a":"y" !"extra" "min":0`},
		request{"GET " + strings.Replace(gizmosPath, "/v1/", "/v3/", 1), "", 404, `page_not_found`},
		request{"PATCH " + crdsPath + "/gizmos.crd.example.com jsonpatch", `[{"op":"remove","path":"/spec/versions/2"}]`, 422, `exactly_one_version_marked_as_storage missing_from_spec.versions`},
	)
}

// An update that is not stored leaves the versions in which objects may be stored.
func TestServer_DryRunOfACRDLeavesItsStatus_S13(t *testing.T) {
	two := inJSON(t, gizmoCRD, "  - name: v1\n", "  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n  - name: v1\n")
	swap := `[{"op":"replace","path":"/spec/versions/0/storage","value":true},{"op":"replace","path":"/spec/versions/1/storage","value":false}]`
	converse(t,
		request{"POST " + crdsPath, two, 201, `"storedVersions":["v1"]`},
		request{"PATCH " + crdsPath + "/gizmos.crd.example.com?dryRun=All jsonpatch", swap, 200, `"storedVersions":["v1","v2"]`},
		request{"GET " + crdsPath + "/gizmos.crd.example.com", "", 200, `"storedVersions":["v1"]`},
		request{"PATCH " + crdsPath + "/gizmos.crd.example.com jsonpatch", swap, 200, `"storedVersions":["v1","v2"]`},
		request{"GET " + crdsPath + "/gizmos.crd.example.com", "", 200, `"storedVersions":["v1","v2"]`},
	)
}

func TestServer_RestoredStoreServesItsCRDs_S13(t *testing.T) {
	fixture.Run(t, func(t *testing.T, w *fixture.World) {
		ask(t, w, "POST", crdsPath, "application/json", inJSON(t, gizmoCRD))
		ask(t, w, "DELETE", crdsPath+"/gizmos.crd.example.com", "application/json", "")
		w.Rewind(3) // marked, emptied, gone
		if answer, body := get(t, w, gizmosPath); answer.StatusCode != 200 {
			t.Errorf("after its CRD is back: got %d %v", answer.StatusCode, body)
		}
		w.Rewind(3) // created, named, established
		if answer, _ := get(t, w, gizmosPath); answer.StatusCode != 404 {
			t.Errorf("before its CRD was there: got %d", answer.StatusCode)
		}
	})
}

func TestServer_InvalidCRDsAreRefused_S13(t *testing.T) {
	of := func(property string) string {
		return inJSON(t, gizmoCRD, "              e: {type: string, enum: [up, down]}", "              e: "+property)
	}
	var all []request
	for _, c := range []struct{ body, want string }{
		{inJSON(t, gizmoCRD, "{name: gizmos.", "{name: gizmo."), `must_be_spec.names.plural`},
		{inJSON(t, gizmoCRD, "crd.example.com", "crd"), `should_be_a_domain_with_at_least_one_dot`},
		{inJSON(t, gizmoCRD, "crd.example.com", "crd.k8s.io"), `protected_groups_must_have_approval_annotation`},
		{inJSON(t, gizmoCRD, "scope: Namespaced", "scope: Some"), `Unsupported_value`},
		{inJSON(t, gizmoCRD, "storage: true", "storage: false"), `must_have_exactly_one_version_marked_as_storage_version must_have_at_least_one_stored_version`},
		{inJSON(t, gizmoCRD, "categories: [all]", "categories: [All]"), `spec.names.categories[0]`},
		{inJSON(t, gizmoCRD, ".spec.replicas", ".status.x"), `should_be_a_json_path_under_.spec`},
		{inJSON(t, gizmoCRD, "storage: true", "storage: true\n    selectableFields: [{jsonPath: .spec.none}]"), `is_an_invalid_path`},
		{inJSON(t, gizmoCRD, "storage: true", "storage: true\n    additionalPrinterColumns: [{name: A, type: text, jsonPath: a}]"), `must_be_one_of must_be_a_simple_json_path`},
		{inJSON(t, gizmoCRD, "scope: N", "conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v9], clientConfig: {url: 'http://x?y'}}}\n  scope: N"), `'https'_is_the_only_allowed_URL_scheme must_include_at_least_one_of_v1,_v1beta1`},
		{of("{}"), `must_not_be_empty_for_specified_object_fields`},
		{of("{type: text}"), `spec.validation.openAPIV3Schema.properties[spec].properties[e].type:_Unsupported_value`},
		{of("{type: array}"), `must_be_specified`},
		{of("{type: string, default: 5}"), `must_be_of_type_string`},
		{of("{type: string, pattern: '['}"), `must_be_a_valid_regular_expression`},
		{of("{$ref: '#/x'}"), `$ref_is_not_supported`},
		{of("{type: array, x-kubernetes-list-type: map, items: {type: object, properties: {k: {type: string}}}}"), `must_not_be_empty_if_x-kubernetes-list-type_is_map`},
		{of("{type: array, x-kubernetes-list-type: set, items: {type: object}}"), `must_be_atomic_as_item`},
		{of("{type: string, x-kubernetes-validations: [{rule: self.}]}"), `compilation_failed`},
		{of("{type: string, x-kubernetes-validations: [{rule: self.none}]}"), `type_'string'_does_not_support_field_selection`},
		{of("{type: array, items: {type: string}, x-kubernetes-validations: [{rule: 'self.all(x, self.all(y, x == y))'}]}"), `estimated_rule_cost_exceeds_budget_by_factor_of_more_than_100x exceeding_cost_limit_for_entire_OpenAPIv3_schema`},
		{of("{type: array, items: {type: string, maxLength: 2, x-kubernetes-validations: [{rule: self == oldSelf}]}}"), `oldSelf_cannot_be_used_on_the_uncorrelatable_portion`},
	} {
		all = append(all, request{"POST " + crdsPath, c.body, 422, c.want})
	}
	all = append(all, request{"GET " + gizmosPath, "", 404, ``})
	converse(t, all...)
}
