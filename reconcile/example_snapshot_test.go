// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"

	"github.com/flyball-dev/flyball/reconcile"
)

func explainQueue(c *reconcile.Controller[reconcile.Key]) {
	s := c.QueueSnapshot()
	for place, k := range s.Keys {
		// Ready keys come first, in the order in which they are handed out if nothing comes in between.
		fmt.Println(place, k.Key, k.State, k.Age, k.Priority, k.Flow, k.Attempts, k.Due)
	}
	for _, f := range s.Flows { // with FairBy; those with the most ready keys first
		fmt.Println(f.Flow, f.Ready, f.Held, f.Delayed, f.Oldest)
	}
	for _, f := range c.Failures() { // of keys that are tried again, the last error
		fmt.Println(f.Key, f.At, f.Outcome, f.Err)
	}
	for _, src := range c.Snapshot().Sources {
		fmt.Println(src.Source, src.Waiting, src.NextDue) // what a Debounce holds back
	}
}

// A snapshot has an entry for each key in the queue.
func ExampleController_QueueSnapshot() {
	c := reconcile.New("website", func(context.Context, reconcile.Key) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	}, reconcile.Options{})
	explainQueue(c) // which is empty before the controller runs
	// Output:
}
