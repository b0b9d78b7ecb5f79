// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/flyball-dev/flyball/informer/state"
)

// SyncError means that a wait for sync ended before everything had synced. Its
// text has the state and reason of each unsynced scope.
type SyncError struct {
	// States of the awaited informers at the end of the wait.
	States []state.Informer
	// Err is why the wait ended: the context's cause, the end of the run, or that a scope has
	// state.Misuse.
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

// misuses records what turns out to be misuse while an informer runs. Safe for concurrent use.
type misuses struct {
	mu struct {
		sync.Mutex
		noted bool
		next  chan struct{} // closed with the next one; nil: nobody waits
	}
}

func (m *misuses) record() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.noted = true
	if m.mu.next != nil {
		close(m.mu.next)
		m.mu.next = nil
	}
}

// so reports whether there was any. next is closed with the next one.
func (m *misuses) so() (noted bool, next <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.next == nil {
		m.mu.next = make(chan struct{})
	}
	return m.mu.noted, m.mu.next
}
