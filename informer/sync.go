// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
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
var errRunEnded = errors.New("the informer's run has ended")

// WaitForSync blocks until the informers of the given kinds have synced, or
// with none given all that For was asked for so far. It returns where each of
// them stands, in the order they were asked for, whether they have synced or
// not. When ctx or the run ends before, the error is a *SyncError. Misuse of
// one is returned at once.
func (f *SharedInformerFactory) WaitForSync(ctx context.Context, kinds ...schema.GroupVersionKind) ([]Snapshot, error) {
	all := f.cores()
	for _, kind := range kinds {
		if !slices.ContainsFunc(all, func(c *core) bool { return c.gvk() == kind }) {
			return nil, fmt.Errorf("wait for sync of %s: no informer of that kind was asked for", kind)
		}
	}
	wanted := slices.DeleteFunc(all, func(c *core) bool {
		return len(kinds) > 0 && !slices.Contains(kinds, c.gvk())
	})
	for _, c := range wanted {
		if err := c.misuse(); err != nil {
			return snapshots(wanted), fmt.Errorf("wait for sync of %s: %w", c.gvk(), err)
		}
	}
	for _, c := range wanted {
		if err := awaitSync(ctx, c.allSynced(), c.over()); err != nil {
			states := snapshots(wanted)
			return states, &SyncError{States: states, Err: err}
		}
	}
	return snapshots(wanted), nil
}

// WaitForSync blocks until the first list of every scope of this handle is
// stored. It returns where the whole informer stands, whether it has synced or
// not. When ctx or the run ends before, the error is a *SyncError; misuse, and a
// release, are returned at once.
func (i *SharedInformer[T]) WaitForSync(ctx context.Context) (Snapshot, error) {
	if err := i.Err(); err != nil {
		return i.Snapshot(), fmt.Errorf("wait for sync: %w", err)
	}
	err := awaitSync(ctx, i.Synced(), i.Ended())
	state := i.Snapshot()
	if gone := i.Err(); err != nil && gone != nil {
		return state, fmt.Errorf("wait for sync: %w", gone)
	}
	if err != nil {
		return state, &SyncError{States: []Snapshot{state}, Err: err}
	}
	return state, nil
}

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

// over is closed when the run has ended.
func (c *core) over() <-chan struct{} { return c.ended }

func snapshots(cores []*core) []Snapshot {
	out := make([]Snapshot, 0, len(cores))
	for _, c := range cores {
		out = append(out, c.snapshot())
	}
	return out
}
