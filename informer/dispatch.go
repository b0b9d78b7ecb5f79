// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
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
		offered := c.guard.offerDeltas(batch.Deltas)
		changes := c.store(batch, false, func() ([]store.Change, error) {
			c.touchLocked(batch.Deltas)
			return c.indexer.Apply(c.critical.scopes.living(batch))
		})
		c.fifo.Applied()
		c.memory.Look()
		c.guard.retireReplaced(offered, changes)
		c.reportBatch(len(batch.Deltas), began)
		c.reportUndecodable(batch.Deltas)
		c.retryRefused(batch.Deltas)
		c.storing.End()
	}
}

// reportUndecodable logs the first undecodable object and their number, since a
// list may have many.
func (c *core) reportUndecodable(deltas []store.Delta) {
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
	log := c.log.WithValues("key", first.Key.String(), "objects", n)
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
	for _, r := range lists.Reached {
		c.projection.recordStored(r.Version)
	}
	if c.critical.sim != nil {
		c.noteStoredLocked(changes, own)
	}
	shared := share(changes, c.critical.every, lists.Merged)
	for _, l := range c.critical.members {
		l.push(changes, shared)
	}
	for _, scope := range lists.Relisted {
		if w := c.critical.scopes.at(scope); w != nil {
			w.relists.Add(1)
		}
	}
	c.giveAgainLocked(lists.Relisted, changes)
	if c.guard != nil {
		done = slices.Clone(changes) // the Indexer reuses its slice
	}
	clear(changes)
	passedLocked(c, lists.Passed)
	for _, scope := range lists.Synced {
		c.syncedLocked(scope)
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

// observe stores an own write and notifies the listeners, before any watch
// does.
func (c *core) observe(w Written) {
	switch w.Effect {
	case Touched:
		markPending(c, w)
	case Removed:
		storeAnswer(c, store.Observed{Effect: Removed, Key: w.Key, UID: w.UID, Version: w.Version}, nil, nil, nil)
	case Stored:
		switch hidden, err := storeWritten(c, w); {
		case err != nil:
			markPending(c, w)
		case hidden:
			c.settler.Mark(w.Key, 0)
		}
	}
}

// markPending makes the key of w pending, if a scope of the informer may have it.
func markPending(c *core, w Written) {
	for _, watched := range c.watchedNow() {
		if of := watched.scope.Namespace; of == "" || w.Key.Namespace == "" || of == w.Key.Namespace {
			c.settler.Mark(w.Key, w.Version)
			return
		}
	}
}

// settledStore is the store of an informer for its Settler.
type settledStore struct{ core *core }

// Version implements unsettled.Store.
func (s settledStore) Version(key Key) Version {
	obj, _, _ := s.core.indexer.Get(key)
	if base.IsNil(obj) {
		return 0
	}
	return ParseVersion(obj.GetResourceVersion())
}

// Keys implements unsettled.Store.
func (s settledStore) Keys(namespace string) iter.Seq[Key] {
	return func(yield func(Key) bool) {
		for r := range s.core.indexer.View().All() {
			if (namespace == "" || namespace == r.Key.Namespace) && !yield(r.Key) {
				return
			}
		}
	}
}

// Found implements unsettled.Store.
func (s settledStore) Found(item listwatch.Item[Object]) {
	_, _ = storeWritten(s.core, Written{
		Kind: s.core.gvk(), Effect: Stored, Key: item.Key, UID: item.UID,
		Version: ParseVersion(item.ResourceVersion), Object: item.Object,
	})
}

// Absent implements unsettled.Store.
func (s settledStore) Absent(key Key, version Version) {
	storeAnswer(s.core, store.Observed{Absent: true, Key: key, Version: version}, nil, nil, nil)
}

// storeWritten stores an object as the server has it. hidden is as of Indexer.Observe. It
// returns an error if the informer cannot hold the object in this form.
func storeWritten(c *core, w Written) (hidden bool, err error) {
	for stored := false; !stored && err == nil; {
		stored, hidden, err = storeAs(c, w, c.projection.current())
	}
	return hidden, err
}

// storeAs is storeWritten with the fields of a generation. It stores nothing if that is no
// longer the present one.
func storeAs(c *core, w Written, as *generation) (stored, hidden bool, err error) {
	obj, err := c.typed(w)
	if err != nil {
		return false, false, err
	}
	o := store.Observed{Effect: Stored, Key: w.Key, UID: w.UID, Version: w.Version}
	in, unsure := c.matching(obj)
	as.keeps(c.settings.keepsManagedFields()).reduce(obj)
	if transform := c.settings.transform(); transform == nil {
		o.Object = obj
	} else if o.Object, o.Err = base.CallTransform(transform, obj); o.Err != nil {
		if o, err = c.refusedWrite(o, w); err != nil {
			return false, false, err
		}
	}
	stored, hidden = storeAnswer(c, c.packing.answer(o), in, unsure, as)
	return stored, hidden, nil
}

// storeAnswer stores what the server has answered, and notifies the listeners. It stores
// nothing if the object is not as of the present generation; nil: there is none.
func storeAnswer(c *core, o store.Observed, in, unsure []*watched, as *generation) (stored, hidden bool) {
	offered := c.guard.offerWrite(o)
	changes := c.store(store.Batch{}, true, func() (changes []store.Change, err error) {
		if stored = as == nil || as == c.projection.current(); !stored {
			return nil, nil
		}
		o.In, o.Unsure = c.critical.scopes.ids(in), c.critical.scopes.ids(unsure)
		if obj, _, err := c.indexer.Get(o.Key); err != nil || !base.IsNil(obj) && ParseVersion(obj.GetResourceVersion()) > o.Version {
			held, unheld := heldBy(in, o.Key, obj, err != nil || c.settings.transform() != nil)
			o.Held, o.Unheld = c.critical.scopes.ids(held), c.critical.scopes.ids(unheld)
		}
		c.hearLocked(o.Key)
		c.projection.recordStored(o.Version)
		changes, hidden, err = c.indexer.Observe(o)
		return changes, err
	})
	c.guard.retireReplaced(offered, changes)
	if stored && o.Err != nil {
		c.retryLater(o.Key)
	}
	return stored, hidden
}

// heldBy divides scopes into those that have the object of key as it is stored, and those that
// have not. changed: its labels are not known, so that the others are in neither.
func heldBy(scopes []*watched, key Key, obj Object, changed bool) (held, unheld []*watched) {
	for _, w := range scopes {
		switch {
		case w.surely(key, obj, changed):
			held = append(held, w)
		case !changed:
			unheld = append(unheld, w)
		}
	}
	return held, unheld
}

// refusedWrite returns o, the write w, as an object that the transform refused.
func (c *core) refusedWrite(o store.Observed, w Written) (store.Observed, error) {
	original, err := c.typed(w) // the transform may have modified its argument
	if err != nil {
		o.Err = nil
		return o, err
	}
	c.projection.current().keeps(c.settings.keepsManagedFields()).reduce(original)
	o.Object, o.Original, o.Err = nil, original, fmt.Errorf("transform: %w", o.Err)
	o.Metadata = base.MetadataOf(original, original.GetObjectKind().GroupVersionKind())
	return o, nil
}

// matching returns the scopes that obj belongs to, and those for which only the
// server can tell.
func (c *core) matching(obj Object) (in, unsure []*watched) {
	for _, w := range c.watchedNow() {
		switch w.matcher.Match(obj) {
		case base.Inside:
			in = append(in, w)
		case base.Undecided:
			unsure = append(unsure, w)
		}
	}
	return in, unsure
}

// giveAgainLocked redelivers the objects of relisted scopes to the handlers
// that want it, except those in changes.
func (c *core) giveAgainLocked(scopes []base.ScopeID, changes []store.Change) {
	var ask []*member
	for _, m := range c.critical.members {
		if m.relists {
			ask = append(ask, m)
		}
	}
	if len(ask) == 0 || len(scopes) == 0 {
		return
	}
	given := make(map[Key]bool, len(changes))
	for i := range changes {
		given[changes[i].Key] = true
	}
	for _, scope := range scopes {
		if c.critical.scopes.at(scope) == nil {
			continue // the scope has ended
		}
		unchanged := c.indexer.UnchangedIn(scope, given)
		for _, m := range ask {
			m.giveAgain(scope, unchanged)
		}
	}
}

// BatchReport describes a stored batch, for metrics.
type BatchReport struct {
	Deltas  int           // stored
	Took    time.Duration // from popping them to the backlogs of the handlers
	Waiting int           // deltas still waiting
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
