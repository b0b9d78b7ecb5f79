// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"iter"

	"github.com/go-logr/logr"
)

// listener gives one handler its events, from its own goroutine and backlog.
type listener[T Object] struct{}

// newListener starts nothing. filter: the scopes that the handler sees; nil: all.
func newListener[T Object](handle func(Event[T]), opts HandlerOptions, filter *scopeSet, log logr.Logger) *listener[T] {
	return &listener[T]{}
}

// push adds changes, those that the filter sees. It never blocks.
func (l *listener[T]) push(changes []change[T]) {}

// join adds what is there when the handler joins.
func (l *listener[T]) join(present iter.Seq[change[T]]) {}

// resync gives objects again of which nothing waits.
func (l *listener[T]) resync(present iter.Seq[change[T]]) {}

// mark says that the initial objects are all in: Synced is closed when the
// handler has returned from them. Marking twice is fine.
func (l *listener[T]) mark() {}

// run delivers until ctx ends or the listener is removed. It returns nil.
func (l *listener[T]) run(ctx context.Context) error { <-ctx.Done(); return nil }

// remove: no further call begins after it returns.
func (l *listener[T]) remove() {}

func (l *listener[T]) synced() <-chan struct{} { return nil }

func (l *listener[T]) snapshot() HandlerSnapshot { return HandlerSnapshot{} }
