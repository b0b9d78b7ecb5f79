// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// member is a handler that has joined, and the scopes it sees.
type member[T Object] struct {
	*listener[T]
	scopes *scopeSet
	gone   chan struct{} // closed when it has left
}

// syncWait closes done when every scope in missing is synced.
type syncWait struct {
	missing map[ScopeID]bool
	done    chan struct{}
}

// join lets a handler in: it gets what is there, and from then on every
// change.
func (c *core[T]) join(handle func(Event[T]), opts HandlerOptions, scopes []ScopeID) (*Registration, error) {
	if opts.Resync == 0 {
		opts.Resync = c.opts.resyncOf(c.kind.GroupKind())
	}
	c.mu.Lock()
	c.mu.handlers++
	id := c.mu.handlers
	c.mu.Unlock()
	opts.Name = cmp.Or(opts.Name, fmt.Sprintf("handler %d", id))
	seen := scopesOf(scopes...)
	m := &member[T]{listener: newListener(id, handle, opts, seen, c.log), scopes: seen, gone: make(chan struct{})}

	c.critical.Lock()
	m.join(c.indexer.present(seen))
	c.markLocked(m)
	c.critical.members = append(c.critical.members, m)
	c.critical.Unlock()

	r := newRegistration(m.listener, func() { c.leave(m) })
	err := c.group.Go(m.run)
	if err == nil && opts.Resync > 0 {
		err = c.group.Go(func(ctx context.Context) error { return c.resync(ctx, m, opts.Resync) })
	}
	if err != nil {
		r.Remove()
		return nil, c.errorf("add handler %q: %w", opts.Name, err)
	}
	return r, nil
}

func (c *core[T]) leave(m *member[T]) {
	close(m.gone)
	c.critical.Lock()
	defer c.critical.Unlock()
	c.critical.members = slices.DeleteFunc(c.critical.members, func(other *member[T]) bool { return other == m })
}

// resync gives m every object again, each time its period has passed, spread a
// little so that many handlers do not fall into step.
func (c *core[T]) resync(ctx context.Context, m *member[T], period time.Duration) error {
	for {
		timer := time.NewTimer(period + time.Duration(rand.Int64N(1+int64(period)/10)))
		select {
		case <-timer.C:
			for scope := range m.scopes.all() {
				c.fifo.Resync(scope, m.id, c.indexer.objectsIn(scope))
			}
			continue
		case <-m.gone:
		case <-ctx.Done():
		}
		timer.Stop()
		return nil
	}
}

// syncedLocked marks the first list of scope as stored.
func (c *core[T]) syncedLocked(scope ScopeID) {
	c.critical.synced[scope] = true
	for _, l := range c.critical.members {
		c.markLocked(l)
	}
	c.critical.waits = slices.DeleteFunc(c.critical.waits, func(w *syncWait) bool {
		delete(w.missing, scope)
		if len(w.missing) == 0 {
			close(w.done)
		}
		return len(w.missing) == 0
	})
}

// markLocked puts the end of the initial objects into m's backlog when all of
// its scopes are stored.
func (c *core[T]) markLocked(m *member[T]) {
	for scope := range m.scopes.all() {
		if !c.critical.synced[scope] {
			return
		}
	}
	m.mark()
}

// waitFor is closed when the first lists of scopes are stored.
func (c *core[T]) waitFor(scopes []ScopeID) <-chan struct{} {
	c.critical.Lock()
	defer c.critical.Unlock()
	w := &syncWait{missing: make(map[ScopeID]bool), done: make(chan struct{})}
	for _, s := range scopes {
		if !c.critical.synced[s] {
			w.missing[s] = true
		}
	}
	if len(w.missing) == 0 {
		close(w.done)
	} else {
		c.critical.waits = append(c.critical.waits, w)
	}
	return w.done
}

// allSynced is closed when the scopes known now are stored.
func (c *core[T]) allSynced() <-chan struct{} {
	c.mu.Lock()
	n := len(c.mu.scopes)
	c.mu.Unlock()
	all := make([]ScopeID, n)
	for i := range all {
		all[i] = ScopeID(i)
	}
	return c.waitFor(all)
}
