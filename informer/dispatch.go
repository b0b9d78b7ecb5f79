// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/store"
)

// dispatch stores the batches of the Reflectors, then notifies the listeners.
func (c *core) dispatch(ctx context.Context) error {
	defer c.finish()
	defer c.fifo.Close()
	defer c.fifo.WakeAtEnd(ctx)()
	c.storing.SetGoroutine()
	for {
		batch, err := c.fifo.PopBatchWoken(ctx)
		if err != nil {
			return nil
		}
		began := time.Now()
		c.storing.Begin()
		offered := c.guard.OfferDeltas(batch.Deltas)
		changes := c.store(batch, false, func() ([]store.Change, error) { return c.applyLocked(batch) })
		c.fifo.Applied()
		c.memory.Look()
		c.guard.RetireReplaced(offered, changes)
		c.reportBatch(len(batch.Deltas), began)
		reportUndecodable(c.log, batch.Deltas)
		c.refusals.schedule(batch.Deltas)
		c.storing.End()
	}
}

// applyLocked changes the store by a batch.
func (c *core) applyLocked(batch store.Batch) ([]store.Change, error) {
	c.auditor.touchLocked(batch.Deltas)
	c.critical.recorded.batchLocked(&batch)
	return c.indexer.Apply(c.critical.scopes.living(batch))
}

// reportUndecodable logs the first undecodable object and their number, since a
// list may have many.
func reportUndecodable(log logr.Logger, deltas []store.Delta) {
	var first *store.Delta
	n := 0
	for i := range deltas {
		if deltas[i].Err == nil {
			continue
		}
		if n++; first == nil {
			first = &deltas[i]
		}
	}
	if n == 0 {
		return
	}
	log = log.WithValues("key", first.Key.String(), "objects", n)
	var stack []any
	if p, ok := errors.AsType[*base.PanicError](first.Err); ok {
		stack = []any{"stack", p.Stack}
	}
	log.Error(first.Err, "Quarantined objects that cannot be decoded or that the transform refuses; reading them returns an error until that changes", stack...)
}

// store runs apply in the critical section: first the Indexer, then the
// listeners, then the waiters for sync, and after it the waiters for a version.
// lists has the lists that end in the batch. own: the batch is an own write.
// With a mutation detector it returns the changes.
func (c *core) store(lists store.Batch, own bool, apply func() ([]store.Change, error)) (done []store.Change) {
	c.critical.Lock()
	changes, err := apply()
	for i := range changes {
		changes[i].Own = own
	}
	for _, r := range lists.Reached {
		c.projection.recordStored(r.Version)
	}
	if c.critical.sim != nil {
		c.reportStoredLocked(changes, own)
	}
	c.critical.handlers.push(changes, lists.Merged)
	for _, scope := range lists.Relisted {
		if w := c.critical.scopes.at(scope); w != nil {
			w.relists.Add(1)
		}
	}
	c.critical.handlers.giveAgain(lists.Relisted, &c.critical.scopes, changes)
	if c.guard != nil {
		done = slices.Clone(changes) // the Indexer reuses its slice
	}
	clear(changes)
	passedLocked(c, lists.Passed)
	for _, scope := range lists.Synced {
		c.critical.syncedLocked(scope)
	}
	if len(lists.Passed)+len(lists.Synced) > 0 {
		c.projection.widened(&c.critical.scopes)
	}
	c.critical.Unlock()
	for _, do := range c.indexer.Passed() {
		do()
	}
	if err != nil {
		c.log.Error(err, "An index function panicked; ByIndex does not find the objects by it")
	}
	return done
}

// OnBatch calls f after each batch that is stored and in the backlogs of the
// handlers. f runs in the informer's goroutine and must not block. It belongs
// to the kind and stays when this handle is released.
func (i *SharedInformer[T]) OnBatch(f func(BatchReport)) {
	i.core.settings.addBatchObserver(f)
}

func (c *core) reportBatch(deltas int, began time.Time) {
	observers := c.settings.batchObservers()
	if len(observers) == 0 {
		return
	}
	r := BatchReport{Deltas: deltas, Took: time.Since(began), Waiting: c.fifo.Len()}
	for _, f := range observers {
		f(r)
	}
}
