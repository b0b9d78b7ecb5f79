// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/informer/internal/delivery"
	"github.com/flyball-dev/flyball/informer/state"
)

// HandlerOptions configure one handler. The zero value is a level-triggered
// handler: it receives states, merged per key while it is busy.
type HandlerOptions struct {
	// Logger for messages about the handler. Zero: the informer's.
	Logger logr.Logger
	// Name in logs, metrics and Snapshot. Empty: "handler N".
	Name string
	// Resync is how often the handler receives every object again. 0: the
	// factory's default for the kind. Negative: never.
	Resync time.Duration
	// EveryEvent delivers each event in stream order, up to BacklogBytes,
	// instead of merging per key.
	EveryEvent bool
	// BacklogBytes bounds the backlog of an EveryEvent handler; other handlers
	// ignore it. Above the bound, consecutive updates of an object merge.
	// Additions and deletions never merge, so a slow handler's backlog still
	// grows with them and with the number of objects. Each event counts for
	// itself and for the state that it replaces or ends, which only backlogs
	// hold, with the size in which the server sent it, or 4 KiB if unknown.
	// Decoded, a state takes more, for a Pod about four times as much. Deltas
	// that wait to be stored count separately, and merge above the highest
	// bound of the kind's EveryEvent handlers. 0: 64 MiB. Negative: no bound.
	BacklogBytes int64
	// Relists also delivers objects that a list after the first, for instance
	// after a broken watch, has unchanged, as an update to the same state with
	// Event.Relisted. It is for code that only continues when it receives an
	// event for the object. An object with an event already waiting in a
	// merging backlog is not delivered twice.
	Relists bool
	// Undecodable also delivers undecodable objects: those present when the
	// handler joins, each version, and their end. An object that heals is an
	// update if the handler was given an object of the same UID before, else an
	// addition. Other events do not change.
	Undecodable bool
}

// Registration is one handler of an informer.
type Registration struct {
	handler interface {
		Synced() <-chan struct{}
		Remove()
		Snapshot() state.Handler
	}
	left func()
}

// newRegistration wraps a listener. left is called once, after the listener is
// removed.
func newRegistration(l *delivery.Listener, left func()) *Registration {
	return &Registration{handler: l, left: sync.OnceFunc(func() {
		l.Remove()
		left()
	})}
}

// Synced is closed when the handler has returned from all objects present when
// it joined, or from the first list if it joined before that. It stays open if
// the handler is removed or the run ends first.
func (r *Registration) Synced() <-chan struct{} { return r.handler.Synced() }

// Remove ends the handler: no call begins after it returns. It does not wait
// for a running call, so a handler may remove itself.
func (r *Registration) Remove() { r.left() }

// Snapshot returns the state of the handler.
func (r *Registration) Snapshot() state.Handler { return r.handler.Snapshot() }
