// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"fmt"

	"github.com/flyball-dev/flyball/manager"
)

func withRecordings() (*manager.Manager, error) {
	return manager.New(manager.Options{
		Record: manager.Record{Dir: "/var/lib/operator/recordings", Redact: []string{"ConfigMap:data"}},
	})
}

// The last hour is on disk when something has gone wrong.
func ExampleRecord() {
	_, err := withRecordings()
	fmt.Println(err)
}
