// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"testing"

	"github.com/flyball-dev/flyball/simulate/kit"
)

var withWebhooks = kit.Config{
	Seeds:    20,
	CRDs:     []string{"config/crd.yaml"},
	Webhooks: []string{"deploy/webhooks.yaml"},
	Scheme:   testScheme(),
}

// The simulated API server calls the webhooks that setup registers.
func ExampleConfig_webhooks() {
	var t *testing.T // that of the test
	kit.Test(t, withWebhooks, keepsThePage)
}
