// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// RateLimiter says how long a key waits before it is tried again. The queue counts each key's failures and passes the count,
// so a limiter keeps nothing per key. Delay is called from many goroutines and outside the queue's lock.
type RateLimiter interface {
	// Delay returns the wait after the failures-th AddRateLimited of a key since its last Forget; the first is 1. A delay of
	// zero or below means at once. now is the time of the call.
	Delay(now time.Time, failures int) time.Duration
}

const (
	defaultBase = 5 * time.Millisecond
	defaultMax  = 1000 * time.Second
)

// Exponential doubles the wait with every failure. It is safe for concurrent use as long as Rand is.
type Exponential struct {
	Base time.Duration // the wait after the first failure; 0 or below: 5 ms
	Max  time.Duration // no wait is longer; 0 or below: 1000 s

	// Jitter shortens each wait by a random share of itself, up to this one: 0 (none) to 1. Shortening keeps Max a maximum
	// and spreads keys out that have all reached it.
	Jitter float64
	Rand   func() float64 // random numbers in [0, 1); nil: math/rand/v2
}

// Delay implements [RateLimiter].
func (e Exponential) Delay(_ time.Time, failures int) time.Duration {
	base, most := e.Base, e.Max
	if base <= 0 {
		base = defaultBase
	}
	if most <= 0 {
		most = defaultMax
	}
	d := most
	if shift := max(failures, 1) - 1; shift < 63 && base <= most>>shift {
		d = base << shift
	}
	if e.Jitter > 0 {
		random := e.Rand
		if random == nil {
			random = rand.Float64
		}
		d -= time.Duration(float64(d) * min(e.Jitter, 1) * random())
	}
	return d
}

// FastSlow waits Fast after each of the first FastTries failures, then Slow.
type FastSlow struct {
	Fast, Slow time.Duration
	FastTries  int
}

// Delay implements [RateLimiter].
func (f FastSlow) Delay(_ time.Time, failures int) time.Duration {
	if failures <= f.FastTries {
		return f.Fast
	}
	return f.Slow
}

// Longest waits as long as the most patient of its limiters says. Each of them is asked, so that each can account for the try.
type Longest []RateLimiter

// Delay implements [RateLimiter].
func (l Longest) Delay(now time.Time, failures int) time.Duration {
	var d time.Duration
	for _, r := range l {
		d = max(d, r.Delay(now, failures))
	}
	return d
}

// TokenBucket lets a number of tries per second pass, over all keys. Each Delay takes one token, in advance if none is there,
// and returns the wait until that token exists. Make it with [NewTokenBucket]. It is safe for concurrent use.
type TokenBucket struct {
	rate, burst float64

	mu struct {
		sync.Mutex
		tokens float64 // below 0: taken in advance
		at     time.Time
	}
}

// NewTokenBucket returns a full bucket of burst tokens to which rate are added per second. If rate is not above 0, none are
// added: after the burst every wait is the longest there is. A burst below 1 is taken as 1.
func NewTokenBucket(rate float64, burst int) *TokenBucket {
	b := &TokenBucket{rate: rate, burst: float64(max(burst, 1))}
	b.mu.tokens = b.burst
	return b
}

// Delay implements [RateLimiter]. A now before that of an earlier call is taken as equal to it.
func (b *TokenBucket) Delay(now time.Time, _ int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !(b.rate > 0) {
		if b.mu.tokens < 1 {
			return math.MaxInt64
		}
		b.mu.tokens--
		return 0
	}
	if b.mu.at.IsZero() {
		b.mu.at = now
	}
	if passed := now.Sub(b.mu.at); passed > 0 {
		b.mu.tokens = min(b.burst, b.mu.tokens+passed.Seconds()*b.rate)
		b.mu.at = now
	}
	b.mu.tokens--
	if b.mu.tokens >= 0 {
		return 0
	}
	wait := -b.mu.tokens / b.rate * float64(time.Second)
	if wait >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(math.Ceil(wait))
}
