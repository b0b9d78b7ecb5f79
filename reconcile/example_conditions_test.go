// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/reconcile"
)

// A condition's transition time changes with its status only.
func ExampleConditions() {
	site := &webv1.Website{}
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

	conditions := reconcile.ConditionsOf(site, &site.Status.Conditions, noon)
	fmt.Println(conditions.False("Ready", "ReplicasMissing", "no replica serves the page"))

	later := reconcile.ConditionsOf(site, &site.Status.Conditions, noon.Add(time.Minute))
	fmt.Println(later.False("Ready", "ReplicasMissing", "no replica serves the page"))
	fmt.Println(later.False("Ready", "ImageMissing", "the image cannot be pulled"))
	fmt.Println(later.Get("Ready").LastTransitionTime.UTC().Format(time.TimeOnly))

	fmt.Println(later.True("Ready", "Serving", "the page is served"))
	fmt.Println(later.Get("Ready").LastTransitionTime.UTC().Format(time.TimeOnly))
	// Output:
	// true
	// false
	// true
	// 12:00:00
	// true
	// 12:01:00
}
