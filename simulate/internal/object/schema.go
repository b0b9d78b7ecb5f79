// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Schema is the schema of one version of a kind. A kind without one accepts and keeps
// everything.
type Schema interface {
	// Prune drops fields that the kind does not have and returns their paths. It fails if a
	// part has a type that cannot be decoded.
	Prune(fields map[string]any) (unknown []string, err error)
	SetDefaults(fields map[string]any)
	// Validate adds the errors of an object, or of what a subresource changes in it, to
	// those of its metadata. old is nil for a create.
	Validate(subresource string, fields, old map[string]any, found field.ErrorList) field.ErrorList
	// TypeConverter returns how server-side apply reads objects. nil: it deduces the types.
	TypeConverter() managedfields.TypeConverter
	OpenAPI() *spec.Schema
}
