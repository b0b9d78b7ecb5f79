// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// Measures the overhead of the controller for an empty reconcile: from the source's key
// to the settled result. An operation is a round of 1000 keys.
func BenchmarkController_NoOp(b *testing.B) {
	for name, logger := range map[string]logr.Logger{
		"discard": logr.Discard(),
		"slog":    logr.FromSlogHandler(slog.NewTextHandler(io.Discard, nil)),
	} {
		b.Run(name, func(b *testing.B) { benchmarkNoOp(b, reconcile.Options{Logger: logger}) })
	}
}

func benchmarkNoOp(b *testing.B, opts reconcile.Options) {
	ctx, cancel := context.WithCancel(b.Context())
	var done, running sync.WaitGroup
	c := reconcile.New("bench", func(context.Context, reconcile.Key) (reconcile.Result, error) {
		done.Done()
		return reconcile.Result{}, nil
	}, opts)
	fed := make(chan reconcile.Key, 1000)
	c.Watch(source.Channel(fed, source.ChannelOptions{}))
	running.Go(func() { _ = c.Run(ctx) })
	round := make([]reconcile.Key, 1000)
	for i := range round {
		round[i] = reconcile.Key{Namespace: "prod", Name: "object-" + string(rune('a'+i%26)) + string(rune('a'+i/26))}
	}
	b.ReportAllocs()
	for b.Loop() {
		done.Add(len(round))
		for _, key := range round {
			fed <- key
		}
		done.Wait()
	}
	cancel()
	running.Wait()
}
