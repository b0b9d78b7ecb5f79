// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// SyncError: the wait for sync has ended before everything had synced. Its text
// names each scope that has not, where it stands and why.
type SyncError struct {
	// States of what was waited for, at the end of the wait.
	States []Snapshot
	// Err says why the wait ended: the context's cause, or that the run has
	// ended.
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

// errRunEnded is why a wait ends that nobody will end otherwise.
var errRunEnded = errors.New("the informer has stopped")

// awaitSync is why synced will not be closed, or nil when it is.
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
