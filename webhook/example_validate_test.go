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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/webhook"
)

func addRules(mgr *manager.Manager) {
	webhook.Validate(mgr.Webhooks(), "", func(ctx context.Context, req *webhook.Request, old, site *webv1.Website) error {
		if site == nil {
			return nil // it is deleted; old is what was there
		}
		if old != nil && old.Spec.Host != site.Spec.Host {
			return apierrors.NewInvalid(website, site.Name, field.ErrorList{
				field.Forbidden(field.NewPath("spec", "host"), "a Website keeps its host"),
			})
		}
		if site.Spec.Host == "" {
			req.Warn("spec.host is empty: the page is seen inside the cluster alone")
		}
		return nil
	})
}

var website = webv1.GroupVersion.WithKind("Website").GroupKind()

// A test gives the server a review without a network. In a cluster the manager serves it over TLS.
func ExampleValidate() {
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
	addRules(mgr)

	review := httptest.NewRequest("POST", "/validate-example-flyball-dev-v1-website", strings.NewReader(`{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": {
			"uid": "8f14", "operation": "UPDATE",
			"kind": {"group": "example.flyball.dev", "version": "v1", "kind": "Website"},
			"oldObject": {"metadata": {"name": "site"}, "spec": {"host": "old.example"}},
			"object": {"metadata": {"name": "site"}, "spec": {"host": "new.example"}}}}`))
	review.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	mgr.Webhooks().ServeHTTP(recorder, review)
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Response.Allowed, answer.Response.Result.Message)
	// Output:
	// false Website.example.flyball.dev "site" is invalid: spec.host: Forbidden: a Website keeps its host
}
