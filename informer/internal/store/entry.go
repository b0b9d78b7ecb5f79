// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/kube"
)

// Change is the effect of one step on one object, as the Indexer shows it.
type Change struct {
	Key  kube.Key
	Slot uint32 // as in Row
	// Old was shown to the scopes in Before. An empty Before: there was no
	// object.
	Old    kube.Object
	OldUID types.UID
	Before *ScopeSet
	// New is shown to the scopes in After. An empty After: the object is gone,
	// and New is its last known state.
	New    kube.Object
	NewUID types.UID
	After  *ScopeSet
	// Same: the object did not change, only the scopes that hold it.
	Same bool
	// Resync: nothing changed; Handler receives the object again.
	Resync  bool
	Handler int
	// Relisted: a resync because a list has the object unchanged.
	Relisted bool
	Bytes    uint32 // of Old, as in Item; 0: unknown
	// finalStateUnknown and LeftScope qualify the end of an object.
	finalStateUnknown, LeftScope bool
	Own                          bool     // from the answer to an own write
	Trouble                      *Trouble // nil: it was and is decodable
}

// End returns the last known state of Old for handlers that see it deleted.
// unknown: it may have had a later state.
func (c *Change) End() (obj kube.Object, unknown bool) {
	if c.NewUID != c.OldUID {
		return c.Old, true // another object has its key: its end was not seen
	}
	return c.New, c.finalStateUnknown
}

// Observed is the server's answer to an own write or to a read of one key, in the
// informer's representation.
type Observed struct {
	Effect  kube.WriteEffect // Stored or Removed, unless Absent
	Absent  bool             // a consistent read at Version did not find the key
	Key     kube.Key
	UID     types.UID
	Version kube.Version // 0: unknown
	Object  kube.Object  // of a Stored write, transformed
	// Err is why the transform refuses the stored object. Object is then nil,
	// and Metadata and Original are as in Item.
	Err      error
	Metadata *metav1.PartialObjectMetadata
	Original kube.Object
	// In are the scopes that the object matches, Unsure those whose selector
	// cannot be evaluated here. It matches no others.
	In, Unsure *ScopeSet
	// Held are those of In that have the object in the state that the Indexer holds, Unheld
	// those that have not. They count if that state is newer than the write.
	Held, Unheld *ScopeSet
}

// Row is one object in the Indexer.
type Row struct {
	Key     kube.Key
	slot    uint32      // the key's number while it is held; independent of its position
	bytes   uint32      // as in Item; the last known size
	heap    uint32      // as in Item, or an estimate
	Object  kube.Object // the last state that could be decoded
	UID     types.UID
	Version kube.Version
	Scopes  *ScopeSet
	// shelves are the object's places in the indices. Readers do not touch
	// them.
	shelves     []shelf
	own         *ScopeSet // as in entryState
	Undecodable bool      // the server's present state cannot be decoded
	blank       bool      // bad, and Object is zero: no state was ever shown
	refused     bool      // bad only because of the transform, which is retried
}

// count makes heap the memory of the row's object.
func (r *Row) count(heap uint32, sum *atomic.Int64) {
	sum.Add(int64(heap) - int64(r.heap))
	r.heap = heap
}

// Readable reports whether lists show Object: the newest state, or the last one
// that the transform accepted.
func (r *Row) Readable() bool { return !r.Undecodable || r.refused && !r.blank }

func (r *Row) state() entryState {
	return entryState{scopes: r.Scopes, uid: r.UID, version: r.Version, own: r.own, bad: r.Undecodable}
}

// shown returns the scopes that see an object in the row.
func (r *Row) shown() *ScopeSet {
	if r.blank {
		return nil
	}
	return r.Scopes
}

// step is news with its object.
type step struct {
	input
	key    kube.Key
	object kube.Object
	err    error
	// metadata of an object with err, if known.
	metadata *metav1.PartialObjectMetadata
	original kube.Object // as in Item
	handler  int         // again: the handler to deliver to
	values   [][]string  // of the object, per index after the first
	bytes    uint32      // as in Item
	heap     uint32      // as in Delta
	compared bool        // recompared is the result of a comparison with the held object
	hidden   bool        // as in decision, once decided
}

// ofDelta returns the step for d. list is the version of the list that contains
// it.
func ofDelta(d *Delta, list kube.Version) step {
	s := step{
		input: input{scope: d.Scope, uid: d.UID, version: d.Version, bad: d.Err != nil, missing: d.FinalStateUnknown, recompared: d.Recompared},
		key:   d.Key, object: d.Object, err: d.Err, metadata: d.Metadata, original: d.Refused, bytes: d.Bytes, heap: d.Heap,
	}
	switch d.Type {
	case Deleted:
		s.kind = ended
	case Sync:
		s.kind, s.handler = again, d.Handler
	case Replaced:
		s.list = list
	}
	return s
}

// ofWrite returns the step for an own write.
func ofWrite(w Observed) step {
	s := step{
		input: input{uid: w.UID, version: w.Version, in: w.In, unsure: w.Unsure, held: w.Held, unheld: w.Unheld, bad: w.Err != nil},
		key:   w.Key, object: w.Object, err: w.Err, metadata: w.Metadata, original: w.Original,
	}
	switch {
	case w.Absent:
		s.kind = absent
	case w.Effect == kube.Stored:
		s.kind = stored
	default:
		s.kind = removed
	}
	return s
}

// slots allocates small numbers, and reuses returned ones first.
type slots struct {
	next uint32 // never allocated
	back []uint32
}

func (s *slots) take() uint32 {
	if n := len(s.back); n > 0 {
		slot := s.back[n-1]
		s.back = s.back[:n-1]
		return slot
	}
	s.next++
	return s.next - 1
}

func (s *slots) giveBack(slot uint32) {
	if s.back = append(s.back, slot); len(s.back) == int(s.next) {
		*s = slots{} // all were returned
	}
}
