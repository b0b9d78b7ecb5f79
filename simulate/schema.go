// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// objectSchema is what one version of a kind demands of its objects. A kind
// without one takes and keeps everything.
type objectSchema interface {
	// unknown are the paths of fields that the kind does not have.
	unknown(fields map[string]any) []string
	// prune drops them.
	prune(fields map[string]any)
	setDefaults(fields map[string]any)
	// validate says what is wrong with an object; old is nil for a create.
	validate(fields, old map[string]any) field.ErrorList
	// typeConverter is how server-side apply reads objects. nil: by their look.
	typeConverter() managedfields.TypeConverter
	openAPI() *spec.Schema
}
