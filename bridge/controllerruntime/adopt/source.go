// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	theirs "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// Source returns s as a source, for Watch of a controller. name is for logs and states. If s is a SyncingSource, workers wait
// for its sync. What s starts itself ends with the context that it is given, possibly after the controller: what it adds then is
// dropped. A nil s is misuse, which is returned when the controller runs.
func Source(name string, s theirs.Source) source.Source[reconcile.Key] {
	if s == nil {
		return &started{state: newState(name, errors.New("the source is nil"))}
	}
	return &started{state: newState(name, nil), source: s}
}

type started struct {
	*state
	source theirs.Source
}

// Run implements source.Source.
func (s *started) Run(ctx context.Context, add func(reconcile.Key, source.Cause)) error {
	if err := s.begin(); err != nil {
		return err
	}
	o := newOut(add)
	defer o.close()
	if err := s.source.Start(ctx, queue{out: o, cause: source.Cause{Source: s.name}}); err != nil {
		return fmt.Errorf("source %s: start: %w", s.name, err)
	}
	if syncing, ok := s.source.(theirs.SyncingSource); ok {
		if err := syncing.WaitForSync(ctx); ctx.Err() != nil {
			return nil
		} else if err != nil {
			return fmt.Errorf("source %s: wait for sync: %w", s.name, err)
		}
	}
	close(s.synced)
	<-ctx.Done()
	return nil
}

// state is the state that the sources have in common.
type state struct {
	name   string
	err    error
	ran    atomic.Bool
	synced chan struct{}
}

func newState(name string, misuse error) *state {
	r := &state{name: name, synced: make(chan struct{})}
	if misuse != nil {
		r.err = fmt.Errorf("source %s: %w", name, misuse)
	}
	return r
}

func (r *state) begin() error {
	if r.err != nil {
		return r.err
	}
	if r.ran.Swap(true) {
		return fmt.Errorf("source %s: run: it has already run; make one for each controller", r.name)
	}
	return nil
}

// Err returns misuse.
func (r *state) Err() error { return r.err }

// String implements source.Source.
func (r *state) String() string { return r.name }

// Synced implements source.Source.
func (r *state) Synced() <-chan struct{} { return r.synced }

// Snapshot returns the state of the source.
func (r *state) Snapshot() source.Snapshot {
	s := source.Snapshot{Source: r.name}
	select {
	case <-r.synced:
		s.Synced = true
	default:
	}
	return s
}
