// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/mutation"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/internal/taskgroup"
	"github.com/flyball-dev/flyball/kube"
)

// refusals are the objects that the transform refused, to be retried.
type refusals struct {
	// What an accepted object passes through.
	settings *settings
	packing  *packing
	guard    *mutation.Guard
	indexer  *store.Indexer
	store    func(apply func() ([]store.Change, error)) []store.Change
	group    *taskgroup.Group // that run joins
	log      logr.Logger
	mu       struct {
		sync.Mutex
		waiting map[kube.Key]refusedObject
		running bool
	}
	woken chan struct{} // has one token if waiting has grown
}

type refusedObject struct {
	entry    *kube.Undecodable
	failures int
	at       time.Time // of the next attempt
}

// schedule schedules retries for refused objects in deltas.
func (r *refusals) schedule(deltas []store.Delta) {
	for i := range deltas {
		if !base.IsNil(deltas[i].Refused) {
			r.scheduleOne(deltas[i].Key)
		}
	}
}

// scheduleOne schedules a retry for the refused object of key.
func (r *refusals) scheduleOne(key kube.Key) {
	u, _ := r.indexer.Refused(key)
	if u == nil {
		return // a newer version has arrived
	}
	if r.add(u, time.Now()) {
		_, _ = r.group.Spawn(r.run) // an error means that the run has ended
	}
}

// add adds u. first: no goroutine retries yet.
func (r *refusals) add(u *kube.Undecodable, now time.Time) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.waiting == nil {
		r.mu.waiting, r.woken = make(map[kube.Key]refusedObject), make(chan struct{}, 1)
	}
	if r.mu.waiting[u.Key].entry == u {
		return false
	}
	r.mu.waiting[u.Key] = refusedObject{entry: u, failures: 1, at: now.Add(steps.RefusalBackoff.Delay(1, 1))}
	select {
	case r.woken <- struct{}{}:
	default:
	}
	first, r.mu.running = !r.mu.running, true
	return first
}

// due returns the objects due now, and the time until the next. Both are empty
// if nothing waits and the caller must end.
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
	slices.SortFunc(due, func(a, b refusedObject) int { return kube.CompareKeys(a.entry.Key, b.entry.Key) })
	if len(r.mu.waiting) == 0 {
		r.mu.waiting, r.mu.running = nil, false
	}
	return due, wait
}

// recordAttempt removes an object, or reschedules it if the transform refused it again.
func (r *refusals) recordAttempt(one refusedObject, refused bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.waiting[one.entry.Key].entry != one.entry {
		return // another version was refused meanwhile
	}
	if !refused {
		delete(r.mu.waiting, one.entry.Key)
		return
	}
	one.failures++
	one.at = now.Add(steps.RefusalBackoff.Delay(one.failures, 1))
	r.mu.waiting[one.entry.Key] = one
}

// run retries refused objects until none is left or ctx ends.
func (r *refusals) run(ctx context.Context) error {
	for {
		due, wait := r.due(time.Now())
		if len(due) == 0 && wait == 0 {
			return nil
		}
		for _, one := range due {
			if ctx.Err() != nil {
				return nil
			}
			r.recordAttempt(one, r.retry(one.entry), time.Now())
		}
		if len(due) > 0 {
			continue
		}
		if !r.pause(ctx, wait) {
			return nil
		}
	}
}

// pause waits for d, or until more objects wait, and reports whether ctx is
// alive.
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

// retry passes u to the transform, and reports whether it is refused again.
func (r *refusals) retry(u *kube.Undecodable) (refused bool) {
	now, original := r.indexer.Refused(u.Key)
	if now != u {
		return false // a newer version has arrived
	}
	transform := r.settings.transform()
	obj, err := base.CallTransform(func(obj kube.Object) (kube.Object, error) { return transform(kube.Copy(obj)) }, original)
	if err != nil {
		return true
	}
	obj = r.packing.pack(obj)
	offered := r.guard.OfferWrite(store.Observed{Effect: kube.Stored, Key: u.Key, Object: obj})
	changes := r.store(func() ([]store.Change, error) { return r.indexer.Accept(u, obj) })
	r.guard.RetireReplaced(offered, changes)
	r.log.Info("The transform now accepts an object that it had refused", "key", u.Key.String(), "after", time.Since(u.Since).Round(time.Millisecond))
	return false
}
