// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/webhook"
)

// handled asks a handler, without a network.
type handled struct{ handler http.Handler }

// RoundTrip is what an http.RoundTripper does.
func (s handled) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	s.handler.ServeHTTP(answer, r)
	return answer.Result(), nil
}

// What package webhook answers, the simulated server understands as the real one does.
func TestServer_AsksWhatPackageWebhookServes_S15(t *testing.T) {
	hooks := webhook.New(nil, nil, webhook.Options{})
	webhook.Mutate(hooks, "/mutate", func(_ context.Context, req *webhook.Request, cm *corev1.ConfigMap) error {
		metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "by", req.UserInfo.Username)
		return nil
	})
	webhook.Validate(hooks, "/validate", func(_ context.Context, req *webhook.Request, old, cm *corev1.ConfigMap) error {
		switch {
		case cm == nil && old.Data["keep"] != "":
			return errors.New("it is to be kept")
		case cm != nil && cm.Data["panic"] != "":
			panic("asked to")
		}
		req.Warn("looked at %s, dry run %v", req.Key(), req.IsDryRun())
		return nil
	})
	if err := hooks.Err(); err != nil {
		t.Fatal(err)
	}
	h := &hookServer{t: t, Server: simulate.New(simulate.Options{WebhookTransport: handled{hooks}, Namespaces: []string{"ns"}})}
	h.configure("mutating", "mutate")
	h.configure("validating", "validate")
	h.says("POST", mapsPath, `{"metadata":{"name":"a"},"data":{"keep":"1"}}`, 201, `"by":"`, "looked at ns/a, dry run false")
	h.says("POST", mapsPath+"?dryRun=All", `{"metadata":{"name":"b"}}`, 201, "looked at ns/b, dry run true")
	h.says("DELETE", mapsPath+"/a", "", 403, `admission webhook \"validate.example.com\" denied the request: it is to be kept`)
	h.says("POST", mapsPath, `{"metadata":{"name":"c"},"data":{"panic":"1"}}`, 500, "failed calling webhook", "panic in the webhook: asked to")
}
