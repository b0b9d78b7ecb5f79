// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
)

// FuzzStatus checks that any error body results in an error of the right code.
func FuzzStatus(f *testing.F) {
	s := fixture.TestScheme()
	status := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: 403, Reason: metav1.StatusReasonForbidden, Details: &metav1.StatusDetails{RetryAfterSeconds: 3}}
	f.Add(403, "7", fixture.ProtobufPeer(s).Encode(f, status))
	f.Add(403, "x", fixture.JSONPeer(s).Encode(f, status))
	f.Add(404, "", []byte("404 page not found\n"))
	f.Add(502, "-1", []byte("<html>\xff"))
	f.Fuzz(func(t *testing.T, code int, retryAfter string, body []byte) {
		if code < 400 || code > 599 {
			return
		}
		answer := &http.Response{StatusCode: code, Header: http.Header{"Retry-After": {retryAfter}}, Body: io.NopCloser(bytes.NewReader(body))}
		err := restclient.ErrorOf(answer, "list", schema.GroupResource{Resource: "pods"})
		if err == nil || err.Error() == "" && len(body) == 0 {
			t.Fatal("no error comes out")
		}
		if r, wait := Classify(err); r == 0 || wait < 0 {
			t.Fatalf("got result %d and a wait of %v", r, wait)
		}
	})
}
