// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/internal/simhook"
)

// DebounceSource delays the keys of another source until it stops naming them.
// Make it with Debounce.
type DebounceSource[K comparable] struct {
	source Source[K]
	err    error
	added  atomic.Uint64
	wake   chan struct{} // has one token if a key waits where none did

	mu struct {
		sync.Mutex
		pending pending[K]
	}
}

// Debounce wraps a source s that adds a key repeatedly in a short time: a key
// is added when s has not added it for quiet, or when longest has passed since
// s first did, whichever comes first. Its cause combines those held back:
// generations from the first to the last. Keys of the initial objects (see
// Cause.Initial) are added at once, so that the controller can start.
//
// Only keys of s are delayed: use another source for urgent events.
//
//	c.Watch(source.Debounce(source.Owned(pods, websites), time.Second, 10*time.Second))
//
// A longest of 0 is ten times quiet. A nil s, a quiet that is not above zero
// and a longest below it are misuse, returned by Run. Keys that wait when the
// controller ends are dropped, like those in its queue.
func Debounce[K comparable](s Source[K], quiet, longest time.Duration) *DebounceSource[K] {
	d := &DebounceSource[K]{source: s, wake: make(chan struct{}, 1)}
	if longest == 0 {
		longest = 10 * quiet
	}
	d.mu.pending.quiet, d.mu.pending.longest = quiet, longest
	switch {
	case s == nil:
		d.err = errors.New("debounce: the source is nil; give one of package source, such as source.Kind(informer, source.Self)")
	case quiet <= 0:
		d.err = fmt.Errorf("debounce source %s: the quiet time is %s; give one above zero", s, quiet)
	case longest < quiet:
		d.err = fmt.Errorf("debounce source %s: the longest wait of %s is below the quiet time of %s; give one that is not, or 0 for ten times that", s, longest, quiet)
	}
	return d
}

// Run runs the source and adds its keys when they are due, until ctx ends. If
// the source ends first, Run returns after the last waiting key is added.
func (d *DebounceSource[K]) Run(ctx context.Context, add func(K, Cause)) error {
	if err := d.Err(); err != nil {
		return err
	}
	running, cancel := context.WithCancel(ctx)
	drained, ended := make(chan struct{}), make(chan struct{})
	var delivery sync.WaitGroup
	delivery.Go(func() {
		defer close(drained)
		d.deliver(running, ended, add)
	})
	defer delivery.Wait()
	defer cancel()
	err := d.source.Run(ctx, func(key K, cause Cause) { d.debounce(key, cause, add) })
	if err == nil {
		close(ended)
		<-drained
	}
	return err
}

// debounce adds key at once or delays it.
func (d *DebounceSource[K]) debounce(key K, cause Cause, add func(K, Cause)) {
	if cause.Initial || key != key { // a NaN could not be found again
		d.added.Add(1)
		add(key, cause)
		return
	}
	now := time.Now()
	d.mu.Lock()
	alone := d.mu.pending.add(key, cause, now)
	d.mu.Unlock()
	if alone { // a later key is also due later
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
}

// deliver adds due keys, until ctx ends or nothing waits and ended is closed.
func (d *DebounceSource[K]) deliver(ctx context.Context, ended <-chan struct{}, add func(K, Cause)) {
	sim := simhook.Of(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		next, some := d.next()
		if !some && ended == nil {
			return
		}
		if some {
			timer.Reset(time.Until(next))
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
		case <-d.wake:
		case <-ended:
			ended = nil
		case <-timer.C:
			for s := d.take(); s != nil; s = d.take() {
				if sim != nil {
					sim.Step(ctx, "debounce", d.String())
				}
				if ctx.Err() != nil {
					return
				}
				d.added.Add(1)
				add(s.key, s.cause)
			}
		}
	}
}

func (d *DebounceSource[K]) next() (time.Time, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.pending.next()
}

func (d *DebounceSource[K]) take() *pendingKey[K] {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.pending.take(now)
}

// Synced is closed when the source is synced: initial keys are not delayed.
func (d *DebounceSource[K]) Synced() <-chan struct{} {
	if d.source == nil {
		return nil
	}
	return d.source.Synced()
}

// String returns the name of the source.
func (d *DebounceSource[K]) String() string {
	if d.source == nil {
		return "debounce"
	}
	return d.source.String()
}

// Err returns the misuse of the source or of its Debounce, or nil.
func (d *DebounceSource[K]) Err() error {
	if d.err != nil {
		return d.err
	}
	return ErrOf(d.source)
}

// Snapshot returns the state of the source. Keys counts those added after their
// delay.
func (d *DebounceSource[K]) Snapshot() Snapshot {
	if d.source == nil {
		return Snapshot{Source: d.String()}
	}
	s := SnapshotOf(d.source)
	s.Keys = d.added.Load()
	d.mu.Lock()
	defer d.mu.Unlock()
	s.Waiting = len(d.mu.pending.keys)
	s.NextDue, _ = d.mu.pending.next()
	return s
}

// WaitingKey is a key that a Debounce delays.
type WaitingKey[K comparable] struct {
	Key K
	// Cause with which it will be added, unless the source adds it again.
	Cause Cause
	// First and Last are when the source added it.
	First, Last time.Time
	// Due is when it will be added. If the source adds it again, Due moves, up
	// to the longest wait.
	Due time.Time
}

// Waiting returns the delayed keys, by due time. It copies all of them under a
// lock: for their number use Snapshot.
func (d *DebounceSource[K]) Waiting() []WaitingKey[K] {
	d.mu.Lock()
	p := &d.mu.pending
	all := make([]WaitingKey[K], 0, len(p.keys))
	for _, s := range p.keys {
		all = append(all, WaitingKey[K]{Key: s.key, Cause: s.cause, First: s.first, Last: s.last, Due: s.due(p.quiet, p.longest)})
	}
	d.mu.Unlock()
	slices.SortFunc(all, func(a, b WaitingKey[K]) int {
		if c := a.Due.Compare(b.Due); c != 0 {
			return c
		}
		return a.First.Compare(b.First)
	})
	return all
}
