// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"fmt"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/console"
)

func withConsole() (*manager.Manager, error) {
	return manager.New(manager.Options{
		MetricsServing: manager.Serving{Console: console.Handler},
	})
}

// The log of the manager says where the console is.
func ExampleHandler() {
	mgr, err := withConsole()
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := mgr.Run(manager.SignalContext()); err != nil {
		fmt.Println(err)
	}
}
