// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
)

// Key names an object within its kind; it is the key of most controllers.
type Key = informer.Key

// Source tells a controller which keys to look at. K is the controller's key.
type Source[K comparable] interface {
	// Run calls add for each key until ctx ends, or until nothing can follow.
	// It blocks, and returns after everything that it started has ended: no add
	// begins after that. It returns nil when ctx ended it. add does not block
	// and may be called from any goroutine.
	Run(ctx context.Context, add func(K, Cause)) error
	// Synced is closed when the keys of what was there at the start have been
	// added. It is never closed before Run.
	Synced() <-chan struct{}
	// String names the source in logs, errors and states, such as
	// "kind Website". It does not change.
	String() string
}

// Cause says why a key was added.
type Cause struct {
	// Source is the name of the source.
	Source string
	// Type of the event. Zero where there was no object.
	Type informer.EventType
	// Object that the event was about. It may be of another kind than the key's.
	Object Key
	// OldGeneration and Generation of the object before and after; 0 where it
	// has none.
	OldGeneration, Generation int64
	// Deleting: the object's deletionTimestamp has appeared.
	Deleting bool
	// Initial: the object was there when the source started.
	Initial bool
	// Resync: nothing has changed, the resync period has passed.
	Resync bool
}

// Renewed reports that something else is wanted of the object than before: it is new,
// gone or to be deleted, or its generation is another. A change of its status is not
// that, nor what was there when the source started, nor a resync.
func (c Cause) Renewed() bool {
	switch c.Type {
	case informer.Added:
		return !c.Initial
	case informer.Deleted:
		return true
	case informer.Updated:
		return c.Deleting || c.OldGeneration != 0 && c.Generation != c.OldGeneration
	}
	return false
}

// Snapshot says where a source stands.
type Snapshot struct {
	// Source is its name.
	Source string
	// Synced: the keys of the start have been added.
	Synced bool
	// Optional: its controller does not wait for that.
	Optional bool
	// Events that arrived: of objects, of a channel, or ticks.
	Events uint64
	// Dropped are those of the events that the predicates held back.
	Dropped uint64
	// Keys that were added.
	Keys uint64
	// Panics of predicates, mappers and key functions.
	Panics uint64
	// Waiting are the keys that a Debounce holds back.
	Waiting int
	// NextDue is when the first of them is added; zero if none waits.
	NextDue time.Time
	// Kind of the objects whose events it tells. Empty: it has none.
	Kind schema.GroupKind
	// Owners whose keys it adds, for Owned and OwnedByAny. Empty for others.
	Owners schema.GroupKind
}

// record is what every source of this package keeps of itself.
type record struct {
	name    string
	err     error // misuse
	started atomic.Bool
	synced  chan struct{}

	events, dropped, keys, panics atomic.Uint64
}

func newRecord(name string, misuse ...error) *record {
	r := &record{name: name, synced: make(chan struct{})}
	if err := errors.Join(misuse...); err != nil {
		r.err = fmt.Errorf("source %s: %w", name, err)
	}
	return r
}

// begin is the first step of every Run.
func (r *record) begin() error {
	if r.err != nil {
		return r.err
	}
	if r.started.Swap(true) {
		return fmt.Errorf("source %s: run: it is running or has already run; make one for each controller", r.name)
	}
	return nil
}

// String names the source.
func (r *record) String() string { return r.name }

// Synced is closed when the keys of the start have been added.
func (r *record) Synced() <-chan struct{} { return r.synced }

// Err is the misuse that the source remembers, nil if there is none. Run returns
// it too.
func (r *record) Err() error { return r.err }

// Snapshot says where the source stands.
func (r *record) Snapshot() Snapshot {
	s := Snapshot{
		Source:  r.name,
		Events:  r.events.Load(),
		Dropped: r.dropped.Load(),
		Keys:    r.keys.Load(),
		Panics:  r.panics.Load(),
	}
	select {
	case <-r.synced:
		s.Synced = true
	default:
	}
	return s
}

// ErrOf is the misuse that s remembers, if it can tell: a Source may have a method
// Err() error.
func ErrOf[K comparable](s Source[K]) error {
	if e, ok := s.(interface{ Err() error }); ok {
		return e.Err()
	}
	return nil
}

// SnapshotOf says where s stands. A Source may have a method Snapshot() Snapshot; of
// others only the name and Synced are known.
func SnapshotOf[K comparable](s Source[K]) Snapshot {
	if e, ok := s.(interface{ Snapshot() Snapshot }); ok {
		return e.Snapshot()
	}
	snap := Snapshot{Source: s.String()}
	select {
	case <-s.Synced():
		snap.Synced = true
	default:
	}
	return snap
}
