// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import "context"

// Optional returns s with Synced closed from the start, so that a controller
// does not wait for it before it starts to work. Use it for a kind that may not
// be served or permitted; its Lister then returns that it has not synced.
// Snapshot shows whether s itself has synced. Everything else is as in s.
func Optional[K comparable](s Source[K]) Source[K] {
	if s == nil {
		return nil
	}
	closed := make(chan struct{})
	close(closed)
	return optional[K]{s, closed}
}

type optional[K comparable] struct {
	source Source[K]
	synced <-chan struct{}
}

func (o optional[K]) Run(ctx context.Context, add func(K, Cause)) error {
	return o.source.Run(ctx, add)
}

func (o optional[K]) Synced() <-chan struct{} { return o.synced }

func (o optional[K]) String() string { return o.source.String() }

func (o optional[K]) Err() error { return ErrOf(o.source) }

func (o optional[K]) Snapshot() Snapshot {
	s := SnapshotOf(o.source)
	s.Optional = true
	return s
}
