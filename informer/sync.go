// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// SyncError means that a wait for sync ended before everything had synced. Its
// text has the state and reason of each unsynced scope.
type SyncError struct {
	// States of the awaited informers at the end of the wait.
	States []Snapshot
	// Err is why the wait ended: the context's cause, or the end of the run.
	Err error
}

func (e *SyncError) Error() string {
	var missing []string
	for _, s := range e.States {
		for _, scope := range s.Scopes {
			if !scope.Synced {
				missing = append(missing, fmt.Sprintf("%s %s", s.Kind.Kind, scope))
			}
		}
	}
	return fmt.Sprintf("wait for sync: %v; not synced: %s", e.Err, strings.Join(missing, "; "))
}

func (e *SyncError) Unwrap() error { return e.Err }

// errRunEnded ends a wait that nothing else would end.
var errRunEnded = errors.New("the informer has stopped")

// awaitSync waits for synced. It returns why synced will not be closed, else
// nil.
func awaitSync(ctx context.Context, synced, over <-chan struct{}) error {
	select {
	case <-synced:
		return nil
	default:
	}
	select {
	case <-synced:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-over:
		return errRunEnded
	}
}
