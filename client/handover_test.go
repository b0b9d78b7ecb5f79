// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
)

// owners is an answer with the metadata of ConfigMap prod/web, whose fields these own by Update.
func owners(t *testing.T, managers ...string) reply {
	t.Helper()
	m := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}}
	m.Namespace, m.Name, m.UID, m.ResourceVersion = "prod", "web", "u", "7"
	for _, manager := range managers {
		f := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1"}
		if manager != "without-fields" {
			f.FieldsV1 = &metav1.FieldsV1{}
			f.FieldsV1.SetRawBytes([]byte(`{"f:data":{"f:old":{}}}`))
		}
		m.ManagedFields = append(m.ManagedFields, f)
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return reply{body: string(data)}
}

func refusal(code int, reason metav1.StatusReason) reply {
	data, _ := json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: string(reason)})
	return reply{code: code, body: string(data)}
}

// methods returns the method and the content type of each request.
func methods(s *script) (out []string) {
	for _, r := range s.requests() {
		kind := ""
		if r.method == http.MethodPatch {
			kind, _, _ = strings.Cut(strings.TrimPrefix(r.header.Get("Content-Type"), "application/"), "-")
			kind = " " + kind
		}
		out = append(out, r.method+kind)
	}
	return out
}

func TestApply_HandsOverOnce_C18(t *testing.T) {
	done := reply{body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"prod"}}`}
	for _, row := range []struct {
		what    string
		answers []reply
		want    []string // of two applies
	}{
		{"something to hand over", []reply{owners(t, "kubelet", "manager"), done, done, done}, []string{"GET", "PATCH json", "PATCH apply", "PATCH apply"}},
		{"nothing to hand over", []reply{owners(t, "kubelet"), done, done}, []string{"GET", "PATCH apply", "PATCH apply"}},
		{"no managedFields", []reply{owners(t), done, done}, []string{"GET", "PATCH apply", "PATCH apply"}},
		{"an entry without fields", []reply{owners(t, "without-fields", "manager"), done, done, done}, []string{"GET", "PATCH json", "PATCH apply", "PATCH apply"}},
		{"changed in between", []reply{owners(t, "manager"), refusal(409, metav1.StatusReasonConflict), owners(t, "manager"), done, done, done},
			[]string{"GET", "PATCH json", "GET", "PATCH json", "PATCH apply", "PATCH apply"}},
		{"not there yet", []reply{refusal(404, metav1.StatusReasonNotFound), done, owners(t), done}, []string{"GET", "PATCH apply", "GET", "PATCH apply"}},
	} {
		c, s := scripted(t, client.Options{FieldOwner: "website"}, row.answers...)
		view := c.With(client.HandOver{"manager", "without-fields"})
		for range 2 {
			if err := view.ApplyChild(t.Context(), configMap("prod", "web", nil), "", nil); err != nil {
				t.Errorf("%s: %v", row.what, err)
			}
		}
		if got := methods(s); !slices.Equal(got, row.want) {
			t.Errorf("%s: sent %q, want %q", row.what, got, row.want)
		}
		for _, r := range s.requests() {
			if r.method == http.MethodPatch && strings.HasPrefix(r.body, "[") &&
				(!strings.Contains(r.body, `"path":"/metadata/resourceVersion","value":"7"`) || strings.Contains(r.body, `"manager":"manager"`) ||
					!strings.Contains(r.body, `"manager":"website","operation":"Apply"`)) {
				t.Errorf("%s: sent %s, want the version that was read, and website as the one that applies", row.what, r.body)
			}
		}
	}
	c, s := scripted(t, client.Options{FieldOwner: "website"}, refusal(403, metav1.StatusReasonForbidden))
	err := c.Apply(t.Context(), configMap("prod", "web", nil), client.HandOver{"manager"})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "hand over fields") || len(s.requests()) != 1 {
		t.Errorf("got %v after %q, want that the hand-over is forbidden, and nothing applied", err, methods(s))
	}
	c, s = scripted(t, client.Options{FieldOwner: "website"}, reply{body: "{}"})
	if err := c.Apply(t.Context(), configMap("prod", "web", nil), client.HandOver{"manager"}, client.DryRun{}); err != nil || len(s.requests()) != 1 {
		t.Errorf("a dry run sent %q, %v; want the apply alone", methods(s), err)
	}
}
