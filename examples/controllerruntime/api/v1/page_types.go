// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the API: the Page kind.
package v1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the Page kind.
var GroupVersion = schema.GroupVersion{Group: "example.flyball.dev", Version: "v1"}

// Page is a page of HTML that a web server shows, and that the ConfigMap "pages" of its namespace lists.
type Page struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PageSpec   `json:"spec"`
	Status PageStatus `json:"status,omitempty"`
}

// PageSpec is the desired state.
type PageSpec struct {
	// Content of the page.
	Content string `json:"content"`
	// Replicas of the web server. The CRD's default is 1.
	Replicas int32 `json:"replicas"`
}

// PageStatus is the observed state.
type PageStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ReadyReplicas of the web server.
	ReadyReplicas int32 `json:"readyReplicas"`
	// Conditions: Ready.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PageList is a list of Pages.
type PageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Page `json:"items"`
}

// AddToScheme registers the kind.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Page{}, &PageList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// DeepCopyObject copies the page.
func (p *Page) DeepCopyObject() runtime.Object {
	out := *p
	p.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = slices.Clone(p.Status.Conditions)
	return &out
}

// DeepCopyObject copies each item.
func (l *PageList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Page, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Page)
	}
	return &out
}
