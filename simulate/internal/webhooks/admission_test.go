// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/webhooks"
)

// stored are objects by resource.
type stored map[string][]*object.Object

func (s stored) Get(schema.GroupResource, types.NamespacedName) *object.Object { return nil }

func (s stored) Lists(of ...schema.GroupResource) (out [][]*object.Object) {
	for _, r := range of {
		out = append(out, s[r.Resource])
	}
	return out
}

// hook answers each question, or fails with an error.
type hook func(asked *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)

func (h hook) RoundTrip(r *http.Request) (*http.Response, error) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		return nil, err
	}
	response, err := h(review.Request)
	if err != nil {
		return nil, err
	}
	response.UID = review.Request.UID
	review.Request, review.Response = nil, response
	text, err := json.Marshal(review)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(text))), Request: r}, err
}

func TestAdmission_DoesWhatWebhooksAnswer(t *testing.T) {
	patched := &admissionv1.AdmissionResponse{Allowed: true, PatchType: new(admissionv1.PatchTypeJSONPatch), Patch: []byte(`[{"op":"add","path":"/data","value":{"v":"2"}}]`)}
	denied := &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "no"}}
	for _, c := range []struct {
		name      string
		operation string
		failure   admissionregistrationv1.FailurePolicyType
		response  *admissionv1.AdmissionResponse // nil: an error of the connection
		asked     int                            // of two webhooks
		refused   func(error) bool
		data      bool
	}{
		{"allowed", "CREATE", "Fail", &admissionv1.AdmissionResponse{Allowed: true}, 2, nil, false},
		{"patched", "CREATE", "Fail", patched, 2, nil, true},
		{"denied", "CREATE", "Ignore", denied, 1, apierrors.IsForbidden, false},
		{"another operation", "UPDATE", "Fail", denied, 0, nil, false},
		{"an error", "CREATE", "Fail", nil, 1, apierrors.IsInternalError, false},
		{"an error that does not matter", "CREATE", "Ignore", nil, 2, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked, s := 0, stored{}
			a := &webhooks.Admission{Objects: s, Dialer: webhooks.Dialer{Transport: hook(func(*admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
				if asked++; c.response == nil {
					return nil, io.ErrUnexpectedEOF
				}
				return c.response.DeepCopy(), nil
			})}}
			rules := []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{"CREATE"},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}, Scope: new(admissionregistrationv1.AllScopes)}}}
			client := admissionregistrationv1.WebhookClientConfig{URL: new("https://hook.example.com/")}
			add := func(resource string, obj any) {
				text, _ := json.Marshal(obj)
				o := &object.Object{}
				if err := json.Unmarshal(text, &o.Fields); err != nil {
					t.Fatal(err)
				}
				s[resource] = append(s[resource], o)
			}
			add("mutatingwebhookconfigurations", &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Webhooks: []admissionregistrationv1.MutatingWebhook{
				{Name: "m.example.com", ClientConfig: client, Rules: rules, FailurePolicy: &c.failure, NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}, MatchPolicy: new(admissionregistrationv1.Exact),
					TimeoutSeconds: new(int32(1)), AdmissionReviewVersions: []string{"v1"}, ReinvocationPolicy: new(admissionregistrationv1.NeverReinvocationPolicy)}}})
			add("validatingwebhookconfigurations", &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{
				{Name: "v.example.com", ClientConfig: client, Rules: rules, FailurePolicy: &c.failure, NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}, MatchPolicy: new(admissionregistrationv1.Exact),
					TimeoutSeconds: new(int32(1)), AdmissionReviewVersions: []string{"v1"}}}})
			call := &webhooks.Call{Kind: kinds.NewRegistry().Lookup(schema.GroupVersion{Version: "v1"}, "configmaps"), Name: "a", Operation: c.operation, Warn: func(string) {},
				Object: &object.Object{Fields: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}}
			err := a.Mutate(t.Context(), call)
			if err == nil {
				// What a validating webhook answers as a patch is refused, so it only allows.
				if c.data {
					c.response = &admissionv1.AdmissionResponse{Allowed: true}
				}
				err = a.Validate(t.Context(), call)
			}
			if (err != nil) != (c.refused != nil) || err != nil && !c.refused(err) {
				t.Errorf("got %v", err)
			}
			if asked != c.asked {
				t.Errorf("asked %d webhooks, want %d", asked, c.asked)
			}
			if data, _ := call.Object.Fields["data"].(map[string]any); (data["v"] == "2") != c.data {
				t.Errorf("the object is %v, want the patch in it: %v", call.Object.Fields, c.data)
			}
		})
	}
}
