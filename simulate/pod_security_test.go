// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/simulate"
)

func TestServer_PodSecurityWarnsAndHoldsItsLabels_S27(t *testing.T) {
	const (
		spec     = `"spec":{"containers":[{"name":"c","image":"c:1"}]}`
		template = `{"apiVersion":"v1","kind":"PodTemplate","metadata":{"name":"t"},"template":{` + spec + `}}`
		would    = `would violate PodSecurity`
	)
	pod := func(name, spec string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `"},` + spec + `}`
	}
	labels := func(pairs string) string { return `{"metadata":{"labels":{` + pairs + `}}}` }
	s := simulate.New(simulate.Options{})
	for n, step := range []struct {
		method, path, body string
		code               int
		want, never        string // in the answer or its warnings
	}{
		{"POST", "namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns","labels":{"pod-security.kubernetes.io/warn":"nothing"}}}`, 422, "must be one of privileged, baseline, restricted", ""},
		{"POST", "namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns"}}`, 201, "", would},
		{"POST", "namespaces/ns/pods", pod("b", `"spec":{"hostPID":true,"containers":[{"name":"c","image":"c:1"}]}`), 201, "", would},
		{"POST", "namespaces/ns/pods", pod("a", spec), 201, "", would},
		{"POST", "namespaces/ns/pods", pod("c", spec), 201, "", would},
		{"PATCH", "namespaces/ns", labels(`"pod-security.kubernetes.io/warn":"restricted"`), 200, "", "existing pods"},
		{"POST", "namespaces/ns/podtemplates", template, 201, `would violate PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false (container \"c\"`, ""},
		{"PATCH", "namespaces/ns/pods/a", `{"metadata":{"labels":{"a":"b"}}}`, 200, "", would},
		{"PATCH", "namespaces/ns/pods/a", `{"spec":{"containers":[{"name":"c","image":"c:2"}]}}`, 200, would, ""},
		{"PATCH", "namespaces/ns", labels(`"pod-security.kubernetes.io/warn":null,"pod-security.kubernetes.io/enforce-version":"1.2"`), 422, `must be \"latest\" or \"v1.x\"`, ""},
		{"PATCH", "namespaces/ns", labels(`"pod-security.kubernetes.io/warn":null,"pod-security.kubernetes.io/enforce":"baseline"`), 200, "b: host namespaces", "a:"},
		{"PATCH", "namespaces/ns", labels(`"pod-security.kubernetes.io/enforce":"restricted"`), 200, "a (and 1 other pod): allowPrivilegeEscalation", ""},
		{"POST", "namespaces/ns/podtemplates", strings.Replace(template, `"t"`, `"u"`, 1), 201, would, ""}, // what is enforced is warned about too
		{"POST", "namespaces/ns/pods", pod("d", spec), 403, `violates PodSecurity \"restricted:latest\"`, would},
		{"PATCH", "namespaces/ns/pods/a", `{"spec":{"containers":[{"name":"c","image":"c:3"}]}}`, 403, "violates PodSecurity", ""},
		{"PATCH", "namespaces/ns", labels(`"pod-security.kubernetes.io/enforce":"baseline"`), 200, "", "existing pods"},
	} {
		media := "application/json"
		if step.method == "PATCH" {
			media = "application/strategic-merge-patch+json"
		}
		answer := directly(s, step.method, "/api/v1/"+step.path, media, step.body)
		said := answer.Body.String() + fmt.Sprint(answer.Header()["Warning"])
		if answer.Code != step.code || !strings.Contains(said, step.want) || step.never != "" && strings.Contains(said, step.never) {
			t.Errorf("%d. %s %s %s: got %d %s, want %d, %q in it and %q not", n, step.method, step.path, step.body, answer.Code, said, step.code, step.want, step.never)
		}
	}
}
