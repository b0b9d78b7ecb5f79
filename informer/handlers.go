// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/delivery"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/taskgroup"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/kube"
)

// member is a handler, with the handle whose scopes it sees.
type member struct {
	*delivery.Listener
	of      *handle
	gone    chan struct{} // closed when it has left
	left    func()        // closes gone, once
	running *taskgroup.Member
}

// join adds a handler: it receives the present objects, and then every change.
func (h *handle) join(handle func(kube.Event[kube.Object]), opts HandlerOptions) (*Registration, error) {
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
	m := &member{of: h, gone: make(chan struct{}), Listener: delivery.New(handle, delivery.Options{
		ID: id, Name: opts.Name, Log: log, Kind: c.gvk, Guard: c.guard,
		EveryEvent: opts.EveryEvent, BacklogBytes: opts.BacklogBytes, Relists: opts.Relists, Undecodable: opts.Undecodable,
	}, store.ScopesOf())}
	m.left = sync.OnceFunc(func() { close(m.gone) })
	var err error
	if m.running, err = c.group.Spawn(m.Run); err == nil && opts.Resync > 0 {
		err = c.group.Go(func(ctx context.Context) error { return m.resync(ctx, opts.Resync) })
	}
	if err == nil {
		err = m.enter()
	}
	if err != nil {
		m.Remove()
		m.end()
		return nil, c.errorf("add handler %q: %w", opts.Name, err)
	}
	return newRegistration(m.Listener, m.leave), nil
}

// enter delivers the present objects to m and adds it to the members.
func (m *member) enter() error {
	m.of.core.critical.Lock()
	defer m.of.core.critical.Unlock()
	if m.of.released {
		return &kube.ReleasedError{Kind: m.of.core.kind}
	}
	filter := m.of.view.Load().scopes
	m.Look(filter, m.of.core.indexer.SeenDifferently(store.ScopesOf(), filter))
	if m.of.isSynced() {
		m.Mark()
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
		timer := time.NewTimer(period + simhook.Duration(simhook.Of(ctx), "resync "+m.Name, period/10))
		select {
		case <-timer.C:
			for scope := range m.of.view.Load().scopes.All() {
				m.of.core.fifo.Resync(scope, m.ID, m.of.core.indexer.ObjectsIn(scope))
			}
			continue
		case <-m.gone:
		case <-ctx.Done():
		}
		timer.Stop()
		return nil
	}
}

// handlers are the handlers of a core. The core's critical section guards them.
type handlers struct {
	members []*member
	every   int // number of members that want every event
	fifo    *store.DeltaFIFO
	indexer *store.Indexer
}

// add adds m, to which the present objects are delivered already.
func (h *handlers) add(m *member) {
	h.members = append(h.members, m)
	h.recount()
}

// remove removes the members for which gone returns true.
func (h *handlers) remove(gone func(*member) bool) {
	h.members = slices.DeleteFunc(h.members, gone)
	h.recount()
}

// recount counts the handlers that want every event, and makes the
// DeltaFIFO keep every event up to their largest bound.
func (h *handlers) recount() {
	n, bound := 0, int64(0)
	for _, m := range h.members {
		if !m.EveryEvent {
			continue
		}
		n++
		switch b := m.BacklogBytes; {
		case b < 0 || bound < 0:
			bound = -1
		default:
			bound = max(bound, b)
		}
	}
	h.every = n
	h.fifo.Keep(bound)
}

// push puts the changes of a batch into the backlogs.
func (h *handlers) push(changes []store.Change, merged uint64) {
	shared := delivery.Share(changes, h.every, merged)
	for _, m := range h.members {
		m.Push(changes, shared)
	}
}

// giveAgain redelivers the objects of relisted scopes to the handlers
// that want it, except those in changes.
func (h *handlers) giveAgain(scopes []base.ScopeID, table *scopeTable, changes []store.Change) {
	var ask []*member
	for _, m := range h.members {
		if m.Relists {
			ask = append(ask, m)
		}
	}
	if len(ask) == 0 || len(scopes) == 0 {
		return
	}
	given := make(map[kube.Key]bool, len(changes))
	for i := range changes {
		given[changes[i].Key] = true
	}
	for _, scope := range scopes {
		if table.at(scope) == nil {
			continue // the scope has ended
		}
		unchanged := h.indexer.UnchangedIn(scope, given)
		for _, m := range ask {
			m.GiveAgain(scope, unchanged)
		}
	}
}

// look shows the members of a handle what it sees from now on.
func (h *handlers) look(of *handle, now *store.ScopeSet, differently iter.Seq[store.Change]) {
	for _, m := range h.members {
		if m.of == of {
			m.Look(now, differently)
		}
	}
}

// markSynced marks the members of settled handles.
func (h *handlers) markSynced() {
	for _, m := range h.members {
		if m.of.settled {
			m.Mark()
		}
	}
}
