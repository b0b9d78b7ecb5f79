// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
)

// Change is what one step did to one object, as the Indexer shows it.
type Change[T base.Object] struct {
	Key  base.Key
	Slot uint32 // as in row
	// old was shown to the scopes in before. No scope in before: there was none.
	Old    T
	OldUID types.UID
	Before *ScopeSet
	// new is shown to the scopes in after. No scope in after: the object is
	// gone, and new is the last state it is known to have had.
	New    T
	NewUID types.UID
	After  *ScopeSet
	// same: the object did not change, only the scopes that hold it.
	Same bool
	// resync: nothing changed, the object is given again to this handler.
	Resync  bool
	Handler int
	// relisted: a resync because of a list that has the object unchanged.
	Relisted bool
	Bytes    uint32 // of old, as in Item; 0: unknown
	// finalStateUnknown and leftScope say more of an object that is gone.
	finalStateUnknown, LeftScope bool
	Trouble                      *Trouble // nil: it could be decoded, and can be
}

// End is the last state known of old, for those who see it go; unknown: it may
// have had a later one.
func (c *Change[T]) End() (obj T, unknown bool) {
	if c.NewUID != c.OldUID {
		return c.Old, true // another object has its key: the end was not seen
	}
	return c.New, c.finalStateUnknown
}

// Observed is the answer to an own write, in the informer's representation.
type Observed[T base.Object] struct {
	Effect  base.WriteEffect
	Key     base.Key
	UID     types.UID
	Version base.Version // 0: unknown
	Object  T            // of a Stored write, transformed
	// err says why the transform refuses what was Stored; then Object is nil, and
	// metadata and original are as in Item.
	Err      error
	Metadata *metav1.PartialObjectMetadata
	Original T
	// In are the scopes that the object matches. Unsure are those whose selector
	// cannot be evaluated here. It is outside of all others.
	In, Unsure *ScopeSet
}

// Row is one object in the Indexer.
type Row[T base.Object] struct {
	Key     base.Key
	slot    uint32 // the key's number while it is held, at whatever position
	bytes   uint32 // as in Item, as far as it was ever known
	Object  T      // the last state that could be decoded
	UID     types.UID
	Version base.Version
	Scopes  *ScopeSet
	// shelves are where the indices keep the object. Readers leave them alone.
	shelves []shelf
	own     *ScopeSet // as in holding
	Bad     bool      // what the server has now cannot be decoded
	blank   bool      // bad, and object is zero: nothing was ever shown
	refused bool      // bad because of the transform alone, which is tried again
}

// Readable: object is what lists show, be it the newest state or the last that
// the transform has accepted.
func (r *Row[T]) Readable() bool { return !r.Bad || r.refused && !r.blank }

func (r *Row[T]) holding() holding {
	return holding{scopes: r.Scopes, uid: r.UID, version: r.Version, own: r.own, bad: r.Bad}
}

// shown is what scopes see an object in the row.
func (r *Row[T]) shown() *ScopeSet {
	if r.blank {
		return nil
	}
	return r.Scopes
}

// step is one piece of news with its object.
type step[T base.Object] struct {
	news
	key    base.Key
	object T
	err    error
	// metadata of an object with err, where it is known.
	metadata *metav1.PartialObjectMetadata
	original T          // as in Item
	handler  int        // again: for this one
	values   [][]string // of the object, per index after the first
	bytes    uint32     // as in Item
	compared bool       // recompared is the result of a comparison with what is held
}

// ofDelta is the step that d makes. list is the version of the list that it
// is part of.
func ofDelta[T base.Object](d *Delta[T], list base.Version) step[T] {
	s := step[T]{
		news: news{scope: d.Scope, uid: d.UID, version: d.Version, bad: d.Err != nil, missing: d.FinalStateUnknown, recompared: d.Recompared},
		key:  d.Key, object: d.Object, err: d.Err, metadata: d.Metadata, original: d.Refused, bytes: d.Bytes, compared: d.compared,
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

// ofWrite is the step that an own write makes.
func ofWrite[T base.Object](w Observed[T]) step[T] {
	s := step[T]{
		news: news{uid: w.UID, version: w.Version, in: w.In, unsure: w.Unsure, bad: w.Err != nil},
		key:  w.Key, object: w.Object, err: w.Err, metadata: w.Metadata, original: w.Original,
	}
	switch w.Effect {
	case base.Stored:
		s.kind = stored
	case base.Removed:
		s.kind = removed
	default:
		s.kind = touched
	}
	return s
}

// slots gives out small numbers, those that came back first.
type slots struct {
	next uint32 // never given out
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
		*s = slots{} // all are back
	}
}
