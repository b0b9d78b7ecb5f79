// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateData holds the names in a ConfigMap or Secret, and how much is in it,
// which is said of the path whole.
func validateData[V ~string | ~[]byte](data map[string]V, binary map[string][]byte, whole *field.Path) (errs field.ErrorList) {
	total := 0
	for _, name := range slices.Sorted(maps.Keys(data)) {
		errs = append(errs, invalids(field.NewPath("data").Key(name), name, utilvalidation.IsConfigMapKey(name))...)
		if _, twice := binary[name]; twice {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(name), name, "duplicate of key present in binaryData"))
		}
		total += len(data[name])
	}
	for _, name := range slices.Sorted(maps.Keys(binary)) {
		errs = append(errs, invalids(field.NewPath("binaryData").Key(name), name, utilvalidation.IsConfigMapKey(name))...)
		total += len(binary[name])
	}
	if total > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(whole, "", corev1.MaxSecretSize))
	}
	return errs
}
