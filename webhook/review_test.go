// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/webhook"
)

const configMapPath = "/validate--v1-configmap"

func TestValidate_IsGivenWhatThereIs(t *testing.T) {
	s := newServer(t, webhook.Options{})
	var got string
	webhook.Validate(s, "", func(_ context.Context, req *webhook.Request, old, obj *corev1.ConfigMap) error {
		got = fmt.Sprintf("%s %s", req.Operation, req.Key())
		if old != nil {
			got += " from " + old.Data["a"]
		}
		if obj != nil {
			got += " to " + obj.Data["a"]
		}
		return nil
	})
	must(t, s.Err())
	const one, two = `{"data":{"a":"1"}}`, `{"data":{"a":"2"}}`
	for _, c := range []struct {
		op             admissionv1.Operation
		old, obj, want string
	}{
		{admissionv1.Create, "null", two, "CREATE default/one to 2"},
		{admissionv1.Create, "", two, "CREATE default/one to 2"},
		{admissionv1.Update, one, two, "UPDATE default/one from 1 to 2"},
		{admissionv1.Delete, one, "null", "DELETE default/one from 1"},
	} {
		if c.old == "" {
			c.old = "null"
		}
		response := admit(t, s, configMapPath, ofConfigMap(c.op, c.old, c.obj))
		if !response.Allowed || got != c.want {
			t.Errorf("%s: allowed %v, got %q, want %q", c.op, response.Allowed, got, c.want)
		}
	}
}

func TestValidate_AnErrorIsAVerdict_H1(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "one", field.ErrorList{field.Required(field.NewPath("data"), "say something")})
	for _, c := range []struct {
		err    error
		code   int32
		reason metav1.StatusReason
		text   string
	}{
		{errors.New("not on Fridays"), 403, metav1.StatusReasonForbidden, "not on Fridays"},
		{invalid, 422, metav1.StatusReasonInvalid, "data: Required value: say something"},
		{fmt.Errorf("look at it: %w", apierrors.NewConflict(schema.GroupResource{Resource: "x"}, "y", errors.New("taken"))), 409, metav1.StatusReasonConflict, "look at it: "},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Code: 200, Message: "odd"}}, 403, "", "odd"},
		{context.DeadlineExceeded, 403, metav1.StatusReasonForbidden, "deadline"}, // not the request's deadline
	} {
		s := newServer(t, webhook.Options{})
		webhook.Validate(s, "", func(_ context.Context, req *webhook.Request, _, _ *corev1.ConfigMap) error {
			req.Warn("this is %s", "old")
			req.Audit("looked", "yes")
			return c.err
		})
		got := admit(t, s, configMapPath, ofConfigMap(admissionv1.Create, "null", "{}"))
		if got.Allowed || got.Result == nil || got.Result.Code != c.code || got.Result.Reason != c.reason || !strings.Contains(got.Result.Message, c.text) {
			t.Errorf("%v: got %+v, want a denial with %d %s %q", c.err, got.Result, c.code, c.reason, c.text)
		}
		if len(got.Warnings) != 1 || got.Warnings[0] != "this is old" || got.AuditAnnotations["looked"] != "yes" {
			t.Errorf("%v: warnings %q, annotations %v: both are told with a denial too", c.err, got.Warnings, got.AuditAnnotations)
		}
	}
}

func TestValidate_CausesAreTold(t *testing.T) {
	s := newServer(t, webhook.Options{})
	webhook.Validate(s, "", func(context.Context, *webhook.Request, *corev1.ConfigMap, *corev1.ConfigMap) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "one", field.ErrorList{field.Required(field.NewPath("data"), "")})
	})
	got := admit(t, s, configMapPath, ofConfigMap(admissionv1.Create, "null", "{}"))
	if got.Result.Details == nil || len(got.Result.Details.Causes) != 1 || got.Result.Details.Causes[0].Field != "data" {
		t.Errorf("details = %+v, want the cause by its field", got.Result.Details)
	}
}

func TestReview_DryRunIsTold(t *testing.T) {
	s := newServer(t, webhook.Options{})
	var dry []bool
	webhook.Validate(s, "", func(_ context.Context, req *webhook.Request, _, _ *corev1.ConfigMap) error {
		dry = append(dry, req.IsDryRun())
		return nil
	})
	req := ofConfigMap(admissionv1.Create, "null", "{}")
	for _, said := range []*bool{nil, new(false), new(true)} {
		req.DryRun = said
		admit(t, s, configMapPath, req)
	}
	if fmt.Sprint(dry) != "[false false true]" {
		t.Errorf("dry runs = %v, want only the last to be one", dry)
	}
}

// A failure without a verdict is an HTTP error, so that failurePolicy decides.
func TestReview_FaultsAreErrorsOfHTTP_H1(t *testing.T) {
	s := newServer(t, webhook.Options{MaxBody: 1 << 20})
	webhook.Validate(s, "", func(_ context.Context, _ *webhook.Request, _, obj *corev1.ConfigMap) error {
		if obj.Data["a"] == "panic" {
			panic("a is panic")
		}
		return nil
	})
	pod := ofConfigMap(admissionv1.Create, "null", "{}")
	pod.Kind.Kind = "Pod"
	good := review(t, ofConfigMap(admissionv1.Create, "null", "{}"))
	for _, c := range []struct {
		name, path, body string
		code             int
		text             string
	}{
		{"empty", configMapPath, "", 400, "decode AdmissionReview"},
		{"cut", configMapPath, good[:len(good)/2], 400, "decode AdmissionReview"},
		{"more than one", configMapPath, good + good, 400, "decode AdmissionReview"},
		{"list", configMapPath, "[]", 400, "decode AdmissionReview"},
		{"null", configMapPath, "null", 400, "the body is no AdmissionReview"},
		{"deep", configMapPath, strings.Repeat("[", 500_000), 400, "decode"},
		{"another kind", configMapPath, `{"apiVersion":"v1","kind":"Pod"}`, 400, `no AdmissionReview: apiVersion "v1", kind "Pod"`},
		{"another version", configMapPath, strings.Replace(good, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), 400, `AdmissionReview of version "v1beta1": this webhook understands v1 alone; set admissionReviewVersions: [v1]`},
		{"no request", configMapPath, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, 400, "has no request"},
		{"no uid", configMapPath, strings.Replace(good, `"uid":"42"`, `"uid":""`, 1), 400, "has no uid"},
		{"kind of another webhook", configMapPath, review(t, pod), 400, "this webhook takes v1 ConfigMap, and the request is for v1 Pod"},
		{"object of another shape", configMapPath, review(t, ofConfigMap(admissionv1.Create, "null", `{"data":7}`)), 400, "decode object of kind ConfigMap"},
		{"object that is no object", configMapPath, review(t, ofConfigMap(admissionv1.Create, "null", `[1]`)), 400, "decode object of kind ConfigMap"},
		{"panic", configMapPath, review(t, ofConfigMap(admissionv1.Create, "null", `{"data":{"a":"panic"}}`)), 500, "panic in the webhook: a is panic"},
		{"too large", configMapPath, good + strings.Repeat(" ", 1<<20), 413, "larger than 1048576 bytes"},
		{"nobody there", "/validate", good, 404, `no webhook at "/validate"`},
		{"conversion sent here", configMapPath, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`, 400, "does the path belong to another webhook?"},
	} {
		code, answer := post(t, s, c.path, c.body)
		var status metav1.Status
		if err := json.Unmarshal([]byte(answer), &status); err != nil {
			t.Errorf("%s: the answer is no Status: %v: %q", c.name, err, answer)
		}
		if code != c.code || status.Code != int32(c.code) || status.Kind != "Status" || !strings.Contains(status.Message, c.text) {
			t.Errorf("%s: got %d %+v, want %d with %q", c.name, code, status, c.code, c.text)
		}
	}
	if code, _ := post(t, s, configMapPath, good); code != 200 {
		t.Errorf("after all that: %d, want the next review to be answered", code)
	}
	got := s.Snapshot().Webhooks[0]
	if got.Panics != 1 || got.Passed != 1 || got.Failed != 16 {
		t.Errorf("counted %+v, want 1 passed and 16 failed, of which 1 panicked", got)
	}
}

// angry is an error whose Error method panics.
type angry struct{}

func (angry) Error() string { panic("do not ask") }

func TestReview_ErrorThatPanicsIsAFault_H1(t *testing.T) {
	for want, err := range map[string]error{
		"panic in the webhook: runtime error: invalid memory address": (*apierrors.StatusError)(nil),
		"panic in the webhook: do not ask":                            angry{},
	} {
		s := newServer(t, webhook.Options{})
		webhook.Validate(s, "", func(context.Context, *webhook.Request, *corev1.ConfigMap, *corev1.ConfigMap) error { return err })
		webhook.Mutate(s, "", func(context.Context, *webhook.Request, *corev1.ConfigMap) error { return err })
		for _, path := range []string{configMapPath, "/mutate--v1-configmap"} {
			code, answer := post(t, s, path, review(t, ofConfigMap(admissionv1.Create, "null", "{}")))
			if code != 500 || !strings.Contains(answer, want) {
				t.Errorf("%s: got %d %s, want 500 with %q", path, code, answer, want)
			}
		}
		for _, got := range s.Snapshot().Webhooks {
			if got.Panics != 1 || got.Failed != 1 {
				t.Errorf("%s: counted %+v, want 1 failed, which panicked", got.Path, got)
			}
		}
	}
}

func TestReview_WhatIsNoReviewIsRefused_H1(t *testing.T) {
	s := newServer(t, webhook.Options{})
	webhook.Validate(s, "", nothing[*corev1.ConfigMap])
	for _, c := range []struct {
		method, header, value string
		code                  int
	}{
		{http.MethodGet, "Content-Type", "application/json", 405},
		{http.MethodPost, "Content-Type", "application/yaml", 415},
		{http.MethodPost, "Content-Type", "", 415},
		{http.MethodPost, "Content-Encoding", "gzip", 415},
	} {
		r := httptest.NewRequest(c.method, configMapPath, strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(c.header, c.value)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != c.code {
			t.Errorf("%s with %s %q = %d, want %d", c.method, c.header, c.value, w.Code, c.code)
		}
	}
}

// An update of the largest object that a server accepts contains it twice.
func TestReview_LargeObjectsAreTaken(t *testing.T) {
	s := newServer(t, webhook.Options{})
	size := 0
	webhook.Validate(s, "", func(_ context.Context, _ *webhook.Request, old, obj *corev1.ConfigMap) error {
		size = len(old.Data["a"]) + len(obj.Data["a"])
		return nil
	})
	large := `{"data":{"a":"` + strings.Repeat("x", 3<<19-100) + `"}}`
	if got := admit(t, s, configMapPath, ofConfigMap(admissionv1.Update, large, large)); !got.Allowed || size != 3<<20-200 {
		t.Errorf("allowed %v with %d bytes, want all 3 MiB", got.Allowed, size)
	}
}

func TestReview_FunctionThatOutlastsTheRequestIsAFault_H1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, webhook.Options{})
		webhook.Validate(s, "", func(ctx context.Context, _ *webhook.Request, _, _ *corev1.ConfigMap) error {
			<-ctx.Done()
			return ctx.Err()
		})
		for path, want := range map[string]time.Duration{
			configMapPath + "?timeout=2s":   2 * time.Second,
			configMapPath + "?timeout=1h":   30 * time.Second,
			configMapPath + "?timeout=soon": 30 * time.Second,
			configMapPath:                   30 * time.Second,
		} {
			begun := time.Now()
			code, answer := post(t, s, path, review(t, ofConfigMap(admissionv1.Create, "null", "{}")))
			if code != http.StatusGatewayTimeout || time.Since(begun) != want {
				t.Errorf("%s = %d after %v: %s, want 504 after %v", path, code, time.Since(begun), answer, want)
			}
		}
	})
}

func TestReview_UnstructuredTakesAllKinds(t *testing.T) {
	s := newServer(t, webhook.Options{})
	var kinds []string
	webhook.Validate(s, "/all", func(_ context.Context, _ *webhook.Request, _, obj *unstructured.Unstructured) error {
		kinds = append(kinds, obj.GetKind())
		return nil
	})
	must(t, s.Err())
	req := ofConfigMap(admissionv1.Create, "null", `{"apiVersion":"v1","kind":"ConfigMap"}`)
	admit(t, s, "/all", req)
	req.Kind, req.Object.Raw = metav1.GroupVersionKind{Group: "a", Version: "b", Kind: "C"}, []byte(`{"apiVersion":"a/b","kind":"C"}`)
	admit(t, s, "/all", req)
	if fmt.Sprint(kinds) != "[ConfigMap C]" {
		t.Errorf("got %v, want both kinds", kinds)
	}
}

func TestServer_MisuseIsRemembered(t *testing.T) {
	for want, misuse := range map[string]func(s *webhook.Server){
		"the function is nil": func(s *webhook.Server) { webhook.Validate[*corev1.ConfigMap](s, "", nil) },
		"validate *webhook_test.unknown: type *webhook_test.unknown is not in the scheme; call AddToScheme": func(s *webhook.Server) {
			webhook.Validate(s, "", nothing[*unknown])
		},
		"so name it": func(s *webhook.Server) { webhook.Validate(s, "", nothing[*unstructured.Unstructured]) },
		`validate at path "/a": there is already a webhook at that path`: func(s *webhook.Server) {
			webhook.Validate(s, "/a", nothing[*corev1.ConfigMap])
			webhook.Validate(s, "/a", nothing[*corev1.ConfigMap])
		},
		"a path begins with a slash":                              func(s *webhook.Server) { webhook.Validate(s, "a", nothing[*corev1.ConfigMap]) },
		"convert *webhook_test.siteV2: no other version is given": func(s *webhook.Server) { webhook.Convert[*siteV2](s) },
		`version "v1" is given twice`:                             func(s *webhook.Server) { webhook.Convert(s, siteSpoke(), siteSpoke()) },
		"is already registered": func(s *webhook.Server) {
			webhook.Convert(s, siteSpoke())
			webhook.Convert(s, siteSpoke())
		},
		"a function of the spoke *webhook_test.siteV1 is nil": func(s *webhook.Server) {
			webhook.Convert(s, webhook.Spoke[*siteV1, *siteV2](nil, nil))
		},
		"is of kind ConfigMap, and the hub is of Site.example.dev": func(s *webhook.Server) {
			webhook.Convert(s, webhook.Spoke(func(*corev1.ConfigMap, *siteV2) error { return nil }, func(*siteV2, *corev1.ConfigMap) error { return nil }))
		},
	} {
		s := newServer(t, webhook.Options{})
		misuse(s)
		if err := s.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Err = %v, want %q", err, want)
		}
		if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run = %v, want %q", err, want)
		}
	}
	for want, opts := range map[string]webhook.Options{
		`Address "here"`:   {Address: "here"},
		"MaxBody is -1":    {MaxBody: -1},
		"MaxDecoded is -1": {MaxDecoded: -1},
		"ClientNames are given without ClientCAs": {ClientNames: []string{"a"}},
		"no Namespace is set, and this process does not run in a Pod; name that of the Service, set POD_NAMESPACE, or give certificates by CertDir (-webhook-cert-path)": {Managed: &webhook.Managed{Service: "hooks"}},
		`Service ""`:                                      {Managed: &webhook.Managed{Namespace: "a"}},
		"neither an IP address nor a DNS":                 {Managed: &webhook.Managed{Namespace: "a", Service: "b", Names: []string{"a b"}}},
		"AuthorityLifetime is 1h0m0s and Lifetime 1h0m0s": {Managed: &webhook.Managed{Namespace: "a", Service: "b", Lifetime: time.Hour, AuthorityLifetime: time.Hour}},
		"Managed needs a connection":                      {Managed: &webhook.Managed{Namespace: "a", Service: "b"}},
	} {
		if err := newServer(t, opts).Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Err = %v, want %q", err, want)
		}
	}
}

type unknown struct{ siteV1 }
