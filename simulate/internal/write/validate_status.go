// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// validateStatus validates the replica counts of a status: none is negative, and none is
// larger than the total, or than the ready ones.
func validateStatus(k *kinds.Kind, obj *object.Object) (errs field.ErrorList) {
	part := map[string]string{"deployments.apps": "updatedReplicas", "replicasets.apps": "fullyLabeledReplicas"}[k.GroupResource().String()]
	if part == "" {
		return nil
	}
	status, _ := obj.Fields["status"].(map[string]any)
	count := func(name string) int64 {
		n, _ := status[name].(int64)
		return n
	}
	path := field.NewPath("status")
	parts := []string{part, "readyReplicas", "availableReplicas"}
	for _, name := range append([]string{"replicas", "observedGeneration"}, parts...) {
		errs = append(errs, apivalidation.ValidateNonnegativeField(count(name), path.Child(name))...)
	}
	for _, name := range parts {
		if count(name) > count("replicas") {
			errs = append(errs, field.Invalid(path.Child(name), count(name), "cannot be greater than status.replicas"))
		}
	}
	if count("availableReplicas") > count("readyReplicas") {
		errs = append(errs, field.Invalid(path.Child("availableReplicas"), count("availableReplicas"), "cannot be greater than readyReplicas"))
	}
	return errs
}
