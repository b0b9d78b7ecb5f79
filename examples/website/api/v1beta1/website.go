// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 has the previous version of the Website kind. v1 is the hub: it is stored
// and reconciled. A webhook converts objects of this version.
package v1beta1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/resource"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

// GroupVersion of the Website kind.
var GroupVersion = schema.GroupVersion{Group: webv1.GroupVersion.Group, Version: "v1beta1"}

// Website is a page that replicas of a web server serve.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WebsiteSpec         `json:"spec,omitempty"`
	Status webv1.WebsiteStatus `json:"status,omitempty"`
}

// WebsiteSpec is the desired state.
type WebsiteSpec struct {
	// Page is called content in v1.
	Page string `json:"page"`
	// Replicas of the web server. The server's schema fills in 1.
	Replicas *int32 `json:"replicas,omitempty"`
	// Host is the name under which the page is served.
	Host string `json:"host,omitempty"`
}

// WebsiteList is a list of Websites.
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Website `json:"items"`
}

// AddToScheme registers the version for conversion.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Conversion converts Websites to and from v1, the hub.
var Conversion = resource.Convert(GroupVersion, webv1.GroupVersion, toV1, fromV1)

func toV1(from *Website, to *webv1.Website) error {
	to.Spec = webv1.WebsiteSpec{Content: from.Spec.Page, Replicas: from.Spec.Replicas, Host: from.Spec.Host}
	to.Status = from.Status
	return nil
}

func fromV1(from *webv1.Website, to *Website) error {
	to.Spec = WebsiteSpec{Page: from.Spec.Content, Replicas: from.Spec.Replicas, Host: from.Spec.Host}
	to.Status = from.Status
	return nil
}

// DeepCopyObject returns a copy that shares nothing with w.
func (w *Website) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if w.Spec.Replicas != nil {
		out.Spec.Replicas = new(*w.Spec.Replicas)
	}
	out.Status.Conditions = slices.Clone(w.Status.Conditions)
	return &out
}

// DeepCopyObject returns a copy that shares nothing with l.
func (l *WebsiteList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Website, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Website)
	}
	return &out
}
