// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"slices"
	"sync"
	"time"
)

// refusals are the objects that the transform has refused and is given again.
type refusals struct {
	mu struct {
		sync.Mutex
		waiting map[Key]refusedObject
		running bool
	}
	woken chan struct{} // holds one token when waiting has more
}

// refusedObject is one object that the transform has refused.
type refusedObject struct {
	entry    *Undecodable
	failures int
	at       time.Time // of the next try
}

// refused is what is in quarantine at key because of the transform; nil: nothing.
func (x *Indexer[T]) refused(key Key) *Undecodable {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if u := x.mu.bad[key]; u != nil && u.original != nil {
		return u
	}
	return nil
}

// accept stores obj, which the transform has made of what it refused, if u still
// is what is known of its key.
func (x *Indexer[T]) accept(u *Undecodable, obj T) ([]change[T], error) {
	x.turn.Lock()
	defer x.turn.Unlock()
	s := step[T]{news: news{kind: accepted, uid: u.UID, version: u.Version}, key: u.Key, object: obj}
	values, err := x.evaluateLocked(1, func(int) (key Key, obj T, ok bool) { return s.key, s.object, true })
	defer clear(values)
	s.values = values
	changes := x.roomLocked(1)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.bad[u.Key] != u {
		return changes, nil
	}
	return x.takeLocked(&s, changes), err
}

// retryRefused has what the transform refuses of deltas given to it again.
func (c *core) retryRefused(deltas []Delta[Object]) {
	for i := range deltas {
		if !isNil(deltas[i].original) {
			c.retryLater(deltas[i].Key)
		}
	}
}

// retryLater has what the transform refuses of key given to it again.
func (c *core) retryLater(key Key) {
	u := c.indexer.refused(key)
	if u == nil {
		return // something newer has come
	}
	if c.refusals.add(u, time.Now()) {
		_, _ = c.group.Spawn(c.retryRefusals) // an error is the end of the run
	}
}

// add notes u. first: nobody tries yet what waits.
func (r *refusals) add(u *Undecodable, now time.Time) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.waiting == nil {
		r.mu.waiting, r.woken = make(map[Key]refusedObject), make(chan struct{}, 1)
	}
	if r.mu.waiting[u.Key].entry == u {
		return false
	}
	r.mu.waiting[u.Key] = refusedObject{entry: u, failures: 1, at: now.Add(refusalBackoff.delay(1, 1))}
	select {
	case r.woken <- struct{}{}:
	default:
	}
	first, r.mu.running = !r.mu.running, true
	return first
}

// due are those whose time has come, and how long it is to the next. None of
// either: nothing waits, and the caller is to end.
func (r *refusals) due(now time.Time) (due []refusedObject, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.mu.waiting {
		switch left := one.at.Sub(now); {
		case left <= 0:
			due = append(due, one)
		case wait == 0 || left < wait:
			wait = left
		}
	}
	slices.SortFunc(due, func(a, b refusedObject) int { return compareKeys(a.entry.Key, b.entry.Key) })
	if len(r.mu.waiting) == 0 {
		r.mu.waiting, r.mu.running = nil, false
	}
	return due, wait
}

// tried takes one off, or puts it off when the transform has refused it again.
func (r *refusals) tried(one refusedObject, refused bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.waiting[one.entry.Key].entry != one.entry {
		return // another version has been refused meanwhile
	}
	if !refused {
		delete(r.mu.waiting, one.entry.Key)
		return
	}
	one.failures++
	one.at = now.Add(refusalBackoff.delay(one.failures, 1))
	r.mu.waiting[one.entry.Key] = one
}

// retryRefusals gives the transform again what it has refused, until nothing is
// left of it or ctx ends.
func (c *core) retryRefusals(ctx context.Context) error {
	for {
		due, wait := c.refusals.due(time.Now())
		if len(due) == 0 && wait == 0 {
			return nil
		}
		for _, one := range due {
			if ctx.Err() != nil {
				return nil
			}
			c.refusals.tried(one, c.retry(one.entry), time.Now())
		}
		if len(due) > 0 {
			continue
		}
		if !c.refusals.pause(ctx, wait) {
			return nil
		}
	}
}

// pause waits for d, or until more waits, and reports whether ctx is alive.
func (r *refusals) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.woken:
	case <-ctx.Done():
		return false
	}
	return true
}

// retry gives u to the transform, and reports whether it is refused again.
func (c *core) retry(u *Undecodable) (refused bool) {
	original, ok := u.original.(Object)
	if !ok || c.indexer.refused(u.Key) != u {
		return false // something newer has come
	}
	transform := c.transform()
	obj, err := callTransform(func(obj Object) (Object, error) { return transform(Copy(obj)) }, original)
	if err != nil {
		return true
	}
	offered := c.offerWrite(observed[Object]{Effect: Stored, Key: u.Key, Object: obj})
	changes := c.store(Batch[Object]{}, false, func() ([]change[Object], error) { return c.indexer.accept(u, obj) })
	c.settled(offered, changes)
	c.log.Info("The transform accepts an object that it had refused", "key", u.Key.String(), "after", time.Since(u.Since).Round(time.Millisecond))
	return false
}
