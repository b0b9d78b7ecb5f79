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

	"github.com/flyball-dev/flyball/kube"
)

// Key names an object within its kind; most controllers use it as their key.
type Key = kube.Key

// Source provides the keys of a controller. K is the controller's key.
type Source[K comparable] interface {
	// Run calls add for each key until ctx ends, or until no more keys can
	// follow. It blocks, and returns after everything that it started has
	// ended: no add begins after that. It returns nil if ctx ended it. add does
	// not block and may be called from any goroutine.
	Run(ctx context.Context, add func(K, Cause)) error
	// Synced is closed when the keys of the initial objects have been added. It
	// is never closed before Run.
	Synced() <-chan struct{}
	// String names the source in logs, errors and states, such as
	// "kind Website". It does not change.
	String() string
}

// Snapshot is the state of a source.
type Snapshot struct {
	// Source is its name.
	Source string
	// Synced: the keys of the initial objects have been added.
	Synced bool
	// Optional: its controller does not wait for Synced.
	Optional bool
	// Events received: of objects, of a channel, or ticks.
	Events uint64
	// Dropped counts the events that did not pass the predicates.
	Dropped uint64
	// Keys added.
	Keys uint64
	// Own counts the keys that were not added because the event only reports
	// what a reconcile of the key has written: see OmitOwnEvents in the Options of
	// package reconcile.
	Own uint64
	// Absent counts the keys that were not added because a controller of
	// reconcile.For has no such object.
	Absent uint64
	// Panics of predicates, mappers and key functions.
	Panics uint64
	// Waiting counts the keys that a Debounce delays.
	Waiting int
	// NextDue is when the first of them is added; zero: none waits.
	NextDue time.Time
	// Kind of the objects whose events it uses. Empty: none.
	Kind schema.GroupKind
	// Self: its keys are those of the objects, as source.Self returns them.
	Self bool
	// Controllers: its keys are those of Owners that are the controller owners of the objects, as for
	// Owned.
	Controllers bool
	// Owners whose keys it adds, for Owned and OwnedByAny. Empty for others.
	Owners schema.GroupKind
}

// record is the common state of the sources in this package.
type record struct {
	name    string
	err     error
	started atomic.Bool
	synced  chan struct{}

	events, dropped, keys, own, absent, panics atomic.Uint64
}

func newRecord(name string, misuse ...error) *record {
	r := &record{name: name, synced: make(chan struct{})}
	if err := errors.Join(misuse...); err != nil {
		r.err = fmt.Errorf("source %s: %w", name, err)
	}
	return r
}

// begin must be called first in every Run.
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

// Synced is closed when the keys of the initial objects have been added.
func (r *record) Synced() <-chan struct{} { return r.synced }

// Err returns the misuse that the source remembers, or nil. Run returns it too.
func (r *record) Err() error { return r.err }

// Snapshot returns the state of the source.
func (r *record) Snapshot() Snapshot {
	s := Snapshot{
		Source:  r.name,
		Events:  r.events.Load(),
		Dropped: r.dropped.Load(),
		Keys:    r.keys.Load(),
		Own:     r.own.Load(),
		Absent:  r.absent.Load(),
		Panics:  r.panics.Load(),
	}
	select {
	case <-r.synced:
		s.Synced = true
	default:
	}
	return s
}

// ErrOf returns the misuse of s, if s has a method Err() error.
func ErrOf[K comparable](s Source[K]) error {
	if e, ok := s.(interface{ Err() error }); ok {
		return e.Err()
	}
	return nil
}

// SnapshotOf returns the state of s. For a Source without a method Snapshot()
// Snapshot it has only the name and Synced.
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
