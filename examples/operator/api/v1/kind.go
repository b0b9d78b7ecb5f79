// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the API: the Frontend kind.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/resource"
)

// GroupVersion of the Frontend kind.
var GroupVersion = schema.GroupVersion{Group: "example.flyball.dev", Version: "v1"}

// Frontend runs replicas of an image.
//
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.readyReplicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name=Replicas,type=integer,JSONPath=.spec.replicas
// +kubebuilder:printcolumn:name=Ready,type=integer,JSONPath=.status.readyReplicas
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp
type Frontend struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FrontendSpec   `json:"spec"`
	Status FrontendStatus `json:"status,omitempty"`
}

// FrontendSpec is the desired state.
type FrontendSpec struct {
	// Image to run.
	//
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`
	// Replicas to run.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`
}

// FrontendStatus is the observed state.
type FrontendStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ReadyReplicas of the Deployment.
	//
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
	// Selector of the replicas' Pods, for autoscalers.
	Selector string `json:"selector,omitempty"`
	// Conditions: Ready.
	//
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FrontendList is a list of Frontends.
type FrontendList = resource.List[Frontend]

var frontends = resource.Define[Frontend](GroupVersion)

// AddToScheme registers the kind and its list.
func AddToScheme(scheme *runtime.Scheme) error { return frontends.AddToScheme(scheme) }

// DeepCopyObject implements runtime.Object.
func (obj *Frontend) DeepCopyObject() runtime.Object { return frontends.DeepCopy(obj) }
