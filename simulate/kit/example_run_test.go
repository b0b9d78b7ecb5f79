// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"testing"

	"github.com/flyball-dev/flyball/simulate/kit"
)

// A plan that a failed test has printed becomes a test when the bug is fixed.
func ExampleRun() {
	var t *testing.T // that of the test

	cfg := websites
	cfg.Faults = kit.Plan{
		kit.Reject(2, 503).BeforeWrite("patch ConfigMap", 2),
	}
	h := kit.Run(t, cfg, 0x7, keepsThePage)
	for _, v := range h.Violations {
		t.Error(v)
	}
}
