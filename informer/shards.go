// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/shards"
)

// Divide makes the informers hold only the objects of some of count shards, as HoldShards says;
// before its first call, of none: a divided informer is then synced and has no objects. by returns
// what decides the shard of a kind's objects: "namespace", "uid", "owner" (the UID of the
// controller owner, or the object's own without one), or "" for kinds that are held whole. It is
// called once for each informer, when that begins to run, so it may depend on what was requested
// until then; it must not block. Kinds of cluster scope are whole where it says "namespace", and
// so is the metadata of Namespaces, which scopes with a NamespaceSelector need.
//
// Call Divide before Run, at most once. It is an error afterwards, or if count is not between 1
// and 4096.
func (f *SharedInformerFactory) Divide(count int, by func(schema.GroupKind) string) error {
	return f.sharding.divide(count, by)
}

// HoldShards makes these the shards whose objects the divided informers hold, and returns at once.
// What a gained shard has is listed, and comes to handlers as added. The objects of a lost shard
// leave, as with SetScopes: handlers receive them as deleted, with LeftScope. Objects of shards
// that stay are read as before, without a gap in their events; Synced of a handle does not wait for
// gained shards, AwaitShards does.
//
// Where the server selects by shards (KEP-5866), each shard has a list and watch of its own, or
// all together if a handle would have more than 64. Where it does not, a change lists the kind
// once more, and what is lost leaves only afterwards: until then both parts are held. It is an
// error if a shard is not below the number given to Divide, or without Divide. Safe for concurrent
// use; the last call wins.
func (f *SharedInformerFactory) HoldShards(some ...int) error {
	held, err := f.sharding.setOf("hold", some)
	if err != nil {
		return err
	}
	f.sharding.hold(held)
	for _, c := range f.cores() {
		c.divider.poke()
	}
	return nil
}

// AwaitShards blocks until the divided informers requested so far have the objects of some shards
// which HoldShards has made theirs, as WaitForSync does for whole ones. If ctx or the run ends
// first, the error is a *SyncError. It is an error if they do not hold one of the shards, also if
// they lose it meanwhile. Deferred scopes are not awaited.
func (f *SharedInformerFactory) AwaitShards(ctx context.Context, some ...int) error {
	want, err := f.sharding.setOf("await", some)
	if err != nil {
		return err
	}
	cores := f.cores()
	for _, c := range cores {
		if err := c.awaitShards(ctx, want); err != nil {
			return err
		}
	}
	return nil
}

// awaitShards waits until c has the objects of these shards.
func (c *core) awaitShards(ctx context.Context, want shards.Set) error {
	for {
		turned := c.critical.whenTurned()
		if held := c.divider.of.now().held; !within(want, held) {
			return fmt.Errorf("await shards %s of %s: the informers hold %q; call HoldShards before",
				want, c.gvk().Kind, held)
		}
		if c.hasShards(want) {
			return nil
		}
		var over error
		select {
		case <-turned:
			continue
		case <-ctx.Done():
			over = context.Cause(ctx)
		case <-c.ended:
			over = errRunEnded
		}
		return &SyncError{States: []state.Informer{c.snapshot()}, Err: over}
	}
}

// hasShards reports whether each handle of c has the objects of these shards.
func (c *core) hasShards(want shards.Set) bool {
	c.critical.Lock()
	defer c.critical.Unlock()
	now := c.divider.now()
	switch {
	case now.undecided || !c.divider.begun.Load():
		return false
	case now.Everything():
		return true
	case !within(want, now.Held):
		return false
	}
	return !slices.ContainsFunc(c.critical.handles, func(h *handle) bool {
		return h.asked != nil && !h.deferred && h.lacks(want, now)
	})
}

// lacks reports whether h does not have all objects of some shards of the present division.
func (h *handle) lacks(want shards.Set, now division) bool {
	if h.by != now || h.open || h.wants.waits {
		return true
	}
	return slices.ContainsFunc(h.holds, func(w *watched) bool {
		of := w.scope.Division
		return !w.synced.Load() && (of.Everything() || h.lacksOf(w, both(want, of.Held)))
	})
}

// lacksOf reports whether no scope that w replaces has one of these shards, which w has not listed.
func (h *handle) lacksOf(w *watched, want shards.Set) bool {
	return slices.ContainsFunc(want.All(), func(shard int) bool {
		return !slices.ContainsFunc(h.retired, func(old *watched) bool {
			return replaces(w.scope, old.scope) && slices.Contains(old.scope.Division.Held.All(), shard)
		})
	})
}
