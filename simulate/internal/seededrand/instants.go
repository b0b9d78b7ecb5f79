// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package seededrand

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Instants gives each step its own moment. The bubble's clock moves only when
// everything waits, so each step runs to its end before the next one begins. Of two
// sleepers that ask for the same moment, the one with the smaller name gets it,
// regardless of the order of the calls: the scheduler does not decide. Instants is safe
// for concurrent use.
type Instants struct {
	Count *atomic.Uint64 // moments taken; may be replaced before the first is
	mu    struct {
		sync.Mutex
		taken map[int64]*sleeper // by nanoseconds since 1970
		limit int                // size of taken at which past moments are dropped
	}
}

// sleeper has a moment, until one with a smaller name asks for it.
type sleeper struct {
	name string // empty: it keeps its moment
	at   int64
}

func NewInstants() *Instants {
	i := &Instants{Count: new(atomic.Uint64)}
	i.mu.taken = map[int64]*sleeper{}
	i.mu.limit = 1024
	return i
}

// Take returns at, or the first free moment after at and now, and keeps it for the
// caller.
func (i *Instants) Take(now, at time.Time) time.Time {
	return time.Unix(0, i.Place(now, at, "").at)
}

// Place gives a new sleeper the moment at, or the first one after at and now that no
// sleeper with a smaller name has. The sleeper that had it moves on.
func (i *Instants) Place(now, at time.Time, name string) *sleeper {
	i.Count.Add(1)
	placed := &sleeper{name: name}
	i.mu.Lock()
	defer i.mu.Unlock()
	moving := placed
	for n := max(at.UnixNano(), now.UnixNano()+1); ; n++ {
		there := i.mu.taken[n]
		if there != nil && there.name <= moving.name {
			continue
		}
		i.mu.taken[n], moving.at = moving, n
		if there == nil {
			break
		}
		moving = there
	}
	if len(i.mu.taken) > i.mu.limit {
		i.sweepLocked(now.UnixNano())
	}
	return placed
}

func (i *Instants) momentOf(s *sleeper) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return time.Unix(0, s.at)
}

func (i *Instants) sweepLocked(now int64) {
	for n := range i.mu.taken {
		if n < now {
			delete(i.mu.taken, n)
		}
	}
	i.mu.limit = max(1024, 2*len(i.mu.taken))
}

// Rest blocks for d and then until a free moment, or until ctx ends, and reports
// whether it reached that moment. name distinguishes it from concurrent calls.
func (i *Instants) Rest(ctx context.Context, name string, d time.Duration) bool {
	now := time.Now()
	return i.SleepAs(ctx, i.Place(now, now.Add(d), name))
}

// SleepAs blocks until the moment of a sleeper or until ctx ends, and reports whether
// it reached the moment.
func (i *Instants) SleepAs(ctx context.Context, s *sleeper) bool {
	for {
		at := i.momentOf(s)
		if !sleepUntil(ctx, at) {
			return false
		}
		if i.momentOf(s).Equal(at) {
			return true
		}
	}
}

// sleepUntil blocks until at or until ctx ends, and reports whether it reached at.
func sleepUntil(ctx context.Context, at time.Time) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
