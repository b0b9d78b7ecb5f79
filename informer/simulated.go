// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/internal/simhook"
)

// What a simulation decides of an informer, and what it is told. Without one
// nothing here is called.

func (c *core) simulated(sim simhook.Hooks) {
	c.critical.Lock()
	defer c.critical.Unlock()
	c.critical.sim = sim
}

// noteStoredLocked tells of a batch: of each change, and with the last of them up
// to where the store tells everything. A batch without changes is one such note.
func (c *core) noteStoredLocked(changes []store.Change[Object], own bool) {
	reached, whole := Version(0), true
	for id, w := range c.critical.byID {
		if w == nil {
			continue
		}
		if at := c.indexer.Reached(base.ScopeID(id)); reached == 0 || at < reached {
			reached = at
		}
		whole = whole && w.scope == WatchScope{}
	}
	batch := simhook.Note{
		What: simhook.Stored, Kind: c.gvk().GroupKind().String(), Name: c.object.String(),
		Reached: uint64(reached), Own: own, Whole: whole,
	}
	if len(changes) == 0 {
		c.critical.sim.Note(batch)
	}
	for i := range changes {
		n, change := batch, &changes[i]
		n.Key, n.Quiet, n.Count = change.Key.String(), change.Same || change.Resync, len(changes)-1-i
		switch {
		case change.Trouble != nil && change.Trouble.Is != nil:
			n.UID, n.Version = string(change.Trouble.Is.UID), uint64(change.Trouble.Is.Version)
		case !change.After.Empty() && !base.IsNil(change.New):
			n.UID, n.Version = string(change.NewUID), uint64(ParseVersion(change.New.GetResourceVersion()))
		}
		c.critical.sim.Note(n)
	}
}
