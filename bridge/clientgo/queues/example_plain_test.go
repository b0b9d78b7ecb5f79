// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package queues_test

import (
	"fmt"

	clientqueue "k8s.io/client-go/util/workqueue"

	"github.com/flyball-dev/flyball/workqueue"
)

func newQueue() clientqueue.TypedRateLimitingInterface[string] {
	return workqueue.New(workqueue.Options[string]{Name: "deployments"})
}

// A Queue has the methods of client-go's queues and needs no adapter.
func Example() {
	queue := newQueue()
	queue.Add("default/web")
	queue.AddRateLimited("default/db")
	key, _ := queue.Get()
	fmt.Println(key, queue.NumRequeues("default/db"))
	queue.Done(key)
	queue.ShutDown()
	// Output:
	// default/web 1
}
