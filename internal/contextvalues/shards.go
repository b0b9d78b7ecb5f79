// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package contextvalues

import (
	"context"

	"github.com/flyball-dev/flyball/internal/shards"
)

// Shards says which shards this process works on. *ownership.Guard does.
type Shards interface {
	// By says what the keys of objects are divided by, and among how many shards.
	By() (by shards.By, count int)
	// Held are those that it works on. The context of what Enter begins carries the shard: see
	// ShardOf.
	shards.Held
}

// Shard is a shard that a process holds, for one time.
type Shard struct {
	Number int
	// Term differs each time that the process comes to hold the shard.
	Term uint64
}

// shardKey is the context key of a Shard. A context may carry one of each Shards: two managers of a
// process hold shards of their own, and a reconcile of the one may run in work of the other.
type shardKey struct{ of Shards }

// WithShard returns ctx for the work on a shard of those of a process. of is comparable.
func WithShard(ctx context.Context, of Shards, s Shard) context.Context {
	return context.WithValue(context.WithValue(ctx, shardKey{of}, s), shardKey{}, s)
}

// ShardOf returns the shard, of those of a process, that ctx's work is on. ok is false if it is on
// none of them, whatever it does of others. With a nil of it returns the last shard that was entered.
func ShardOf(ctx context.Context, of Shards) (s Shard, ok bool) {
	s, ok = ctx.Value(shardKey{of}).(Shard)
	return s, ok
}
