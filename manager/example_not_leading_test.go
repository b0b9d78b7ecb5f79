// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"errors"
	"fmt"

	"github.com/flyball-dev/flyball/manager"
)

func explain(err error) string {
	if errors.Is(err, manager.ErrNotLeading) {
		return "another replica leads; it sees the same object"
	}
	return err.Error()
}

// The gate refuses writes when the lease can no longer be trusted.
func Example_notLeading() {
	err := fmt.Errorf(`update Deployment "prod/web": %w`, manager.ErrNotLeading)
	fmt.Println(explain(err))
	// Output:
	// another replica leads; it sees the same object
}
