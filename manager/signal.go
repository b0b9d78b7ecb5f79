// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// SignalContext returns a context that ends at the first SIGINT or SIGTERM; its cause
// names the signal. A second signal ends the process at once with status 1, in case the
// stop hangs. Call it once, in main.
func SignalContext() context.Context {
	// Room for both, so that a second signal right after the first is kept.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop()
		<-signals
		<-signals
		os.Exit(1)
	})
	return ctx
}
