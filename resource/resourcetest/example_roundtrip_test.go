// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package resourcetest_test

import (
	"testing"

	"github.com/flyball-dev/flyball/resource"
	"github.com/flyball-dev/flyball/resource/resourcetest"
)

var conversion = resource.Convert(then, now, toNew, toOld)

func TestConversion(t *testing.T) {
	resourcetest.RoundTrip(t, conversion, resourcetest.Options{})
}

// A field that one of the functions forgets fails the test.
func ExampleRoundTrip() {
	TestConversion(&testing.T{})
	// Output:
}
