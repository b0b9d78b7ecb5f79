// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package taskgroup runs functions that can join before and during a run, and
// ends only when all of them have.
//
//	Spawn(f) ─▶ waiting ──Run──▶ running ──▶ done
//	Spawn(f) ───────────────────▶ running        (during Run)
//	              │ Cancel          │ Cancel
//	              ▼                 ▼
//	             done        its context ends
//
// The first error cancels the others and is returned by Run. Safe for
// concurrent use.
package taskgroup

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrEnded is returned by Go and Spawn when Run has ended or is ending.
var ErrEnded = errors.New("start a function: the run has ended")

// Group is ready to use as its zero value. It runs only once.
type Group struct {
	wg sync.WaitGroup
	mu struct {
		sync.Mutex
		ctx     context.Context // of the run; nil before it
		cancel  context.CancelCauseFunc
		waiting []*Member
		ended   bool
		stopped bool
		err     error
	}
}

// Member is one function that has joined. Its methods do not block and are safe
// for concurrent use.
type Member struct {
	group  *Group
	run    func(context.Context) error
	cancel context.CancelFunc // nil: not started; guarded by the group's lock
	done   chan struct{}
}

// Go runs f in a goroutine of the run: now, or when Run begins. It does not
// block.
func (n *Group) Go(f func(context.Context) error) error {
	_, err := n.Spawn(f)
	return err
}

// Spawn is Go for a function that can be cancelled on its own.
func (n *Group) Spawn(f func(context.Context) error) (*Member, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.ended {
		return nil, ErrEnded
	}
	m := &Member{group: n, run: f, done: make(chan struct{})}
	if n.mu.ctx == nil {
		n.mu.waiting = append(n.mu.waiting, m)
	} else {
		n.startLocked(m)
	}
	return m, nil
}

// Cancel ends the function's context. A function that has not started never
// will. It does not wait; further calls have no effect.
func (m *Member) Cancel() {
	n := m.group
	n.mu.Lock()
	defer n.mu.Unlock()
	if m.cancel != nil {
		m.cancel()
		return
	}
	if at := slices.Index(n.mu.waiting, m); at >= 0 {
		n.mu.waiting = slices.Delete(n.mu.waiting, at, at+1)
		m.dropLocked()
	}
}

// Started reports whether the function was started.
func (m *Member) Started() bool {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	return m.cancel != nil
}

// Done is closed when the function has returned, or will never start.
func (m *Member) Done() <-chan struct{} { return m.done }

func (m *Member) dropLocked() {
	m.run = nil
	close(m.done)
}

func (n *Group) startLocked(m *Member) {
	ctx, cancel := context.WithCancel(n.mu.ctx)
	m.cancel = cancel
	f := m.run
	m.run = nil // its memory can be freed before the member's
	n.wg.Go(func() {
		defer close(m.done)
		defer cancel()
		if err := f(ctx); err != nil && ctx.Err() == nil {
			n.fail(err)
		}
	})
}

func (n *Group) fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.err == nil && n.mu.ctx.Err() == nil {
		n.mu.err = err
		n.mu.cancel(err)
	}
}

// End ends a group that will never run: its functions never start, and Go
// returns ErrEnded.
func (n *Group) End() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.endLocked()
}

func (n *Group) endLocked() {
	n.mu.ended = true
	for _, m := range n.mu.waiting {
		m.dropLocked()
	}
	n.mu.waiting = nil
}

// Stop ends the run like the end of its context, without waiting. Before Run it
// makes Run return nil at once; begun is then false.
func (n *Group) Stop() (begun bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.stopped = true
	if n.mu.ctx == nil {
		n.endLocked()
		return false
	}
	n.mu.ended = true
	n.mu.cancel(nil)
	return true
}

// Run starts the functions and blocks until ctx ends, Stop is called or a
// function returns an error, and then until every function has returned. It
// returns that error, else nil.
func (n *Group) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n.mu.Lock()
	if n.mu.ctx != nil || n.mu.ended && !n.mu.stopped {
		n.mu.Unlock()
		return errors.New("run: it is running or has already run; make a new one")
	}
	n.mu.ctx, n.mu.cancel = ctx, cancel
	if n.mu.stopped {
		n.mu.Unlock()
		return nil
	}
	for _, m := range n.mu.waiting {
		n.startLocked(m)
	}
	n.mu.waiting = nil
	n.mu.Unlock()

	<-ctx.Done()
	n.mu.Lock()
	n.mu.ended = true
	n.mu.Unlock()
	n.wg.Wait()

	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.err
}
