// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"
	"time"
)

// Kubernetes' equality panics on a type with unexported fields, such as time.Time.
func TestChanged_ComparesTypesWithUnexportedFields(t *testing.T) {
	now := time.Now()
	if !equal(now, now) || equal(now, now.Add(1)) || !equal([]any{now, 1}, []any{now, 1}) {
		t.Error("times are not compared by their values")
	}
}
