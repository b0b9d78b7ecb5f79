// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
)

func lookAgain(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	// Look again in a minute, behind everything that is live.
	return reconcile.Result{RequeueAfter: time.Minute, Priority: new(reconcile.LowPriority)}, nil
}

// A Result says when the key runs again, and with which priority.
func ExampleResult() {
	result, err := lookAgain(context.Background(), reconcile.Key{Namespace: "default", Name: "site"})
	fmt.Println(result.RequeueAfter, *result.Priority, err)
	// Output:
	// 1m0s -100 <nil>
}
