// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate"
)

// hookServer answers the questions of a server, each by its path, and notes
// them.
type hookServer struct {
	*simulate.Server
	t       *testing.T
	asked   []string
	answers map[string]func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse
}

func newHookServer(t *testing.T) *hookServer {
	h := &hookServer{t: t, answers: map[string]func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse{}}
	h.Server = simulate.New(simulate.Options{WebhookTransport: h, Namespaces: []string{"ns"}})
	return h
}

// RoundTrip is what an http.RoundTripper does.
func (h *hookServer) RoundTrip(r *http.Request) (*http.Response, error) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		h.t.Errorf("a question that cannot be read: %v", err)
	}
	path := strings.TrimPrefix(r.URL.Path, "/")
	h.asked = append(h.asked, fmt.Sprintf("%s %s %s/%s", path, review.Request.Operation, review.Request.Resource.Version, review.Request.Name))
	answer := h.answers[path]
	if answer == nil {
		return nil, errors.New("nobody is there")
	}
	response := answer(review.Request)
	if response == nil { // it does not answer
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	response.UID = review.Request.UID
	review.Request, review.Response = nil, response
	text, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text))}, nil
}

// patches answers with a JSON patch.
func patches(patch string) func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(patch), PatchType: new(admissionv1.PatchTypeJSONPatch), Warnings: []string{"mind this"}}
	}
}

func denies(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "not today", Code: 418, Reason: "Teapot"}}
}

func allows(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true}
}

// configure stores webhooks of the kinds "mutating" or "validating", named by
// their paths, with rules for ConfigMaps unless more says otherwise.
func (h *hookServer) configure(kind string, hooks ...string) string {
	h.t.Helper()
	text := "apiVersion: admissionregistration.k8s.io/v1\nkind: " + strings.ToUpper(kind[:1]) + kind[1:] + "WebhookConfiguration\nmetadata: {name: hooks}\nwebhooks:\n"
	for _, hook := range hooks {
		path, more, _ := strings.Cut(hook, ";")
		if !strings.Contains(more, "rules:") {
			more += "\n  rules: [{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: ['*']}]"
		}
		text += "- name: " + path + ".example.com\n  clientConfig: {service: {namespace: ns, name: hooks, path: /" + path + "}}\n  sideEffects: None\n  admissionReviewVersions: [v1]\n" + more + "\n"
	}
	answer := directly(h.Server, "POST", "/apis/admissionregistration.k8s.io/v1/"+kind+"webhookconfigurations", "application/json", inJSON(h.t, text))
	return fmt.Sprint(answer.Code, answer.Body)
}

// says sends a request and holds the answer, as converse does.
func (h *hookServer) says(method, path, body string, code int, parts ...string) {
	h.t.Helper()
	media := "application/json"
	if method == "PATCH" {
		media = "application/merge-patch+json"
	}
	before := h.Revision()
	answer := directly(h.Server, method, path, media, body)
	said := answer.Body.String() + fmt.Sprint(answer.Header()["Warning"])
	if answer.Code != code {
		h.t.Errorf("%s %s: got %d %s, want %d", method, path, answer.Code, said, code)
	}
	for _, part := range parts {
		if !strings.Contains(said, part) {
			h.t.Errorf("%s %s: got %s, want %q in it", method, path, said, part)
		}
	}
	if code >= 400 && h.Revision() != before {
		h.t.Errorf("%s %s: refused, and something was stored", method, path)
	}
}

// questions are those since the last look.
func (h *hookServer) questions(want string) {
	h.t.Helper()
	if got := strings.Join(h.asked, ", "); got != want {
		h.t.Errorf("asked %q, want %q", got, want)
	}
	h.asked = nil
}

func TestServer_MutatingWebhooksChangeWhatIsStored_S15(t *testing.T) {
	h := newHookServer(t)
	h.answers["first"] = patches(`[{"op":"add","path":"/data/first","value":"1"}]`)
	h.answers["second"] = patches(`[{"op":"add","path":"/data/second","value":"2"}]`)
	h.answers["again"] = allows
	h.configure("mutating", "again;  reinvocationPolicy: IfNeeded", "first", "second")
	h.says("POST", mapsPath, `{"metadata":{"name":"a"},"data":{"v":"1"}}`, 201, `"first":"1"`, `"second":"2"`, `299 - "mind this"`)
	h.questions("again CREATE v1/a, first CREATE v1/a, second CREATE v1/a, again CREATE v1/a")
	h.says("GET", mapsPath+"/a", "", 200, `"first":"1"`)
	h.says("PATCH", mapsPath+"/a", `{"data":{"v":"2"}}`, 200, `"v":"2"`)
	h.questions("again UPDATE v1/a, first UPDATE v1/a, second UPDATE v1/a")
	h.says("DELETE", mapsPath+"/a", "", 500, `admission webhook \"first.example.com\" attempted to modify the object, which is not supported for this operation`)
	h.answers["first"] = patches(`[{"op":"remove","path":"/none"}]`)
	h.says("POST", mapsPath, `{"metadata":{"name":"b"}}`, 500, `Internal error occurred`)
	h.answers["first"] = patches(`[{"op":"add","path":"/data","value":{"b d":"x"}}]`)
	h.answers["second"] = allows
	h.says("POST", mapsPath, `{"metadata":{"name":"b"}}`, 422, `data[b d]`)
	h.answers["first"] = patches(`{`)
	h.says("POST", mapsPath, `{"metadata":{"name":"b"}}`, 500, `received undecodable patch in webhook response`)
}

func TestServer_WebhooksAreAskedAboutWhatChangesNothing_S15(t *testing.T) {
	h := newHookServer(t)
	h.says("POST", mapsPath, `{"metadata":{"name":"a"},"data":{"v":"1"}}`, 201)
	h.answers["deny"] = denies
	h.configure("validating", "deny")
	h.says("PATCH", mapsPath+"/a", `{"data":{"v":"1"}}`, 418, "not today")
	h.questions("deny UPDATE v1/a")
}

func TestServer_ValidatingWebhooksRefuse_S15(t *testing.T) {
	h := newHookServer(t)
	h.answers["no"], h.answers["yes"] = denies, allows
	h.says("POST", mapsPath, `{"metadata":{"name":"old"}}`, 201)
	h.configure("validating", "yes", "no")
	h.says("POST", mapsPath, `{"metadata":{"name":"a"}}`, 418, `admission webhook \"no.example.com\" denied the request: not today`, `"reason":"Teapot"`)
	h.questions("yes CREATE v1/a, no CREATE v1/a")
	h.says("DELETE", mapsPath+"/old", "", 418, `denied the request`)
	h.says("POST", "/api/v1/namespaces/ns/secrets", `{"metadata":{"name":"a"}}`, 201)
	h.says("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hooks", "", 200)
	h.says("POST", mapsPath, `{"metadata":{"name":"a"}}`, 201)
}

func TestServer_WebhooksThatDoNotAnswer_S15(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHookServer(t)
		h.answers["slow"] = func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return nil }
		h.configure("validating", "none;  failurePolicy: Ignore", "slow;  failurePolicy: Ignore\n  timeoutSeconds: 3")
		began := time.Now()
		h.says("POST", mapsPath, `{"metadata":{"name":"a"}}`, 201)
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("a webhook that does not answer held the write for %v, want its three seconds", took)
		}
		h.says("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hooks", "", 200)
		h.configure("validating", "none", "slow;  timeoutSeconds: 3")
		h.says("POST", mapsPath, `{"metadata":{"name":"b"}}`, 500, `Internal error occurred: failed calling webhook \"none.example.com\": failed to call webhook: Post \"https://hooks.ns.svc:443/none?timeout=10s\": nobody is there`)
		h.answers["none"] = allows
		h.says("POST", mapsPath, `{"metadata":{"name":"b"}}`, 500, `failed calling webhook \"slow.example.com\"`, `context deadline exceeded`)
	})
}

func TestServer_WebhooksAreAskedWhatTheyWant_S15(t *testing.T) {
	h := newHookServer(t)
	for _, name := range []string{"all", "labelled", "other", "creates", "cond", "rehearsed", "equal", "exact", "status"} {
		h.answers[name] = allows
	}
	two := inJSON(t, gizmoCRD, "  - name: v1\n", "  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}\n  - name: v1\n")
	h.says("POST", crdsPath, two, 201)
	const gizmoRule = "  rules: [{apiGroups: [crd.example.com], apiVersions: [v2], resources: [gizmos], operations: [CREATE]}]"
	h.configure("validating", "labelled;  objectSelector: {matchLabels: {a: b}}", "other;  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}",
		"creates;  rules: [{apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], operations: [CREATE], scope: Namespaced}]",
		"cond;  matchConditions: [{name: c, expression: \"object.metadata.name == 'c'\"}]", "equal;"+gizmoRule, "exact;  matchPolicy: Exact\n"+gizmoRule,
		"status;  rules: [{apiGroups: ['*'], apiVersions: ['*'], resources: ['*/status'], operations: [UPDATE]}]")
	h.says("POST", mapsPath, `{"metadata":{"name":"a"}}`, 201)
	h.questions("creates CREATE v1/a")
	h.says("POST", mapsPath, `{"metadata":{"name":"c","labels":{"a":"b"}}}`, 201)
	h.questions("labelled CREATE v1/c, creates CREATE v1/c, cond CREATE v1/c")
	h.says("PATCH", mapsPath+"/c", `{"metadata":{"labels":null}}`, 200)
	h.questions("labelled UPDATE v1/c, cond UPDATE v1/c")
	h.says("POST", gizmosPath, gizmo(t, "g", "{a: x}"), 201)
	h.questions("creates CREATE v1/g, equal CREATE v2/g")
	h.says("PATCH", gizmosPath+"/g/status", `{"status":{"phase":"Up"}}`, 200)
	h.questions("status UPDATE v1/g")
	h.says("POST", "/api/v1/namespaces", `{"metadata":{"name":"other"}}`, 201)
	h.questions("")
	h.says("POST", "/api/v1/namespaces/other/configmaps", `{"metadata":{"name":"a"}}`, 201)
	h.questions("other CREATE v1/a, creates CREATE v1/a")
}

func TestServer_WebhooksHaveToMakeSense_S15(t *testing.T) {
	h := newHookServer(t)
	for hook, want := range map[string]string{
		"a;  timeoutSeconds: 40":                                  "the timeout value must be between 1 and 30 seconds",
		"a;  failurePolicy: Some":                                 `webhooks[0].failurePolicy: Unsupported value: \"Some\"`,
		"a;  matchConditions: [{name: c, expression: 'object.'}]": "webhooks[0].matchConditions[0].expression",
		"a;  rules: [{apiGroups: ['*', b], apiVersions: [], resources: [a/*, a/b], operations: [GET]}]": "if '*' is present, must not specify other API groups",
		"a;  objectSelector: {matchExpressions: [{key: a, operator: Is}]}":                              "not a valid selector operator",
	} {
		if got := h.configure("mutating", hook); !strings.HasPrefix(got, "422") || !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %q", hook, got, want)
		}
	}
}

func TestServer_EvictsAnUnreadyPodOnlyAsItWasSeen_S8(t *testing.T) {
	h := newHookServer(t)
	pod := "/api/v1/namespaces/ns/pods/p"
	send := func(method, path, media, body string, code int) string {
		t.Helper()
		answer := directly(h.Server, method, path, media, body)
		if answer.Code != code {
			t.Fatalf("%s %s: got %d %s, want %d", method, path, answer.Code, answer.Body, code)
		}
		return answer.Body.String()
	}
	ready := func(status string) {
		send("PATCH", pod+"/status", "application/strategic-merge-patch+json", `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"`+status+`"}]}}`, 200)
	}
	send("POST", "/api/v1/namespaces/ns/pods", "application/json", `{"metadata":{"name":"p","labels":{"app":"p"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`, 201)
	ready("False")
	send("POST", "/apis/policy/v1/namespaces/ns/poddisruptionbudgets", "application/json",
		`{"metadata":{"name":"b"},"spec":{"minAvailable":1,"unhealthyPodEvictionPolicy":"AlwaysAllow","selector":{"matchLabels":{"app":"p"}}}}`, 201)
	h.answers["slow"] = func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		ready("True") // between the check of the budget and the deletion
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	h.configure("validating", "slow;  rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [DELETE]}]")
	said := send("POST", pod+"/eviction", "application/json", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}`, 429)
	if want := "The disruption budget b is still being processed by the server."; !strings.Contains(said, want) {
		t.Errorf("got %s, want %s", said, want)
	}
	send("GET", pod, "", "", 200)
}
