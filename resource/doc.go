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
//	two functions ──Convert──▶ Conversion ──▶ webhook.Spoke
//	                            └─ internal/jsontree: what one version cannot express
//
// # Promises
//
//	O1 a copy equals its original, nil and empty included, and shares no memory
//	   that can be modified
//	O2 a type that cannot be copied or encoded is an error of AddToScheme, which
//	   names the field and what to do
//	O9 a conversion to another version and back loses nothing, and what a client of the
//	   other version has changed counts
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
// # Several versions
//
// Each version of a kind is a struct in a package of its own. One of them, best
// the stored one, is the hub, and Convert makes of two functions the conversion
// between it and another version:
//
//	var Conversion = resource.Convert(GroupVersion, v1.GroupVersion, toV1, fromV1)
//
// The functions set the fields that both versions have. The rest is kept in an
// annotation, OnlyIn and the version that has it: each field with its value, and
// with the value that the functions give it on the way back. On that way a field
// is restored if the functions still give the same. If they do not, a client of
// the other version has changed it, and the change counts. Lists are restored as
// a whole. A client that removes the annotation removes the fields.
//
// # Concurrency
//
// A Kind and a Conversion are immutable and safe for concurrent use.
//
// # Testing
//
// A test of the program calls AddToScheme, which returns what is wrong with a
// type, and resourcetest.RoundTrip with each conversion.
package resource
