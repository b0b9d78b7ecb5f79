// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/webhook"
)

// siteV1 and siteV2 are two versions of one kind. The first has the number of replicas
// as a field, the second within scale, beside a minimum.
type siteV1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas int64  `json:"replicas"`
		Host     string `json:"host,omitempty"`
	} `json:"spec"`
}

type siteV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Scale struct {
			Replicas int64 `json:"replicas"`
			Least    int64 `json:"least,omitempty"`
		} `json:"scale"`
		Host string `json:"host,omitempty"`
	} `json:"spec"`
}

// fleet is older than the CustomResourceDefinition, whose members also have a zone.
type fleet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Members []member `json:"members,omitempty"`
	} `json:"spec"`
}

type member struct {
	Name   string `json:"name"`
	Weight int64  `json:"weight"`
}

func (f *fleet) DeepCopyObject() runtime.Object {
	out := *f
	f.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Members = slices.Clone(f.Spec.Members)
	return &out
}

func (s *siteV1) DeepCopyObject() runtime.Object {
	out := *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func (s *siteV2) DeepCopyObject() runtime.Object {
	out := *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

const leastAnnotation = "sites.example.dev/least"

// siteSpoke keeps in an annotation what version 1 cannot express.
func siteSpoke() webhook.SpokeOf[*siteV2] {
	return webhook.Spoke(
		func(from *siteV1, to *siteV2) error {
			if from.Spec.Host == "broken" {
				return errors.New("no such host")
			}
			if from.Spec.Host == "panic" {
				panic("host is panic")
			}
			to.Spec.Scale.Replicas, to.Spec.Host = from.Spec.Replicas, from.Spec.Host
			if least, kept := from.Annotations[leastAnnotation]; kept {
				delete(to.Annotations, leastAnnotation)
				return json.Unmarshal([]byte(least), &to.Spec.Scale.Least)
			}
			return nil
		},
		func(from *siteV2, to *siteV1) error {
			to.Spec.Replicas, to.Spec.Host = from.Spec.Scale.Replicas, from.Spec.Host
			if from.Spec.Scale.Least != 0 {
				least, err := json.Marshal(from.Spec.Scale.Least)
				metav1.SetMetaDataAnnotation(&to.ObjectMeta, leastAnnotation, string(least))
				return err
			}
			return nil
		})
}

func testScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilMust(clientgoscheme.AddToScheme(scheme))
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Fleet"}, &fleet{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Site"}, &siteV1{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.dev", Version: "v2", Kind: "Site"}, &siteV2{})
	return scheme
}

func utilMust(err error) {
	if err != nil {
		panic(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newServer returns a server without a certificate or a port.
func newServer(t *testing.T, opts webhook.Options) *webhook.Server {
	t.Helper()
	return webhook.New(nil, testScheme(), opts)
}

// post sends a body to a path without a network.
func post(t *testing.T, s *webhook.Server, path, body string) (code int, answer string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)).WithContext(t.Context())
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func review(t *testing.T, req admissionv1.AdmissionRequest) string {
	t.Helper()
	if req.UID == "" {
		req.UID = "42"
	}
	text, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &req,
	})
	must(t, err)
	return string(text)
}

// admit sends a request to a path and returns the verdict.
func admit(t *testing.T, s *webhook.Server, path string, req admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	code, answer := post(t, s, path, review(t, req))
	if code != http.StatusOK {
		t.Fatalf("%s = %d %s, want an answer", path, code, answer)
	}
	var got admissionv1.AdmissionReview
	must(t, json.Unmarshal([]byte(answer), &got))
	if got.Kind != "AdmissionReview" || got.APIVersion != "admission.k8s.io/v1" || got.Response == nil {
		t.Fatalf("%s = %s, want a review with a response", path, answer)
	}
	if want := "42"; string(got.Response.UID) != want && req.UID == "" || req.UID != "" && got.Response.UID != req.UID {
		t.Errorf("uid = %q: the server takes no answer to another request", got.Response.UID)
	}
	return got.Response
}

func ofConfigMap(op admissionv1.Operation, old, obj string) admissionv1.AdmissionRequest {
	return admissionv1.AdmissionRequest{
		Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		Operation: op, Namespace: "default", Name: "one",
		Object: runtime.RawExtension{Raw: []byte(obj)}, OldObject: runtime.RawExtension{Raw: []byte(old)},
	}
}

func nothing[T any](context.Context, *webhook.Request, T, T) error { return nil }
