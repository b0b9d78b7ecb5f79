// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/compact"
)

// recompare clears the mark of deltas whose content the Indexer has by now,
// from another origin since the list was read. The caller holds the writer's
// turn, so only the batch itself can still change that content; a key with
// several deltas in it is left to compareLocked.
func (x *Indexer) recompare(deltas []Delta) {
	asked := false
	for i := range deltas {
		asked = asked || deltas[i].Recompared
	}
	if !asked {
		return
	}
	times := make(map[base.Key]int, len(deltas))
	for i := range deltas {
		times[deltas[i].Key]++
	}
	for i := range deltas {
		d := &deltas[i]
		if !d.Recompared || times[d.Key] > 1 {
			continue
		}
		k, _ := x.knownAs(d.Key, d.Scope)
		s := ofDelta(d, 0)
		d.Recompared, d.compared = !s.equals(k), true
	}
}

// compareLocked compares a step that recompare could not.
func (s *step) compareLocked(r *Row) {
	if s.recompared && !s.compared {
		s.recompared = !s.equals(known{Object: r.Object, UID: r.UID, Version: r.Version, Undecodable: r.Undecodable})
	}
}

// equals reports whether the step brings nothing but k.
func (s *step) equals(k known) bool {
	if k.UID != s.uid || k.Version != s.version || k.Undecodable != (s.err != nil) {
		return false
	}
	return k.Undecodable || compact.Alike(k.Object, s.object)
}
