// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

// mostVerdicts bounds the cached answers of each kind.
const mostVerdicts = 1024

// digest identifies a question, so that no token is kept.
type digest [sha256.Size]byte

// verdict is an answer with its expiry.
type verdict[V any] struct {
	answer V
	yes    bool // evicted last
	until  time.Time
}

// verdicts caches answers, and deduplicates concurrent questions. Failures are not
// cached.
type verdicts[V any] struct {
	mu struct {
		sync.Mutex
		known map[digest]verdict[V]
		asked map[digest]*question[V]
	}
}

// question is in flight. Its fields are set before answered is closed.
type question[V any] struct {
	answered chan struct{}
	answer   V
	err      error
	dropped  bool // the asker has gone, and another must ask
}

func newVerdicts[V any]() *verdicts[V] {
	v := &verdicts[V]{}
	v.mu.known, v.mu.asked = map[digest]verdict[V]{}, map[digest]*question[V]{}
	return v
}

func (v *verdicts[V]) remembered() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.mu.known)
}

// of returns the answer to a question. It blocks in ask, or while another caller asks
// the same, until ctx ends.
func (v *verdicts[V]) of(ctx context.Context, name digest, ask func(context.Context) (verdict[V], error)) (V, error) {
	for {
		known, q, mine := v.enter(name, time.Now())
		if q == nil {
			return known, nil
		}
		if mine {
			v.find(ctx, name, q, ask)
			return q.answer, q.err
		}
		select {
		case <-q.answered:
			if !q.dropped {
				return q.answer, q.err
			}
		case <-ctx.Done():
			return known, context.Cause(ctx)
		}
	}
}

// enter returns the cached answer, or else the question to wait for; mine means that
// the caller must ask it.
func (v *verdicts[V]) enter(name digest, now time.Time) (known V, q *question[V], mine bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if have, ok := v.mu.known[name]; ok && now.Before(have.until) {
		return have.answer, nil, false
	}
	if q = v.mu.asked[name]; q != nil {
		return known, q, false
	}
	q = &question[V]{answered: make(chan struct{}), dropped: true} // until there is an answer
	v.mu.asked[name] = q
	return known, q, true
}

// find asks q and publishes the result to its waiters, also if ask panics.
func (v *verdicts[V]) find(ctx context.Context, name digest, q *question[V], ask func(context.Context) (verdict[V], error)) {
	var found *verdict[V]
	defer func() {
		v.leave(name, found, time.Now())
		close(q.answered)
	}()
	answer, err := ask(ctx)
	q.answer, q.err = answer.answer, err
	q.dropped = err != nil && ctx.Err() != nil
	if err == nil {
		found = &answer
	}
}

func (v *verdicts[V]) leave(name digest, found *verdict[V], now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.mu.asked, name)
	if found != nil {
		v.mu.known[name] = *found
		v.sweepLocked(now)
	}
}

// sweepLocked evicts one verdict when there are too many: an expired one, or else a
// denial, and of those the one that expires first.
func (v *verdicts[V]) sweepLocked(now time.Time) {
	if len(v.mu.known) <= mostVerdicts {
		return
	}
	var worst digest
	var of verdict[V]
	for name, x := range v.mu.known {
		if !now.Before(x.until) {
			delete(v.mu.known, name)
			continue
		}
		if of.until.IsZero() || of.yes && !x.yes || of.yes == x.yes && x.until.Before(of.until) {
			worst, of = name, x
		}
	}
	if len(v.mu.known) > mostVerdicts {
		delete(v.mu.known, worst)
	}
}
