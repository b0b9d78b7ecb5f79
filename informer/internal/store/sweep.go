// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/kube"
)

// Sweep packs the objects that the rows of an Indexer hold open, when its informer becomes compact.
type Sweep struct {
	Of     *Indexer
	Packer *compact.Packer
}

// sweptAtOnce is how many rows are looked at under one lock.
const sweptAtOnce = 64

// Run packs each object, and gives its row a key and a UID that do not hold what was decoded with
// them. Readers and writers go on meanwhile, and see no difference.
func (s Sweep) Run() {
	var open []Row
	for at, more := 0, true; more; at += sweptAtOnce {
		open, more = s.openFrom(at, open[:0])
		for i := range open {
			r := &open[i]
			was := r.Object
			r.Object = s.Packer.Pack(was, nil, nil)
			r.Key, r.UID = s.Packer.Own(r.Key, r.UID)
			if compact.IsPacked(r.Object) {
				s.replace(r, was)
			}
		}
		clear(open)
	}
}

// openFrom appends those of sweptAtOnce rows whose objects are not packed. more: there are further
// rows.
func (s Sweep) openFrom(at int, open []Row) (_ []Row, more bool) {
	x := s.Of
	x.mu.RLock()
	defer x.mu.RUnlock()
	end := min(at+sweptAtOnce, x.mu.rows.Len())
	for ; at < end; at++ {
		if r := x.mu.rows.At(at); !r.blank && !compact.IsPacked(r.Object) {
			open = append(open, Row{Key: r.Key, UID: r.UID, Object: r.Object})
		}
	}
	return open, end < x.mu.rows.Len()
}

// replace stores the packed object of to, if its row still holds was.
func (s Sweep) replace(to *Row, was kube.Object) {
	x := s.Of
	x.turn.Lock()
	defer x.turn.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	at, ok := x.mu.at[to.Key]
	if !ok || x.mu.rows.At(int(at)).Object != was {
		return
	}
	delete(x.mu.at, to.Key) // it has the key of before
	x.mu.at[to.Key] = at
	r := x.mu.rows.Edit(int(at))
	r.Key, r.UID, r.Object = to.Key, to.UID, to.Object
	r.count(compact.HeapOf(r.Object), &x.Heap)
	x.mu.packed += compact.Size(r.Object)
}
