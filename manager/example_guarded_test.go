// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"fmt"

	"github.com/flyball-dev/flyball/manager"
)

func guardedMetrics() manager.Options {
	return manager.Options{
		MetricsAddress: ":8443",
		MetricsServing: manager.Serving{Secure: true, Guard: true},
	}
}

// Metrics are served over TLS to those whom the API server authorizes.
func ExampleServing() {
	mgr, err := manager.New(guardedMetrics())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := mgr.Run(manager.SignalContext()); err != nil {
		fmt.Println(err)
	}
}
