// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"

	"github.com/flyball-dev/flyball/internal/ownership"
)

// alone returns one as a Runnable that runs on the replica that holds shard 0, whenever that is this one.
func alone(guard *ownership.Guard, one Runnable) Runnable {
	return RunnableFunc(func(ctx context.Context) error {
		changed := make(chan struct{}, 1)
		defer guard.Changed(func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})()
		for {
			if again, err := runAlone(ctx, guard, one); !again {
				return err
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// runAlone runs one if this process holds shard 0, until it does not any more. again: it is to run when
// that is held again.
func runAlone(ctx context.Context, guard *ownership.Guard, one Runnable) (again bool, err error) {
	in, leave, _ := guard.Enter(ctx, 0)
	if leave == nil {
		return true, nil
	}
	defer leave()
	in, end := context.WithCancel(in)
	defer end()
	endUnlessHeld := func() {
		if !guard.Works(0) {
			end()
		}
	}
	defer guard.Changed(endUnlessHeld)()
	endUnlessHeld()
	err = guarded(in, one)
	if ctx.Err() == nil && in.Err() != nil {
		return true, nil
	}
	return false, err
}
