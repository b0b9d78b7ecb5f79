// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/kube"
)

// A verdict is the result of comparing a Recompared delta with what the Indexer has by
// now, perhaps from another origin since the list was read.
type verdict uint8

const (
	uncompared verdict = iota
	sameContent
	otherContent
)

// recompare returns the verdict of each delta; nil: no delta asks for one. The caller
// holds the writer's turn, so only the batch itself can still change the content; a key
// with several deltas in it is left to compareLocked. Reflectors may read the deltas at
// the same time.
func (x *Indexer) recompare(deltas []Delta) []verdict {
	asked := false
	for i := range deltas {
		asked = asked || deltas[i].Recompared
	}
	if !asked {
		return nil
	}
	verdicts := make([]verdict, len(deltas))
	times := make(map[kube.Key]int, len(deltas))
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
		if verdicts[i] = otherContent; s.equals(k) {
			verdicts[i] = sameContent
		}
	}
	return verdicts
}

// withVerdict returns s with the verdict of its delta.
func (s step) withVerdict(v verdict) step {
	if v != uncompared {
		s.recompared, s.compared = v == otherContent, true
	}
	return s
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
