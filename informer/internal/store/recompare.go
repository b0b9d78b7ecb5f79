// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/flyball-dev/flyball/informer/internal/base"
)

// alike says whether two objects have the same content.
func alike[T base.Object](a, b T) (equal bool) {
	defer func() {
		if recover() != nil { // a type with fields that only its package can read
			equal = reflect.DeepEqual(a, b)
		}
	}()
	return equality.Semantic.DeepEqual(a, b)
}

// recompare drops the mark of those deltas whose content is held by now: it
// came by another way since the list was read. The writer's turn is held, so
// that only the batch itself can still change what is compared with; a key that
// has several deltas in it is left to compareLocked.
func (x *Indexer[T]) recompare(deltas []Delta[T]) {
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

// compareLocked does the same for a step that could not be compared before.
func (s *step[T]) compareLocked(r *Row[T]) {
	if s.recompared && !s.compared {
		s.recompared = !s.equals(known[T]{Object: r.Object, UID: r.UID, Version: r.Version, Bad: r.Bad})
	}
}

// equals says whether the step brings nothing but k.
func (s *step[T]) equals(k known[T]) bool {
	if k.UID != s.uid || k.Version != s.version || k.Bad != (s.err != nil) {
		return false
	}
	return k.Bad || alike(k.Object, s.object)
}
