// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package sleep waits for a time or the end of a context.
package sleep

import (
	"context"
	"time"
)

// For blocks until d has passed or ctx has ended, and reports whether d has
// passed. It starts no goroutine and leaves no timer behind.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
