// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/flyball-dev/flyball/internal/filelock"
)

// lockWait takes the lock file at path, creating it if needed, and returns a function that releases it. While another
// process or goroutine holds the lock, it reports that to out and waits until ctx ends.
func lockWait(ctx context.Context, path string, out io.Writer) (unlock func(), err error) {
	tick := time.NewTicker(lockEvery)
	defer tick.Stop()
	began := time.Now()
	told := began
	for {
		unlock, err := filelock.Try(path)
		if err != nil {
			return nil, fmt.Errorf("lock %q: %w", path, err)
		}
		if unlock != nil {
			return unlock, nil
		}
		if time.Since(told) >= progressEvery {
			told = time.Now()
			fmt.Fprintf(out, "envtest: waiting %s for another process that builds the control plane\n", time.Since(began).Round(time.Second))
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the build of another process, lock %q: %w", path, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
