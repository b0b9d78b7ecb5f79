// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package nursery runs functions that may join before and during a run, and
// ends only when all of them have.
//
//	Go(f) ──▶ waiting ──Run──▶ running ──▶ ended
//	Go(f) ────────────────────▶ running        (during Run)
//
// The first error cancels the others and is what Run returns. Safe for
// concurrent use.
package nursery

import (
	"context"
	"errors"
	"sync"
)

// ErrEnded is returned by Go when Run has ended or is about to.
var ErrEnded = errors.New("start a function: the run has ended")

// Nursery is ready for use as its zero value. It runs once.
type Nursery struct {
	wg sync.WaitGroup
	mu struct {
		sync.Mutex
		ctx     context.Context // of the run; nil before
		cancel  context.CancelCauseFunc
		waiting []func(context.Context) error
		ended   bool
		err     error
	}
}

// Go has f run in a goroutine of the run: now, or when Run begins. It does not
// block.
func (n *Nursery) Go(f func(context.Context) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.mu.ended:
		return ErrEnded
	case n.mu.ctx == nil:
		n.mu.waiting = append(n.mu.waiting, f)
	default:
		n.startLocked(f)
	}
	return nil
}

func (n *Nursery) startLocked(f func(context.Context) error) {
	ctx := n.mu.ctx
	n.wg.Go(func() {
		if err := f(ctx); err != nil {
			n.fail(err)
		}
	})
}

func (n *Nursery) fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.err == nil && n.mu.ctx.Err() == nil {
		n.mu.err = err
		n.mu.cancel(err)
	}
}

// End ends a nursery that is never to run: what has joined never starts, and Go
// returns ErrEnded.
func (n *Nursery) End() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.ended, n.mu.waiting = true, nil
}

// Run starts what has joined and blocks until ctx ends or a function returns
// an error, and then until every function has returned. It returns that
// error, or nil when ctx ended it.
func (n *Nursery) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n.mu.Lock()
	if n.mu.ctx != nil || n.mu.ended {
		n.mu.Unlock()
		return errors.New("run: it runs or has run already; make a new one")
	}
	n.mu.ctx, n.mu.cancel = ctx, cancel
	for _, f := range n.mu.waiting {
		n.startLocked(f)
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
