// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package queues_test

import (
	"fmt"
	"time"

	clientqueue "k8s.io/client-go/util/workqueue"

	"github.com/flyball-dev/flyball/bridge/clientgo/queues"

	"github.com/flyball-dev/flyball/workqueue"
)

func newLimitedQueue(limiter clientqueue.TypedRateLimiter[string]) clientqueue.TypedRateLimitingInterface[string] {
	return queues.NewLimitedQueue(limiter, workqueue.Options[string]{Name: "deployments"})
}

// The rate limiter of a client-go queue decides how long a failed key waits.
func ExampleNewLimitedQueue() {
	limiter := clientqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Millisecond, time.Second)
	queue := newLimitedQueue(limiter)
	queue.AddRateLimited("default/web")
	queue.AddRateLimited("default/web")
	fmt.Println(queue.NumRequeues("default/web"), limiter.NumRequeues("default/web"))
	queue.ShutDown()
	// Output:
	// 2 2
}
