// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// instants gives each step a moment that no other has. The bubble's clock moves
// only when everything waits, so each step then runs to its end before the next
// one begins. Of two sleepers that ask for one moment at the same time, the one
// whose name is the smaller gets it, whichever asked first: the scheduler does not
// decide. Safe for concurrent use.
type instants struct {
	count *atomic.Uint64 // of those that were taken
	mu    struct {
		sync.Mutex
		taken map[int64]*sleeper // by nanoseconds since 1970
		limit int                // of taken, before those that are past are dropped
	}
}

// sleeper has a moment, until one with a smaller name asks for it.
type sleeper struct {
	name string // empty: it keeps the moment that it was given
	at   int64
}

func newInstants() *instants {
	i := &instants{count: new(atomic.Uint64)}
	i.mu.taken = map[int64]*sleeper{}
	i.mu.limit = 1024
	return i
}

// take is at, or the first moment after it, and after now, that is to be had for good.
func (i *instants) take(now, at time.Time) time.Time {
	return time.Unix(0, i.place(now, at, "").at)
}

// place gives a new sleeper the moment at, or the first one after it, and after now,
// that no sleeper with a smaller name has. Who had it moves on.
func (i *instants) place(now, at time.Time, name string) *sleeper {
	i.count.Add(1)
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

func (i *instants) momentOf(s *sleeper) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return time.Unix(0, s.at)
}

func (i *instants) sweepLocked(now int64) {
	for n := range i.mu.taken {
		if n < now {
			delete(i.mu.taken, n)
		}
	}
	i.mu.limit = max(1024, 2*len(i.mu.taken))
}

// draws are random numbers by what they are for: each name has a sequence of its
// own, so that what one draws moves nobody else's. Safe for concurrent use.
type draws struct {
	seed uint64
	mu   struct {
		sync.Mutex
		nth map[string]uint64
	}
}

func newDraws(seed uint64) *draws {
	d := &draws{seed: seed}
	d.mu.nth = map[string]uint64{}
	return d
}

// next is the next number of a name.
func (d *draws) next(name string) uint64 {
	d.mu.Lock()
	n := d.mu.nth[name]
	d.mu.nth[name] = n + 1
	d.mu.Unlock()
	return drawn(d.seed, name, n)
}

// float is the next number of a name, in [0, 1).
func (d *draws) float(name string) float64 { return unit(d.next(name)) }

// upTo is the next time of a name, in [1ns, most].
func (d *draws) upTo(name string, most time.Duration) time.Duration {
	return 1 + time.Duration(d.next(name)%uint64(max(most, 1)))
}

// drawn is the nth number of a name under a seed.
func drawn(seed uint64, name string, nth uint64) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return mixed(mixed(seed^h) + nth)
}

// mixed is a step of SplitMix64.
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func unit(x uint64) float64 { return float64(x>>11) / (1 << 53) }

// A variation of a seed has the seed's scenario and its plan with one change: an aimed
// fault moves to a neighbouring moment, another fault is aimed near it, or a fault is left
// out. The number of the variation is the high byte of the seed, so that this number alone
// runs it again.

// mostVariations of a seed.
const mostVariations = 255

// variation is the seed of the nth variation of a seed. The 0th is the seed itself.
func variation(seed uint64, nth int) uint64 { return seed | uint64(nth)<<56 }

// ofVariation is the seed that is varied, and the number of the variation.
func ofVariation(seed uint64) (varied uint64, nth int) { return seed & (1<<56 - 1), int(seed >> 56) }

// rest blocks for d and until a moment that nothing else has, or until ctx ends, and
// reports whether it is that moment. name tells it from what rests at the same time.
func (i *instants) rest(ctx context.Context, name string, d time.Duration) bool {
	now := time.Now()
	return i.sleepAs(ctx, i.place(now, now.Add(d), name))
}

// sleepAs blocks until the moment of a sleeper or until ctx ends, and reports whether it
// is that moment.
func (i *instants) sleepAs(ctx context.Context, s *sleeper) bool {
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

// sleepUntil blocks until at or until ctx ends, and reports whether it is at.
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
