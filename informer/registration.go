// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// HandlerOptions of one handler. The zero value suits a level-triggered
// handler: it is told of states, merged per key while it is busy.
type HandlerOptions struct {
	// Logger for what is to be said of the handler. Zero: the informer's.
	Logger logr.Logger
	// Name in logs, metrics and Snapshot. Empty: "handler N".
	Name string
	// Resync gives every object again this often. 0: the factory's default for
	// the kind. Negative: never.
	Resync time.Duration
	// EveryEvent gives each event in the order of the stream instead of merging
	// per key, up to BacklogBytes.
	EveryEvent bool
	// BacklogBytes bound what waits for an EveryEvent handler. Above it,
	// consecutive updates of an object merge; additions and deletions never do, so
	// that a slow handler's backlog still grows with them and with the number of
	// objects. An event counts for itself and for the state that it replaces or
	// ends, which only backlogs hold: by the size in which the server sent it, or
	// 4 KiB where that is unknown. The decoded state takes more, a Pod about four
	// times as much. What waits to be stored is counted by itself, and merges above
	// the highest bound of the kind's EveryEvent handlers. 0: 64 MiB. Negative: no
	// bound. A handler that is not EveryEvent ignores it.
	BacklogBytes int64
	// Relists also gives the objects that a list has unchanged, as an update from
	// a state to itself with Event.Relisted, for code that goes on only when it
	// hears of an object again. It is about lists after the first one, such as
	// follow a watch that broke. An object of which an event already waits in a
	// backlog that merges is not given twice.
	Relists bool
	// Undecodable also tells of objects that cannot be decoded: that they are
	// there when the handler joins, each version, and their end. Their healing is
	// an update if the handler was given an object of the same UID before, else an
	// addition. Everything else is told as without it.
	Undecodable bool
}

// Registration is one handler's place in an informer.
type Registration struct {
	handler interface {
		synced() <-chan struct{}
		remove()
		snapshot() HandlerSnapshot
	}
	left func()
}

// newRegistration wraps a listener. left is called once, after the listener has
// been removed: the informer then forgets it.
func newRegistration[T Object](l *listener[T], left func()) *Registration {
	return &Registration{handler: l, left: sync.OnceFunc(func() {
		l.remove()
		left()
	})}
}

// Synced is closed when the handler has returned from all that was there when
// it joined, or, when it joined before the first list, from that list. It stays
// open when the handler is removed, or the run ends, before that.
func (r *Registration) Synced() <-chan struct{} { return r.handler.synced() }

// Remove ends the handler: after it returns no further call begins. It does
// not wait for a call that is running, so a handler may remove itself.
func (r *Registration) Remove() { r.left() }

// Snapshot says how far the handler is.
func (r *Registration) Snapshot() HandlerSnapshot { return r.handler.snapshot() }
