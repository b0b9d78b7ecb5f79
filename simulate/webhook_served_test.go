// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
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

// A webhook server that redirects before it has read the body reads the rest of
// it only if the connection may be used again. So the question must not announce
// that its connection ends, and the connection must end all the same.
func TestServer_WebhooksMayRedirectBeforeTheyRead_S15(t *testing.T) {
	asked := make(chan string, 2)
	ended := make(chan struct{}, 2)
	hook := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- fmt.Sprint(r.URL.Path, " close: ", r.Close)
		if r.URL.Path == "//validate" {
			http.Redirect(w, r, "/validate", http.StatusTemporaryRedirect)
			return
		}
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Errorf("read the question: %v", err)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Errorf("answer: %v", err)
		}
	}))
	hook.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			ended <- struct{}{}
		}
	}
	hook.StartTLS()
	defer hook.Close()

	h := &hookServer{t: t, Server: simulate.New(simulate.Options{Namespaces: []string{"ns"}})}
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
	h.says("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", `{"metadata":{"name":"hooks"},"webhooks":[{"name":"validate.example.com",
		"clientConfig":{"url":"`+hook.URL+`//validate","caBundle":"`+base64.StdEncoding.EncodeToString(bundle)+`"},"sideEffects":"None","admissionReviewVersions":["v1"],
		"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["*"]}]}]}`, 201)
	h.says("POST", mapsPath, `{"metadata":{"name":"a"},"data":{"long":"`+strings.Repeat("x", 200_000)+`"}}`, 201)
	for _, want := range []string{"//validate close: false", "/validate close: false"} {
		if got := <-asked; got != want {
			t.Errorf("got a question %q, want %q", got, want)
		}
	}
	<-ended
}
