// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// SyncError means that a wait for sync ended before everything had synced. Its
// text has the state and reason of each unsynced scope.
type SyncError struct {
	// States of the awaited informers at the end of the wait.
	States []Snapshot
	// Err is why the wait ended: the context's cause, the end of the run, or that a scope has
	// StateMisuse.
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

// errScopeMisused ends a wait for what the server can never list.
var errScopeMisused = errors.New("the request is invalid")

// awaitSync waits for synced. It returns why synced will not be closed, else
// nil. misused returns such a reason, or what is closed when it may have one.
func awaitSync(ctx context.Context, synced, over <-chan struct{}, misused func() (<-chan struct{}, error)) error {
	select {
	case <-synced:
		return nil
	default:
	}
	for {
		changed, err := misused()
		if err != nil {
			return err
		}
		select {
		case <-synced:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over:
			return errRunEnded
		case <-changed:
		}
	}
}

// noteMisuse makes waits for sync look whether it concerns them.
func (c *core) noteMisuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.misuses++
	close(c.mu.misused)
	c.mu.misused = make(chan struct{})
}

// misusedBy returns why one of the handles cannot sync, or what is closed when there may be a
// reason.
func (c *core) misusedBy(is func(*handle) bool) (changed <-chan struct{}, err error) {
	c.mu.Lock()
	changed, none := c.mu.misused, c.mu.misuses == 0
	c.mu.Unlock()
	if none {
		return changed, nil
	}
	seats, chosen := c.awaited(is)
	if chosen || slices.ContainsFunc(seats, func(s seat) bool { return s.reflector.State().State == StateMisuse }) {
		return nil, errScopeMisused
	}
	return changed, nil
}

// awaited returns the scopes of the handles that are not synced. chosen: namespaces are to be
// chosen for a cluster-scoped kind.
func (c *core) awaited(is func(*handle) bool) (seats []seat, chosen bool) {
	c.critical.Lock()
	defer c.critical.Unlock()
	for _, h := range c.critical.handles {
		if !is(h) {
			continue
		}
		chosen = chosen || h.clusterWide && len(h.follows) > 0
		for _, w := range h.holds {
			if !w.synced.Load() {
				seats = append(seats, seat{w, w.reflector})
			}
		}
	}
	return seats, chosen
}

// isAwaited reports whether a wait for the whole informer waits for h.
func (h *handle) isAwaited() bool { return h.asked != nil && !h.settled && !h.deferred }
