// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simulate"
)

// FuzzServer_CRDs_S13: whatever a CRD says, the answer has a status that a
// server gives on purpose, a refusal stores nothing, and what is accepted can
// be used and deleted.
func FuzzServer_CRDs_S13(f *testing.F) {
	whole, err := yaml.YAMLToJSON([]byte(gizmoCRD))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	for _, property := range []string{
		`{}`, `{"type":"array"}`, `{"type":"object","x-kubernetes-embedded-resource":true}`, `{"$ref":"#/definitions/x"}`, `{"x-kubernetes-int-or-string":true}`,
		`{"type":"object","additionalProperties":{"type":"object","additionalProperties":true}}`, `{"type":"string","default":{"a":[null]}}`, `{"not":{"anyOf":[{}]}}`,
		`{"type":"string","x-kubernetes-validations":[{"rule":"self.matches(self)"},{"rule":"","messageExpression":"1"},{"rule":"oldSelf == self","optionalOldSelf":true}]}`,
		`{"type":"array","items":[{"type":"string"}],"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a","a"]}`, `{"type":"integer","maximum":1e400}`,
		strings.Repeat(`{"type":"array","items":`, 200) + `{"type":"string","x-kubernetes-validations":[{"rule":"self == ''"}]}` + strings.Repeat(`}`, 200),
	} {
		f.Add([]byte(strings.Replace(string(whole), `{"maxLength":10,"pattern":"^[a-z]*$","type":"string"}`, property, 1)))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s := simulate.New(simulate.Options{})
		for _, a := range []struct{ method, path, body string }{
			{"POST", crdsPath, string(body)}, {"PUT", crdsPath + "/gizmos.crd.example.com", string(body)},
			{"POST", gizmosPath, `{"apiVersion":"crd.example.com/v1","kind":"Gizmo","metadata":{"name":"a"},"spec":{"a":"x","e":1,"tags":[{"k":"a"}]}}`},
			{"GET", gizmosPath, ""}, {"GET", "/openapi/v3", ""}, {"DELETE", crdsPath + "/gizmos.crd.example.com", ""},
		} {
			before := s.Revision()
			answer := directly(s, a.method, a.path, "application/json", a.body)
			if answer.Code < 200 || answer.Code >= 600 {
				t.Errorf("%s %s: status %d", a.method, a.path, answer.Code)
			}
			if answer.Code >= http.StatusBadRequest && s.Revision() != before {
				t.Errorf("%s %s: %d %s, but the revision moved: a refusal stores nothing", a.method, a.path, answer.Code, answer.Body)
			}
		}
	})
}
