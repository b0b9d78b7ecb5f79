// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// Each key is in the queue once, and one worker at a time holds it.
func ExampleNew() {
	queue := workqueue.New(workqueue.Options[string]{Name: "pages"})
	queue.Add("index")
	queue.Add("about")
	queue.Add("index") // is ready already
	queue.ShutDown()   // ready keys are still handed out

	for {
		key, shutdown := queue.Get()
		if shutdown {
			break
		}
		fmt.Println("render", key)
		queue.Done(key)
	}
	// Output:
	// render index
	// render about
}

// Keys replaces Get and Done. A key that fails returns after a backoff that grows with each failure.
func ExampleQueue_Keys() {
	queue := workqueue.New(workqueue.Options[string]{RateLimiter: workqueue.Exponential{Base: time.Millisecond}})
	queue.Add("index")

	for key := range queue.Keys() {
		if queue.NumRequeues(key) < 2 {
			fmt.Println("failed to render", key)
			queue.AddRateLimited(key)
			continue
		}
		fmt.Println("rendered", key)
		queue.Forget(key)
		queue.ShutDown()
	}
	// Output:
	// failed to render index
	// failed to render index
	// rendered index
}

// A key with a higher priority is handed out first.
func ExampleQueue_AddWith() {
	queue := workqueue.New(workqueue.Options[string]{})
	queue.Add("archive")
	queue.AddWith("index", workqueue.AddOptions{Priority: 50})
	queue.ShutDown()

	for key := range queue.Keys() {
		fmt.Println(key)
	}
	// Output:
	// index
	// archive
}
