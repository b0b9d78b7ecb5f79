// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/webhook"
)

func addDefaults(mgr *manager.Manager) {
	webhook.Mutate(mgr.Webhooks(), "", func(ctx context.Context, req *webhook.Request, site *webv1.Website) error {
		if site.Spec.Replicas == nil {
			site.Spec.Replicas = new(int32(2))
		}
		return nil
	})
}

// The answer is a patch of what the function changed.
func ExampleMutate() {
	scheme := runtime.NewScheme()
	if err := webv1.AddToScheme(scheme); err != nil {
		fmt.Println(err)
		return
	}
	mgr, err := manager.New(manager.Options{Config: &rest.Config{Host: "http://api.test"}, Scheme: scheme})
	if err != nil {
		fmt.Println(err)
		return
	}
	addDefaults(mgr)

	review := httptest.NewRequest("POST", "/mutate-example-flyball-dev-v1-website", strings.NewReader(`{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": {
			"uid": "8f14", "operation": "CREATE",
			"kind": {"group": "example.flyball.dev", "version": "v1", "kind": "Website"},
			"object": {"metadata": {"name": "site"}, "spec": {"content": "It balances.", "unknown": true}}}}`))
	review.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	mgr.Webhooks().ServeHTTP(recorder, review)
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Response.Allowed, string(answer.Response.Patch))
	// Output:
	// true [{"op":"add","path":"/spec/replicas","value":2}]
}
