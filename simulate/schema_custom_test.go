// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"testing"
)

// ofGizmos begins a conversation about the kind.
func ofGizmos(t *testing.T, requests ...request) {
	t.Helper()
	converse(t, append([]request{{"POST " + crdsPath, inJSON(t, gizmoCRD), 201, ``}}, requests...)...)
}

func TestServer_SchemaCompletesObjects_S14(t *testing.T) {
	ofGizmos(t,
		request{"POST " + gizmosPath, gizmo(t, "a", "{a: x, zz: 1, tags: [{k: p, q: 1}], any: {deep: {er: 1}}}"), 201, `"min":0 "replicas":1 {"k":"p","v":"none"} {"deep":{"er":1}} !zz":1 299_-_"unknown_field_\"spec.tags[0].q\" \"spec.zz\"`},
		request{"POST " + gizmosPath + "?fieldValidation=Ignore", gizmo(t, "b", "{a: x, zz: 1}"), 201, `!unknown !zz`},
		request{"POST " + gizmosPath + "?fieldValidation=Strict", gizmo(t, "c", "{a: x, zz: 1}"), 400, `strict_decoding_error:_unknown_field_\"spec.zz\"`},
		request{"POST " + gizmosPath, gizmo(t, "d", "{a: x, embedded: {apiVersion: v1, kind: X, metadata: {name: inner, odd: 1}, free: 1}}"), 201, `"free":1 !"odd":1`},
		request{"POST " + gizmosPath, gizmo(t, "e", "{a: x, min: null, e: null}"), 201, `"min":0 !"e":null`},
		request{"POST " + gizmosPath, gizmo(t, "f", "{a: x}", "status: {phase: Up}"), 201, `!"phase":"Up"`},
		request{"PATCH " + gizmosPath + "/f/status merge", `{"status":{"phase":"Up","odd":1},"spec":{"a":"z"}}`, 200, `"phase":"Up" "a":"x" !"odd":1 "generation":1`},
		request{"PATCH " + gizmosPath + "/g?fieldManager=one apply", gizmo(t, "g", "{a: x, tags: [{k: p, v: one}]}"), 201, ``},
		request{"PATCH " + gizmosPath + "/g?fieldManager=two apply", gizmo(t, "g", "{tags: [{k: q, v: two}]}"), 200, `{"k":"p","v":"one"},{"k":"q","v":"two"}`},
		request{"PATCH " + gizmosPath + "/g?fieldManager=two apply", gizmo(t, "g", "{tags: [{k: p, v: two}]}"), 409, `.spec.tags[k=\"p\"].v`},
		request{"PATCH " + gizmosPath + "/g?fieldManager=two apply", gizmo(t, "g", "{odd: 1}"), 500, `.spec.odd:_field_not_declared_in_schema`},
	)
}

func TestServer_SchemaRefusesObjects_S14(t *testing.T) {
	refused := func(spec, want string) request {
		return request{"POST " + gizmosPath, gizmo(t, "bad", spec), 422, want}
	}
	ofGizmos(t,
		refused("{}", `spec.a:_Required_value some_validation_rules_were_not_checked`),
		refused("{a: 5}", `spec.a_in_body_must_be_of_type_string:_\"integer\"`),
		refused("{a: ABC}", `should_match_'^[a-z]*$'`),
		refused("{a: abcdefghijk}", `may_not_be_more_than_10_bytes`),
		refused("{a: x, e: z}", `supported_values:_\"up\",_\"down\"`),
		refused("{a: x, min: 3, max: 1}", `spec.min:_Invalid_value min_is_above_max`),
		refused("{a: x, set: [p, p]}", `spec.set[1]:_Duplicate_value`),
		refused("{a: x, tags: [{k: p}, {k: p}]}", `spec.tags[1]:_Duplicate_value`),
		refused("{a: x, replicas: -1}", `.spec.replicas should_be_a_non-negative_integer`),
		refused("{a: x, embedded: {kind: X}}", `spec.embedded.apiVersion:_Required_value`),
		request{"POST " + gizmosPath, gizmo(t, "bad", "{a: x, embedded: {apiVersion: v1, kind: X, metadata: {name: 5}}}"), 400, `cannot_be_handled_as_a_Gizmo:_spec.embedded.metadata`},
		request{"POST " + gizmosPath, `{"apiVersion":"crd.example.com/v1","kind":"Other","metadata":{"name":"x"}}`, 422, `must_be_Gizmo`},
		request{"POST " + gizmosPath, `{"metadata":{"name":"x"}}`, 400, `Object_'Kind'_is_missing`},
		request{"POST " + gizmosPath, gizmo(t, "a", "{a: x, frozen: f}"), 201, ``},
		request{"PATCH " + gizmosPath + "/a merge", `{"spec":{"frozen":"g"}}`, 422, `spec.frozen:_Invalid_value:_\"g\":_frozen_cannot_change`},
		request{"PATCH " + gizmosPath + "/a/status merge", `{"status":{"phase":"Sideways"}}`, 422, `status.phase:_Unsupported_value`},
		request{"PATCH " + gizmosPath + "/a/scale merge", `{"spec":{"replicas":-4}}`, 422, `Gizmo.crd.example.com should_be_a_non-negative_integer`},
		request{"PATCH " + gizmosPath + "/a merge", `{"spec":{"a":null}}`, 422, `spec.a:_Required_value`},
	)
}

func TestServer_WhatWasWrongBeforeMayStay_S14(t *testing.T) {
	ofGizmos(t,
		request{"POST " + gizmosPath, gizmo(t, "a", "{a: long}"), 201, ``},
		request{"PATCH " + crdsPath + "/gizmos.crd.example.com merge", inJSON(t, gizmoCRD, "maxLength: 10", "maxLength: 2"), 200, ``},
		request{"PATCH " + gizmosPath + "/a merge", `{"spec":{"min":1}}`, 200, `"a":"long"`},
		request{"PATCH " + gizmosPath + "/a merge", `{"spec":{"a":"other"}}`, 422, `may_not_be_more_than_2_bytes`},
	)
}
