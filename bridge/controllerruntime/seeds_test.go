// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"testing"

	"github.com/flyball-dev/flyball/simulate/kit"
)

// The example of the documentation passes its seeds.
func TestExample_SeedsPass(t *testing.T) { kit.Test(t, kit.Config{Seeds: 20}, keepsTheSecret) }
