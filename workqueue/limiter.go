// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// RateLimiter determines how long a key waits before a retry. The queue counts each key's failures, so a limiter keeps no
// state per key. Delay is called concurrently, outside the queue's lock.
type RateLimiter interface {
	// Delay returns the delay after the given number of AddRateLimited calls for a key since its last Forget, at least 1.
	// Zero or below means at once. now is the time of the call.
	Delay(now time.Time, failures int) time.Duration
}

const (
	defaultBase = 5 * time.Millisecond
	defaultMax  = 1000 * time.Second
)

// Exponential doubles the delay with each failure. It is safe for concurrent use if Rand is.
type Exponential struct {
	Base time.Duration // delay after the first failure; 0 or below: 5 ms
	Max  time.Duration // longest delay; 0 or below: 1000 s

	// Jitter shortens each delay by a random fraction of itself, up to this one: 0 (none) to 1. Max stays the maximum, and
	// keys that have all reached it are spread.
	Jitter float64
	Rand   func() float64 // returns random numbers in [0, 1); nil: math/rand/v2
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

// FastSlow delays by Fast after each of the first FastTries failures, then by Slow.
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

// MaxOf returns the longest delay of its limiters. It calls each of them, so that each can account for the retry.
type MaxOf []RateLimiter

// Delay implements [RateLimiter].
func (l MaxOf) Delay(now time.Time, failures int) time.Duration {
	var d time.Duration
	for _, r := range l {
		d = max(d, r.Delay(now, failures))
	}
	return d
}

// TokenBucket limits the retries per second of all keys together. Each Delay takes one token, in advance if there is none,
// and returns the time until the token exists. Make it with [NewTokenBucket]. It is safe for concurrent use.
type TokenBucket struct {
	rate, burst float64

	mu struct {
		sync.Mutex
		tokens float64 // below 0: taken in advance
		at     time.Time
	}
}

// NewTokenBucket returns a full bucket of burst tokens, to which rate tokens are added per second. If rate is not above 0,
// none are added: after the burst every delay is the longest duration. A burst below 1 counts as 1.
func NewTokenBucket(rate float64, burst int) *TokenBucket {
	b := &TokenBucket{rate: rate, burst: float64(max(burst, 1))}
	b.mu.tokens = b.burst
	return b
}

// Delay implements [RateLimiter]. A now before that of an earlier call counts as equal to it.
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
