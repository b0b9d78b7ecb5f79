// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/webhook"
)

func TestMutate_UnknownFieldsStay_H2(t *testing.T) {
	s := newServer(t, webhook.Options{})
	webhook.Mutate(s, "", func(_ context.Context, _ *webhook.Request, pod *corev1.Pod) error {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, "team", "red")
		pod.Spec.Containers = append([]corev1.Container{{Name: "proxy", Image: "p"}}, pod.Spec.Containers...)
		pod.Spec.Containers[1].Env = append(pod.Spec.Containers[1].Env, corev1.EnvVar{Name: "A", Value: "1"})
		return nil
	})
	must(t, s.Err())
	const raw = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"one","fromTheFuture":true},
		"spec":{"future":{"a":1},"containers":[{"name":"web","image":"w","futureToo":[1,2],"resources":{"limits":{"cpu":"1000m"}}}]}}`
	req := ofConfigMap(admissionv1.Create, "null", raw)
	req.Kind.Kind = "Pod"
	got := admit(t, s, "/mutate--v1-pod", req)
	if !got.Allowed || got.PatchType == nil || *got.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Fatalf("got %+v, want a patch", got)
	}
	p, err := jsonpatch.DecodePatch(got.Patch)
	must(t, err)
	after, err := p.Apply([]byte(raw))
	must(t, err)
	const want = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"one","fromTheFuture":true,"labels":{"team":"red"}},
		"spec":{"future":{"a":1},"containers":[{"name":"proxy","image":"p","resources":{}},
		{"name":"web","image":"w","futureToo":[1,2],"resources":{"limits":{"cpu":"1000m"}},"env":[{"name":"A","value":"1"}]}]}}`
	if !jsonpatch.Equal(after, []byte(want)) {
		t.Errorf("patch %s makes\n%s, want\n%s", got.Patch, after, want)
	}
}

// Fields that the Go type does not know go to no other element, and are not lost without a
// word: where it is not certain whose they are, the review is refused.
func TestMutate_UncertainOriginIsRefused_H2(t *testing.T) {
	s := newServer(t, webhook.Options{})
	webhook.Mutate(s, "", func(_ context.Context, _ *webhook.Request, pod *corev1.Pod) error {
		pod.Spec.Tolerations = []corev1.Toleration{{Key: "mine"}}
		return nil
	})
	must(t, s.Err())
	for _, c := range []struct {
		name, tolerations string
		refused           bool
	}{
		{"a field that the type does not know", `[{"key":"theirs","future":1}]`, true},
		{"one without a value", `[{"key":"theirs","future":false}]`, true},
		{"a known field without a value, which the type does not write", `[{"key":"theirs","value":""}]`, false},
		{"an unknown field elsewhere", `[{"key":"theirs"}],"future":true`, false},
		{"nothing to replace", `[]`, false},
	} {
		raw := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"one"},"spec":{"tolerations":` + c.tolerations + `}}`
		req := ofConfigMap(admissionv1.Create, "null", raw)
		req.Kind.Kind = "Pod"
		code, answer := post(t, s, "/mutate--v1-pod", review(t, req))
		switch {
		case c.refused && (code != http.StatusInternalServerError || !strings.Contains(answer, `spec.tolerations[0].future`)):
			t.Errorf("%s: %d %s, want it refused with the field", c.name, code, answer)
		case !c.refused && code != http.StatusOK:
			t.Errorf("%s: %d %s, want an answer", c.name, code, answer)
		case !c.refused:
			p, err := jsonpatch.DecodePatch(admit(t, s, "/mutate--v1-pod", req).Patch)
			must(t, err)
			after, err := p.Apply([]byte(raw))
			must(t, err)
			if !strings.Contains(string(after), `"tolerations":[{"key":"mine"}]`) {
				t.Errorf("%s: %s, want the list that the function returned", c.name, after)
			}
		}
	}
}

func TestMutate_NothingChangedIsNoPatch_H2(t *testing.T) {
	s := newServer(t, webhook.Options{})
	calls := 0
	webhook.Mutate(s, "", func(_ context.Context, req *webhook.Request, cm *corev1.ConfigMap) error {
		calls++
		if cm.Data["deny"] != "" {
			cm.Data["deny"] = "changed"
			return errors.New("no")
		}
		req.Warn("seen")
		return nil
	})
	for _, c := range []struct {
		op       admissionv1.Operation
		old, obj string
		allowed  bool
	}{
		{admissionv1.Create, "null", `{"data":{"a":"b"}}`, true},
		{admissionv1.Delete, `{"data":{"a":"b"}}`, "null", true},
		{admissionv1.Create, "null", `{"data":{"deny":"x"}}`, false},
	} {
		got := admit(t, s, "/mutate--v1-configmap", ofConfigMap(c.op, c.old, c.obj))
		// The server rejects a patch type without a patch, and any patch of a denial.
		if got.Allowed != c.allowed || got.Patch != nil || got.PatchType != nil {
			t.Errorf("%s %s = %+v, want allowed %v and no patch", c.op, c.obj, got, c.allowed)
		}
	}
	if calls != 2 {
		t.Errorf("called %d times, want 2: what is deleted cannot be changed", calls)
	}
}

func FuzzReview_H1(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","kind":{"version":"v1","kind":"ConfigMap"},"object":{"data":{"a":"b"}}}}`))
	f.Add([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"example.dev/v2","objects":[{"apiVersion":"example.dev/v1","kind":"Site","metadata":{"labels":{"a":"b"}},"spec":{"replicas":3}}]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s := newServer(t, webhook.Options{})
		webhook.Mutate(s, "/mutate", func(_ context.Context, _ *webhook.Request, cm *corev1.ConfigMap) error {
			metav1.SetMetaDataLabel(&cm.ObjectMeta, "a", "b")
			return nil
		})
		webhook.Validate(s, "/validate", nothing[*corev1.ConfigMap])
		webhook.Convert(s, siteSpoke())
		for _, path := range []string{"/mutate", "/validate", "/convert"} {
			code, answer := post(t, s, path, string(body))
			if !json.Valid([]byte(answer)) || code == 500 {
				t.Errorf("%s = %d %q, want an answer that can be read, and no fault of the server", path, code, answer)
			}
		}
	})
}
