// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package resource makes Kubernetes kinds from Go structs, without generated
// code.
//
//	// Frontend runs replicas of an image.
//	type Frontend struct {
//		metav1.TypeMeta   `json:",inline"`
//		metav1.ObjectMeta `json:"metadata,omitempty"`
//
//		Spec   FrontendSpec   `json:"spec"`
//		Status FrontendStatus `json:"status,omitempty"`
//	}
//
//	var frontends = resource.Define[Frontend](GroupVersion)
//
//	func (f *Frontend) DeepCopyObject() runtime.Object { return frontends.DeepCopy(f) }
//
//	func AddToScheme(scheme *runtime.Scheme) error { return frontends.AddToScheme(scheme) }
//
// The struct is the same as with kubebuilder, so its markers and tools work
// unchanged. The list of the kind is resource.List[Frontend].
//
//	Go struct ──Define──▶ Kind   a plan of copies, compiled once
//	                       ├─ DeepCopy ──▶ DeepCopyObject of the struct
//	                       └─ AddToScheme ──▶ runtime.Scheme: kind and list
//
// # Promises
//
//	O1 a copy equals its original, nil and empty included, and shares no memory
//	   that can be modified
//	O2 a type that cannot be copied or encoded is an error of AddToScheme, which
//	   names the field and what to do
//
// # What a type may contain
//
// Everything that encodes to JSON and has exported fields: basic types, strings,
// structs, pointers, slices, arrays, and maps with keys of a string type. A type
// with a DeepCopyInto method is copied by it, whether generated or written by
// hand, as are the types of Kubernetes. Interfaces cannot be copied: use
// runtime.RawExtension, or JSON of package apiextensions/v1. Types that contain
// themselves have no CRD, and are refused.
//
// # Concurrency
//
// A Kind is immutable and safe for concurrent use.
//
// # Testing
//
// A test of the program calls AddToScheme, which returns what is wrong with a
// type.
package resource
