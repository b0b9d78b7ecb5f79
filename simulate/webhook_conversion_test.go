// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/simulate"
)

// converter turns spec.a of v1 into spec.b of v2, and back, unless it is broken.
type converter struct {
	t      *testing.T
	broken func(*apiextensionsv1.ConversionResponse)
}

// RoundTrip is what an http.RoundTripper does.
func (c *converter) RoundTrip(r *http.Request) (*http.Response, error) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		c.t.Errorf("a question that cannot be read: %v", err)
	}
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, in := range review.Request.Objects {
		text, from, to := string(in.Raw), `"a":`, `"b":`
		if strings.HasSuffix(review.Request.DesiredAPIVersion, "/v1") {
			from, to = to, from
		}
		var fields map[string]any
		if err := json.Unmarshal([]byte(text), &fields); err != nil {
			c.t.Error(err)
		}
		spec, err := json.Marshal(fields["spec"])
		if err != nil {
			c.t.Error(err)
		}
		fields["apiVersion"], fields["spec"] = review.Request.DesiredAPIVersion, json.RawMessage(strings.Replace(string(spec), from, to, 1))
		raw, err := json.Marshal(fields)
		if err != nil {
			c.t.Error(err)
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: raw})
	}
	if c.broken != nil {
		c.broken(response)
	}
	review.Request, review.Response = nil, response
	answer := httptest.NewRecorder()
	err := json.NewEncoder(answer).Encode(review)
	return answer.Result(), err
}

// convertedCRD has two versions, which a webhook converts.
const convertedCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.crd.example.com}
spec:
  group: crd.example.com
  scope: Namespaced
  names: {plural: gizmos, kind: Gizmo}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://converter/convert"}}}
  versions:
  - {name: v1, served: true, storage: true, selectableFields: [{jsonPath: .spec.a}], schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}}}
  - {name: v2, served: true, storage: false, selectableFields: [{jsonPath: .spec.b}], schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {b: {type: string}}}}}}}
`

func TestServer_ConversionWebhooksConvert_S15(t *testing.T) {
	c := &converter{t: t}
	h := &hookServer{t: t, Server: simulate.New(simulate.Options{WebhookTransport: c, Namespaces: []string{"ns"}})}
	h.says("POST", crdsPath, inJSON(t, convertedCRD), 201)
	v2 := strings.Replace(gizmosPath, "/v1/", "/v2/", 1)
	h.says("POST", gizmosPath, gizmo(t, "one", "{a: x}"), 201, `"a":"x"`)
	h.says("GET", v2+"/one", "", 200, `"b":"x"`, `"crd.example.com/v2"`)
	h.says("POST", v2, strings.Replace(gizmo(t, "two", "{b: yes2}"), "/v1", "/v2", 1), 201, `"b":"yes2"`)
	h.says("GET", gizmosPath+"/two", "", 200, `"a":"yes2"`)
	h.says("PATCH", v2+"/one", `{"spec":{"b":"z"}}`, 200, `"b":"z"`)
	h.says("GET", gizmosPath, "", 200, `"a":"z"`, `"a":"yes2"`)
	h.says("GET", v2, "", 200, `"b":"z"`, `"b":"yes2"`)

	h.says("POST", gizmosPath, gizmo(t, "three", "{a: x}"), 201)
	c.broken = func(r *apiextensionsv1.ConversionResponse) {
		r.Result = metav1.Status{Status: "Failure", Message: "no way"}
	}
	h.says("GET", v2+"/three", "", 500, "conversion webhook for crd.example.com/v1, Kind=Gizmo failed: no way")
	h.says("GET", v2, "", 500, "conversion webhook for crd.example.com/v1, Kind=Gizmo failed: no way")
	h.says("POST", v2, strings.Replace(gizmo(t, "four", "{b: yes2}"), "/v1", "/v2", 1), 500, "conversion webhook for crd.example.com/v2, Kind=Gizmo failed: no way")
	h.says("GET", gizmosPath+"/three", "", 200, `"a":"x"`)
	c.broken = func(r *apiextensionsv1.ConversionResponse) {
		r.ConvertedObjects[0].Raw = []byte(strings.ReplaceAll(string(r.ConvertedObjects[0].Raw), `"three"`, `"other"`))
	}
	h.says("GET", v2+"/three", "", 500, "returned invalid object: must have the same name: three != other")
	c.broken = func(r *apiextensionsv1.ConversionResponse) { r.ConvertedObjects = nil }
	h.says("GET", v2+"/three", "", 500, "returned 0 objects, expected 1")
}

// Each reader gets what the webhook says now, not what it once said of the object.
func TestServer_ConversionWebhookIsAskedEachTime_S15(t *testing.T) {
	c := &converter{t: t}
	h := &hookServer{t: t, Server: simulate.New(simulate.Options{WebhookTransport: c, Namespaces: []string{"ns"}})}
	h.says("POST", crdsPath, inJSON(t, convertedCRD), 201)
	v2 := strings.Replace(gizmosPath, "/v1/", "/v2/", 1)
	h.says("POST", gizmosPath, gizmo(t, "one", "{a: x}"), 201)
	h.says("GET", v2+"/one", "", 200, `"b":"x"`)
	c.broken = func(r *apiextensionsv1.ConversionResponse) {
		r.ConvertedObjects[0].Raw = []byte(strings.ReplaceAll(string(r.ConvertedObjects[0].Raw), `"b":"x"`, `"b":"better"`))
	}
	h.says("GET", v2+"/one", "", 200, `"b":"better"`)
	h.says("GET", v2, "", 200, `"b":"better"`)
}

// Custom objects are selected by what a reader sees of them: in the reader's version,
// with the defaults that the CRD has now.
func TestServer_CustomObjectsAreSelectedAsTheyAreRead_S17(t *testing.T) {
	h := &hookServer{t: t, Server: simulate.New(simulate.Options{WebhookTransport: &converter{t: t}, Namespaces: []string{"ns"}})}
	h.says("POST", crdsPath, inJSON(t, convertedCRD), 201)
	v2 := strings.Replace(gizmosPath, "/v1/", "/v2/", 1)
	h.says("POST", gizmosPath, gizmo(t, "one", "{a: x}"), 201)
	h.says("POST", gizmosPath, gizmo(t, "two", "{a: other}"), 201)
	if got := directly(h.Server, "GET", v2+"?fieldSelector=spec.b%3Dx", "", "").Body.String(); !strings.Contains(got, `"one"`) || strings.Contains(got, `"two"`) {
		t.Errorf("by spec.b=x in v2: %s, want one alone", got)
	}
	h.says("DELETE", crdsPath+"/gizmos.crd.example.com", "", 200)

	plain := strings.Replace(convertedCRD, `conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://converter/convert"}}}`, "", 1)
	h.says("POST", crdsPath, inJSON(t, plain), 201)
	h.says("POST", gizmosPath, gizmo(t, "old", "{}"), 201)
	h.says("PATCH", crdsPath+"/gizmos.crd.example.com",
		inJSON(t, "spec: {versions: ["+strings.ReplaceAll(`{name: v1, served: true, storage: true, selectableFields: [{jsonPath: .spec.a}], schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string, default: blue}}}}}}}`, "\n", "")+"]}"), 200)
	h.says("GET", gizmosPath+"?fieldSelector=spec.a%3Dblue", "", 200, `"old"`, `"a":"blue"`)
	for query, wants := range map[string]bool{"blue": true, "": false} {
		stream := directly(h.Server, "GET", gizmosPath+"?watch=true&resourceVersion=0&timeoutSeconds=1&fieldSelector=spec.a%3D"+query, "", "").Body.String()
		if strings.Contains(stream, `"old"`) != wants {
			t.Errorf("a watch by spec.a=%s: %s, want old in it: %v", query, stream, wants)
		}
	}
}
