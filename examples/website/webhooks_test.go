// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/webhook"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

// withWebhooks returns a manager without a server, whose webhooks are a handler.
func withWebhooks(t *testing.T) *manager.Manager {
	t.Helper()
	opts := testOptions()
	opts.Config = &rest.Config{Host: "http://127.0.0.1:1"}
	mgr, err := manager.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	addWebhooks(mgr)
	return mgr
}

func TestWebhooks_CompleteAndJudge(t *testing.T) {
	mgr := withWebhooks(t)
	if err := mgr.Webhooks().Err(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, old, host string
		allowed         bool
		patch, text     string
	}{
		{path: "mutate", host: "WWW.Example.com.", allowed: true, patch: `[{"op":"replace","path":"/spec/host","value":"www.example.com"}]`},
		{path: "mutate", host: "www.example.com", allowed: true},
		{path: "validate", host: "www.example.com", allowed: true},
		{path: "validate", host: "no dot", text: "spec.host: Invalid value"},
		{path: "validate", host: "nodot", allowed: true, text: "has no dot"},
		{path: "validate", old: "no dot", host: "no dot", allowed: true},
		{path: "validate", host: "", allowed: true},
	} {
		got := admit(t, mgr.Webhooks(), "/"+c.path+"-example-flyball-dev-v1-website", c.old, c.host)
		text := strings.Join(got.Warnings, " ")
		if got.Result != nil {
			text += got.Result.Message
		}
		if got.Allowed != c.allowed || string(got.Patch) != c.patch || !strings.Contains(text, c.text) || c.text == "" && text != "" {
			t.Errorf("%s %q: allowed %v, patch %s, %q; want %v, %s, %q", c.path, c.host, got.Allowed, got.Patch, text, c.allowed, c.patch, c.text)
		}
	}
}

// admit sends a review of a Website whose host becomes host; an empty old creates it.
func admit(t *testing.T, s *webhook.Server, path, old, host string) *admissionv1.AdmissionResponse {
	t.Helper()
	raw := func(host string) runtime.RawExtension {
		text, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"name": "site", "namespace": "ns"}, "spec": map[string]any{"content": "<p>", "host": host},
		})
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: text}
	}
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "1", Kind: metav1.GroupVersionKind(webv1.GroupVersion.WithKind("Website")), Operation: admissionv1.Create,
			Namespace: "ns", Name: "site", Object: raw(host),
		},
	}
	if old != "" {
		review.Request.Operation, review.Request.OldObject = admissionv1.Update, raw(old)
	}
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	review = admissionv1.AdmissionReview{}
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || review.Response == nil {
		t.Fatalf("%s = %d %s, want an answer", path, w.Code, w.Body)
	}
	return review.Response
}

var _ = Describe("The webhooks", func() {
	It("complete and judge Websites before a real server stores them", func(ctx context.Context) {
		opts := testOptions()
		opts.Config = env.Config()
		opts.Webhooks = webhookOptions(webhook.Options{DrainDelay: -1, Address: "127.0.0.1:0"})
		opts.Webhooks.Managed.Namespace, opts.Webhooks.Managed.Names = "default", []string{"127.0.0.1"}
		mgr, err := manager.New(opts)
		Expect(err).NotTo(HaveOccurred())
		Expect(setup(mgr)).To(Succeed())
		addWebhooks(mgr)
		ctx, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- mgr.Run(ctx) }()
		DeferCleanup(func() {
			stop()
			Eventually(done).WithTimeout(20 * time.Second).Should(Receive(BeNil()))
		})
		Eventually(mgr.Webhooks().Started()).WithTimeout(20 * time.Second).Should(BeClosed())
		_, err = env.Kubectl(ctx, "apply", "-f", writeFile("webhooks.yaml", strings.ReplaceAll(webhookConfigurations, "ADDRESS", mgr.Webhooks().Addr())))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			_, err := env.Kubectl(ctx, "delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", "website")
			Expect(err).NotTo(HaveOccurred())
		})

		site := func(name, host string) string {
			return writeFile(name+".yaml", "apiVersion: example.flyball.dev/v1\nkind: Website\nmetadata: {name: "+name+", namespace: default}\nspec: {content: x, host: "+host+"}\n")
		}
		Eventually(func() error {
			_, err := env.Kubectl(ctx, "apply", "-f", site("first", "WWW.Example.com."))
			return err
		}).WithTimeout(time.Minute).Should(Succeed(), "the server is told whom to trust")
		Expect(kubectl(ctx, "get", "website", "first", "-o", "jsonpath={.spec.host}")()).To(Equal("www.example.com"))
		Eventually(func() error {
			_, err := env.Kubectl(ctx, "apply", "-f", site("second", "www.EXAMPLE.com"))
			return err
		}).WithTimeout(20*time.Second).Should(MatchError(ContainSubstring("Website default/first has this host")), "once the first is in the cache")
		_, err = env.Kubectl(ctx, "delete", "website", "first", "--timeout=20s")
		Expect(err).NotTo(HaveOccurred())
	})
})

const webhookConfigurations = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: website}
webhooks:
- name: mutate.websites.example.flyball.dev
  admissionReviewVersions: [v1]
  sideEffects: None
  rules: [{apiGroups: [example.flyball.dev], apiVersions: [v1], resources: [websites], operations: [CREATE, UPDATE]}]
  clientConfig: {url: "https://ADDRESS/mutate-example-flyball-dev-v1-website"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: website}
webhooks:
- name: validate.websites.example.flyball.dev
  admissionReviewVersions: [v1]
  sideEffects: None
  rules: [{apiGroups: [example.flyball.dev], apiVersions: [v1], resources: [websites], operations: [CREATE, UPDATE]}]
  clientConfig: {url: "https://ADDRESS/validate-example-flyball-dev-v1-website"}
`
