// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package queues_test

import (
	"context"
	"fmt"
	"time"

	clientqueue "k8s.io/client-go/util/workqueue"

	"github.com/flyball-dev/flyball/bridge/clientgo/queues"
	"github.com/flyball-dev/flyball/reconcile"
)

func onTheirQueue(limiter clientqueue.TypedRateLimiter[reconcile.Key]) reconcile.Options {
	theirs := clientqueue.NewTypedRateLimitingQueue(limiter)
	return reconcile.Options{Queue: queues.NewQueue("website", theirs)} // the controller shuts it down
}

// The controller takes its keys from a client-go queue.
func ExampleNewQueue() {
	limiter := clientqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Key](time.Second, time.Minute)
	c := reconcile.New("website", func(_ context.Context, key reconcile.Key) (reconcile.Result, error) {
		fmt.Println("reconcile", key)
		return reconcile.Result{}, nil
	}, onTheirQueue(limiter))
	fmt.Println(c.Name(), c.Err())
	// Output:
	// website <nil>
}
