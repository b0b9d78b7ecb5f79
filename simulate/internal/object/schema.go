// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Schema is what one version of a kind demands of its objects. A kind
// without one takes and keeps everything.
type Schema interface {
	// prune drops fields that the kind does not have, and returns their paths.
	// It fails where a part cannot be what it has to be.
	Prune(fields map[string]any) (unknown []string, err error)
	SetDefaults(fields map[string]any)
	// validate adds what is wrong with an object, or with what a subresource
	// changes of it, to what is wrong with its metadata; old is nil for a create.
	Validate(subresource string, fields, old map[string]any, found field.ErrorList) field.ErrorList
	// typeConverter is how server-side apply reads objects. nil: by their look.
	TypeConverter() managedfields.TypeConverter
	OpenAPI() *spec.Schema
}
