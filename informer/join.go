// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/internal/nursery"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/textlog"
)

// member is a handler, with the handle whose scopes it sees.
type member struct {
	*listener
	of      *handle
	gone    chan struct{} // closed when it has left
	left    func()        // closes gone, once
	running *nursery.Member
}

// syncWait closes done when each handle in missing is synced or released.
type syncWait struct {
	missing map[*handle]bool
	done    chan struct{}
}

// join adds a handler: it receives the present objects, and then every change.
func (h *handle) join(handle func(Event[Object]), opts HandlerOptions) (*Registration, error) {
	c := h.core
	if opts.Resync == 0 {
		opts.Resync = c.opts.resyncOf(c.kind.GroupKind())
	}
	id := int(c.joined.Add(1))
	opts.Name = cmp.Or(opts.Name, fmt.Sprintf("handler %d", id))
	log := c.log
	if opts.Logger.GetSink() != nil {
		log = textlog.Throttled(opts.Logger).WithValues("kind", c.kind.Kind)
	}
	m := &member{listener: newListener(id, handle, opts, store.ScopesOf(), log), of: h, gone: make(chan struct{})}
	m.guard, m.gvk = c.guard, c.gvk
	m.left = sync.OnceFunc(func() { close(m.gone) })
	var err error
	if m.running, err = c.group.Spawn(m.run); err == nil && opts.Resync > 0 {
		err = c.group.Go(func(ctx context.Context) error { return m.resync(ctx, opts.Resync) })
	}
	if err == nil {
		err = m.enter()
	}
	if err != nil {
		m.remove()
		m.end()
		return nil, c.errorf("add handler %q: %w", opts.Name, err)
	}
	return newRegistration(m.listener, m.leave), nil
}

// enter delivers the present objects to m and adds it to the members.
func (m *member) enter() error {
	m.of.core.critical.Lock()
	defer m.of.core.critical.Unlock()
	if m.of.released {
		return &ReleasedError{Kind: m.of.core.kind}
	}
	filter := m.of.view.Load().scopes
	m.look(filter, m.of.core.indexer.SeenDifferently(store.ScopesOf(), filter))
	if m.of.isSynced() {
		m.mark()
	}
	m.of.core.critical.handlers.add(m)
	m.of.core.membership.join(m)
	return nil
}

func (m *member) leave() {
	m.end()
	m.of.core.membership.leave(m)
	m.of.core.critical.Lock()
	defer m.of.core.critical.Unlock()
	m.of.core.critical.handlers.remove(func(other *member) bool { return other == m })
}

// end ends the goroutines of m. It does not wait.
func (m *member) end() {
	m.left()
	if m.running != nil {
		m.running.Cancel()
	}
}

// resync redelivers every object to m once per period, with jitter so that
// handlers do not fall into step.
func (m *member) resync(ctx context.Context, period time.Duration) error {
	for {
		timer := time.NewTimer(period + simhook.Duration(simhook.Of(ctx), "resync "+m.name, period/10))
		select {
		case <-timer.C:
			for scope := range m.of.view.Load().scopes.All() {
				m.of.core.fifo.Resync(scope, m.id, m.of.core.indexer.ObjectsIn(scope))
			}
			continue
		case <-m.gone:
		case <-ctx.Done():
		}
		timer.Stop()
		return nil
	}
}

func (c *core) syncedLocked(scope base.ScopeID) {
	if w := c.critical.scopes.at(scope); w != nil {
		w.synced.Store(true)
		c.settleLocked()
	}
}

// settleLocked notifies the handles that are now synced, their handlers, and
// their waiters.
func (c *core) settleLocked() {
	for _, h := range c.critical.handles {
		if !h.settled && h.isSynced() {
			h.settled = true
			close(h.synced)
		}
	}
	c.critical.handlers.markSynced()
	c.critical.waits = slices.DeleteFunc(c.critical.waits, func(w *syncWait) bool {
		maps.DeleteFunc(w.missing, func(h *handle, _ bool) bool { return h.settled || h.released })
		if len(w.missing) == 0 {
			close(w.done)
		}
		return len(w.missing) == 0
	})
}

// allSynced is closed when the present handles are synced or released.
func (c *core) allSynced() <-chan struct{} {
	c.critical.Lock()
	defer c.critical.Unlock()
	missing := make(map[*handle]bool)
	for _, h := range c.critical.handles {
		if h.isAwaited() {
			missing[h] = true
		}
	}
	for _, w := range c.critical.waits {
		if maps.Equal(w.missing, missing) {
			return w.done
		}
	}
	w := &syncWait{missing: missing, done: make(chan struct{})}
	if len(missing) == 0 {
		close(w.done)
	} else {
		c.critical.waits = append(c.critical.waits, w)
	}
	return w.done
}

// misusedBy returns why one of the handles cannot sync, or what is closed when there may be a
// reason.
func (c *core) misusedBy(is func(*handle) bool) (changed <-chan struct{}, err error) {
	noted, changed := c.misuses.so()
	if !noted {
		return changed, nil
	}
	var scopes []scopeView
	c.critical.Lock()
	for _, h := range c.critical.handles {
		if !is(h) {
			continue
		}
		if h.clusterWide && len(h.follows) > 0 {
			err = errScopeMisused // namespaces cannot be chosen for it
		}
		for _, w := range h.holds {
			if !w.synced.Load() {
				scopes = append(scopes, scopeView{w, w.reflector})
			}
		}
	}
	c.critical.Unlock()
	if slices.ContainsFunc(scopes, func(s scopeView) bool { return s.reflector.State().State == StateMisuse }) {
		err = errScopeMisused
	}
	return changed, err
}

// isAwaited reports whether a wait for the whole informer waits for h.
func (h *handle) isAwaited() bool { return h.asked != nil && !h.settled && !h.deferred }
