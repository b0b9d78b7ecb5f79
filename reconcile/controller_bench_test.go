// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"sync"
	"testing"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// What the controller adds to a reconcile that does nothing: from the source's key
// to the settled result.
func BenchmarkController_NoOp(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	var done sync.WaitGroup
	c := reconcile.New("bench", func(context.Context, int) (reconcile.Result, error) {
		done.Done()
		return reconcile.Result{}, nil
	}, reconcile.Options{})
	fed := make(chan int, 1024)
	c.Watch(source.Channel(fed, source.ChannelOptions{}))
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		done.Add(1)
		fed <- n
		n++
	}
	done.Wait()
	cancel()
	running.Wait()
}
