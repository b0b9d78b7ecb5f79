// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
)

// A child is deleted only if the server would accept it as a new object.
func TestClient_DeletesWhatIsValidAsANewObject_R25(t *testing.T) {
	done := reply{body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"prod"}}`}
	deleted := reply{body: `{"apiVersion":"v1","kind":"Status","status":"Success"}`}
	exists, gone := refusal(409, metav1.StatusReasonAlreadyExists), refusal(404, metav1.StatusReasonNotFound)
	for _, row := range []struct {
		what    string
		answers []reply
		want    []string
		err     func(error) bool
	}{
		{"valid", []reply{exists, deleted}, []string{"POST", "DELETE"}, nil},
		{"gone before the dry run", []reply{done, gone}, []string{"POST", "DELETE"}, apierrors.IsNotFound},
		{"held by a finalizer", []reply{exists, done}, []string{"POST", "DELETE"}, nil},
		{"invalid in itself", []reply{refusal(422, metav1.StatusReasonInvalid)}, []string{"POST"}, apierrors.IsInvalid},
		{"over the quota", []reply{refusal(403, metav1.StatusReasonForbidden)}, []string{"POST"}, apierrors.IsForbidden},
		{"changed since", []reply{exists, refusal(409, metav1.StatusReasonConflict)}, []string{"POST", "DELETE"}, apierrors.IsConflict},
	} {
		c, s := scripted(t, client.Options{FieldOwner: "website"}, row.answers...)
		is := configMap("prod", "web", nil)
		is.UID, is.ResourceVersion = "u", "7"
		err := c.DeleteToRecreate(t.Context(), configMap("prod", "web", map[string]string{"a": ""}), is, metav1.DeletePropagationOrphan)
		if got := methods(s); !slices.Equal(got, row.want) || (err == nil) != (row.err == nil) || row.err != nil && !row.err(err) {
			t.Errorf("%s: sent %q, %v; want %q", row.what, got, err, row.want)
		}
		for _, r := range s.requests() {
			if r.method == http.MethodPost && !strings.Contains(r.query, "dryRun=All") {
				t.Errorf("%s: %s?%s is no dry run", row.what, r.path, r.query)
			}
			if r.method == http.MethodDelete && !strings.Contains(r.body, `"preconditions":{"uid":"u","resourceVersion":"7"},"propagationPolicy":"Orphan"`) {
				t.Errorf("%s: deleted with %s", row.what, r.body)
			}
		}
	}
}
