// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"iter"
	"slices"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/store"
)

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
		if !m.every {
			continue
		}
		n++
		switch b := m.bytes; {
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
	shared := share(changes, h.every, merged)
	for _, m := range h.members {
		m.push(changes, shared)
	}
}

// giveAgain redelivers the objects of relisted scopes to the handlers
// that want it, except those in changes.
func (h *handlers) giveAgain(scopes []base.ScopeID, table *scopeTable, changes []store.Change) {
	var ask []*member
	for _, m := range h.members {
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
		if table.at(scope) == nil {
			continue // the scope has ended
		}
		unchanged := h.indexer.UnchangedIn(scope, given)
		for _, m := range ask {
			m.giveAgain(scope, unchanged)
		}
	}
}

// look shows the members of a handle what it sees from now on.
func (h *handlers) look(of *handle, now *store.ScopeSet, differently iter.Seq[store.Change]) {
	for _, m := range h.members {
		if m.of == of {
			m.look(now, differently)
		}
	}
}

// markSynced marks the members of settled handles.
func (h *handlers) markSynced() {
	for _, m := range h.members {
		if m.of.settled {
			m.mark()
		}
	}
}
