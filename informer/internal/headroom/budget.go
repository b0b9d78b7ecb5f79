// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package headroom

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Budget is the memory that the caches of one factory may take. A nil Budget
// has no bound. Safe for concurrent use.
type Budget struct {
	// Dropped is called when a list stops because it does not fit, before its objects
	// are dropped: what they shared must count again for the next try. Nil: nothing is.
	Dropped func()

	held  func() int64 // of the stores
	waits atomic.Int32
	mu    struct {
		sync.Mutex
		state state
		looks map[*claim]chan struct{} // wake the waiting lists
		alarm *time.Timer
	}
}

// None is the limit of a budget that has none yet.
const None = math.MaxInt64

// New returns a budget of limit bytes. held returns what the stores have; it is
// called without a lock of the budget. Nil: limit is not above 0.
func New(limit int64, held func() int64) *Budget {
	if limit <= 0 {
		return nil
	}
	b := &Budget{held: held}
	b.mu.state.limit = limit
	b.mu.looks = make(map[*claim]chan struct{})
	return b
}

// Limit returns the bytes of the budget; 0: no bound.
func (b *Budget) Limit() int64 {
	if b == nil {
		return 0
	}
	limit := b.limit()
	if limit == None {
		return 0
	}
	return limit
}

func (b *Budget) limit() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.state.limit
}

// SetLimit changes the budget, such as when the limit of the process has changed. Not above 0: it
// stays.
func (b *Budget) SetLimit(limit int64) {
	if b == nil || limit <= 0 || limit == b.limit() {
		return
	}
	b.setLimit(limit)
	b.look()
}

func (b *Budget) setLimit(limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.state.limit = limit
}

// Exceeded reports whether the stores, and the lists that are being read, take more than the budget.
func (b *Budget) Exceeded() bool {
	if b == nil {
		return false
	}
	held := b.held()
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.mu.state.fits(0, held)
}

// Claim returns the claim of one scope, for its lists one after the other.
func (b *Budget) Claim() *Claim {
	if b == nil {
		return nil
	}
	return &Claim{budget: b}
}

// Look admits lists after the stores have let go of objects. Without waiting
// lists it costs one atomic read.
func (b *Budget) Look() {
	if b != nil && b.waits.Load() > 0 {
		b.look()
	}
}

func (b *Budget) look() {
	held := b.held()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lookLocked(held)
}

func (b *Budget) lookLocked(held int64) {
	now := time.Now()
	for _, c := range b.mu.state.admit(held, now) {
		poke(b.mu.looks[c])
		delete(b.mu.looks, c)
	}
	b.waits.Store(int32(len(b.mu.looks)))
	next := b.mu.state.next(now)
	switch {
	case next.IsZero() && b.mu.alarm != nil:
		b.mu.alarm.Stop()
	case next.IsZero():
	case b.mu.alarm == nil:
		b.mu.alarm = time.AfterFunc(next.Sub(now), b.look)
	default:
		b.mu.alarm.Reset(next.Sub(now))
	}
	for _, look := range b.mu.looks {
		poke(look) // the reason may have changed
	}
}

// Claim is the right of one scope to memory for its list. It is used by one
// goroutine. A nil Claim has no bound.
type Claim struct {
	budget *Budget
	claim  claim
}

// Enter blocks until the list may begin or ctx ends. A list that has not been
// stopped before needs an unknown amount and waits only while the budget is
// full and other lists are being read. show is called whenever the reason to
// wait changes.
func (c *Claim) Enter(ctx context.Context, show func(Hold)) error {
	if c == nil {
		return nil
	}
	b, look := c.budget, make(chan struct{}, 1)
	held := b.held()
	b.mu.Lock()
	b.mu.looks[&c.claim] = look
	b.mu.state.waiting = append(b.mu.state.waiting, &c.claim)
	b.lookLocked(held)
	b.mu.Unlock()
	for last := (Hold{}); ; {
		h, admitted := b.standing(c)
		if admitted {
			return nil
		}
		if h != last {
			show(h)
			last = h
		}
		select {
		case <-look:
		case <-ctx.Done():
			c.Done(false)
			return context.Cause(ctx)
		}
	}
}

func (b *Budget) standing(c *Claim) (h Hold, admitted bool) {
	held := b.held()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.looks[&c.claim] == nil {
		return h, true
	}
	return b.mu.state.hold(&c.claim, held, time.Now()), false
}

// Grow reports that the list has received bytes, and will have about estimate; 0:
// unknown. A *NoRoomError means that it must be dropped. random is in [0,1) and
// spreads the next try.
func (c *Claim) Grow(received, estimate int64, random func() float64) error {
	if c == nil {
		return nil
	}
	b := c.budget
	if max(received, estimate) <= c.claim.reserved { // only this goroutine changes it
		return nil
	}
	err := b.grow(c, received, estimate, b.held(), random())
	if err != nil && b.Dropped != nil {
		b.Dropped()
	}
	return err
}

func (b *Budget) grow(c *Claim, received, estimate, held int64, random float64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.state.grow(&c.claim, received, estimate, held, random, time.Now())
}

// Fits reports whether Grow would find room at once, without an allowance for an estimate.
func (c *Claim) Fits(received, estimate int64) bool {
	if c == nil {
		return true
	}
	needs := max(received, estimate)
	if needs <= c.claim.reserved { // only this goroutine changes it
		return true
	}
	held := c.budget.held()
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	return c.budget.mu.state.fits(needs-c.claim.reserved, held)
}

// Done releases the claim. completed: the list is in the stores, or will be
// next.
func (c *Claim) Done(completed bool) {
	if c == nil {
		return
	}
	b := c.budget
	held := b.held()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.state.done(&c.claim, completed)
	delete(b.mu.looks, &c.claim)
	b.lookLocked(held)
}

// poke wakes a waiter without blocking; pokes coalesce.
func poke(look chan struct{}) {
	select {
	case look <- struct{}{}:
	default:
	}
}
