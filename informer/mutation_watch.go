// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/store"
)

// guarded gives c its place in the factory's detector, or in one of its own.
func (c *core) guarded() {
	detector := c.opts.detector
	if detector == nil {
		if detector = newMutationDetector(c.opts.DetectMutations, c.opts.Logger); detector == nil {
			return
		}
		_ = c.group.Go(detector.run)
	}
	c.guard = &mutationGuard{MutationDetector: detector, kind: c.gvk}
	c.guard.holds = func(k *kept) bool {
		obj, _, _ := c.indexer.Get(k.key)
		return obj == k.object
	}
	c.guard.mend = func(k *kept) bool {
		truth, ok := k.truth.DeepCopyObject().(Object)
		if !ok {
			return false
		}
		fresh := c.guard.keep(k.key, truth)
		mended := c.indexer.Mend(k.key, k.object, truth)
		if !mended && fresh != nil {
			fresh.drop()
		}
		return mended
	}
}

// offer keeps copies of what is about to be stored, before anybody can have it.
func (c *core) offer(deltas []store.Delta[Object]) (offered []*kept) {
	if c.guard == nil {
		return nil
	}
	for i := range deltas {
		if d := &deltas[i]; d.Type != store.Sync && d.Err == nil && !base.IsNil(d.Object) {
			offered = c.guard.offer(offered, d.Key, d.Object)
		}
	}
	return offered
}

// offerWrite is offer for an own write.
func (c *core) offerWrite(o store.Observed[Object]) (offered []*kept) {
	if c.guard == nil || o.Effect != Stored || base.IsNil(o.Object) {
		return nil
	}
	return c.guard.offer(nil, o.Key, o.Object)
}

// settled lets go of what was offered and not stored, and retires what was
// replaced.
func (c *core) settled(offered []*kept, changes []store.Change[Object]) {
	if c.guard == nil {
		return
	}
	stored := make(map[*kept]bool, len(offered))
	for i := range changes {
		ch := &changes[i]
		was, is := c.guard.find(ch.Old), c.guard.find(ch.New)
		if is != nil {
			stored[is] = true
		}
		if was != nil && was != is {
			was.retire()
		}
		if is != nil && ch.After == nil {
			is.retire()
		}
	}
	for _, k := range offered {
		if !stored[k] {
			k.drop()
		}
	}
}
