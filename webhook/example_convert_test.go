// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"fmt"
	"net/http/httptest"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/webhook"
)

func addVersions(mgr *manager.Manager) {
	webhook.Convert(mgr.Webhooks(), webhook.Spoke(
		func(from *oldWebsite, to *webv1.Website) error {
			to.Spec.Content = from.Spec.Page
			return nil
		},
		func(from *webv1.Website, to *oldWebsite) error {
			to.Spec.Page = from.Spec.Content
			return nil
		}))
}

// oldWebsite is a former version of the Website.
type oldWebsite struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Page string `json:"page"`
	} `json:"spec"`
}

func (w *oldWebsite) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// Both versions are in the manager's scheme.
func ExampleConvert() {
	scheme := runtime.NewScheme()
	if err := webv1.AddToScheme(scheme); err != nil {
		fmt.Println(err)
		return
	}
	old := schema.GroupVersionKind{Group: webv1.GroupVersion.Group, Version: "v1beta1", Kind: "Website"}
	scheme.AddKnownTypeWithName(old, &oldWebsite{})
	mgr, err := manager.New(manager.Options{Config: &rest.Config{Host: "http://api.test"}, Scheme: scheme})
	if err != nil {
		fmt.Println(err)
		return
	}
	addVersions(mgr)

	review := httptest.NewRequest("POST", "/convert", strings.NewReader(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
		"request": {
			"uid": "8f14", "desiredAPIVersion": "example.flyball.dev/v1",
			"objects": [{"apiVersion": "example.flyball.dev/v1beta1", "kind": "Website",
				"metadata": {"name": "site"}, "spec": {"page": "It balances."}}]}}`))
	review.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	mgr.Webhooks().ServeHTTP(answer, review)
	fmt.Println(answer.Body)
	// Output:
	// {"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"8f14","convertedObjects":[{"apiVersion":"example.flyball.dev/v1","kind":"Website","metadata":{"name":"site"},"spec":{"content":"It balances."},"status":{}}],"result":{"metadata":{},"status":"Success"}}}
}
