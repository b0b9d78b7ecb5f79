// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"

	"github.com/flyball-dev/flyball/internal/simhook"
)

// What a simulation decides of an informer, and what it is told. Without one
// nothing here is called.

// simulated has chance be drawn by sim, if that is not nil.
func (r *Reflector[T]) simulated(sim simhook.Hooks) {
	if r.sim = sim; sim != nil {
		name := "reflector " + r.name()
		r.random = func() float64 { return sim.Random(name) }
	}
}

// name tells the reflector from the process's others.
func (r *Reflector[T]) name() string {
	return r.kind.GroupKind().String() + " as " + r.objects + " " + r.scope.String()
}

func (r *Reflector[T]) noteEpoch() {
	if r.sim != nil {
		r.sim.Note(simhook.Note{What: simhook.Epoch, Kind: r.kind.GroupKind().String()})
	}
}

func (c *core) simulated(sim simhook.Hooks) {
	c.critical.Lock()
	defer c.critical.Unlock()
	c.critical.sim = sim
}

// noteStoredLocked tells of a batch: of each change, and with the last of them up
// to where the store tells everything. A batch without changes is one such note.
func (c *core) noteStoredLocked(changes []change[Object], own bool) {
	reached, whole := Version(0), true
	for id, w := range c.critical.byID {
		if w == nil {
			continue
		}
		if at := c.indexer.reached(ScopeID(id)); reached == 0 || at < reached {
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
		n.Key, n.Quiet, n.Count = change.key.String(), change.same || change.resync, len(changes)-1-i
		switch {
		case change.trouble != nil && change.trouble.is != nil:
			n.UID, n.Version = string(change.trouble.is.UID), uint64(change.trouble.is.Version)
		case !change.after.empty() && !isNil(change.new):
			n.UID, n.Version = string(change.newUID), uint64(ParseVersion(change.new.GetResourceVersion()))
		}
		c.critical.sim.Note(n)
	}
}

// atOnesOwnInstant waits until nothing else happens, and tells of e. False: the
// run is to end.
func (l *listener[T]) atOnesOwnInstant(ctx context.Context, sim simhook.Hooks, e Event[T]) bool {
	sim.Step(ctx, simhook.Tell, fmt.Sprintf("%s %d %s", l.name, l.id, e.Key))
	if ctx.Err() != nil {
		return false
	}
	n := l.noteOf(simhook.Told, e)
	switch {
	case e.Type == EventDeleted:
	case e.Undecodable != nil:
		n.UID, n.Version = string(e.Undecodable.UID), uint64(e.Undecodable.Version)
	case !isNil(e.New):
		n.UID, n.Version = string(e.New.GetUID()), uint64(ParseVersion(e.New.GetResourceVersion()))
	}
	sim.Note(n)
	return true
}

func (l *listener[T]) noteHeard(sim simhook.Hooks, e Event[T]) { sim.Note(l.noteOf(simhook.Heard, e)) }

func (l *listener[T]) noteOf(what simhook.What, e Event[T]) simhook.Note {
	return simhook.Note{What: what, Kind: l.gvk().GroupKind().String(), Name: l.name, Key: e.Key.String(), Quiet: e.Resync, Count: l.id}
}
