// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"slices"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/internal/deque"
	"github.com/flyball-dev/flyball/kube"
)

const (
	// BatchLimit is the number of deltas in a batch. A list or a merged backlog
	// may exceed it, since neither is split.
	BatchLimit = 1024
	// mergeAbove is the number of waiting deltas above which consecutive
	// updates of a key merge, unless they are kept.
	mergeAbove = 4096
)

// Reached reports the version to which a batch brings a scope: of a bookmark,
// of the last watch event, or of a list.
type Reached struct {
	Scope   base.ScopeID
	Version kube.Version
	// List is the version of the last list that ends in the batch; 0: none.
	List kube.Version
	// keeps are the keys of which that list says nothing; nil: none.
	keeps *keeps
}

// Batch is a contiguous front of the log. It is valid until the next PopBatch.
type Batch struct {
	// Deltas are in the order of their streams.
	Deltas []Delta
	// Reached has each scope at most once, in ascending order.
	Reached []Reached
	// Synced are the scopes whose first list ends in this batch.
	Synced []base.ScopeID
	// Relisted are the scopes for which a later list ends in this batch.
	Relisted []base.ScopeID
	// Epochs are the scopes that start over with this batch: the server's
	// revisions went back, and earlier versions mean nothing.
	Epochs []base.ScopeID
	// Passed are the scopes that pass to a later generation, and with it each
	// list of theirs that ends.
	Passed []Passed
	// Merged is how many deltas merged into an earlier one since the last
	// batch.
	Merged uint64
}

// Passed reports that all deltas of Scope before it are stored, and that later
// ones are of Generation. Listed: and so is a whole list.
type Passed struct {
	Scope      base.ScopeID
	Generation uint32
	Listed     bool
}

// place is one entry of the log: a delta, or a mark of a scope.
type place struct {
	Delta
	mark mark
	// joined: the next place belongs to the same batch.
	joined bool
	// gone: the scope has ended.
	gone bool
	// generation that the scope passes to.
	generation uint32
	keeps      *keeps // of a listEnd; nil: none
}

type mark uint8

const (
	isDelta  mark = iota
	bookmark      // the scope has reached Version
	listEnd       // a list of Version ends here
	epoch         // a list of new revisions begins here
	passed        // the scope passes to a generation
)

// deltaLog is the pure core of the DeltaFIFO: deltas in stream order, indexed
// by key once that is needed. Deltas of the last batch count as waiting until
// release, since they are not in the Indexer yet.
type deltaLog struct {
	places  deque.Deque[place]
	last    map[kube.Key]uint64 // position of a key's last delta, while indexed
	indexed bool
	scopes  []scopeLog
	live    int    // waiting deltas
	bytes   int64  // of the waiting deltas
	heap    int64  // of the waiting deltas
	flying  int64  // heap of the last batch, until it is in the Indexer
	keep    int64  // as in DeltaFIFO.Keep
	merged  uint64 // deltas merged into an earlier one
	said    uint64 // the part of merged that batches have reported
	whole   uint64 // places below belong to one batch: updates merged across them
	barrier uint64 // nothing merges with places below: a list is in between
	flight  Batch
}

// scopeLog is the log's state of one scope.
type scopeLog struct {
	bookmark uint64 // 1 + position of a bookmark with no delta after it; 0: none
	listed   bool   // the end of the first list has been popped
	passed   uint32 // the generation of what has been popped
	ended    bool   // later deltas are dropped
}

func (l *deltaLog) scope(id base.ScopeID) *scopeLog {
	for int(id) >= len(l.scopes) {
		l.scopes = append(l.scopes, scopeLog{})
	}
	return &l.scopes[id]
}

// push appends d, or merges it into the key's last delta.
func (l *deltaLog) push(d Delta) {
	if l.scope(d.Scope).ended {
		return
	}
	if d.Type == Deleted || l.long() {
		l.index() // nothing else merges
	}
	if l.merge(d) {
		l.merged++
		return
	}
	l.add(place{Delta: d})
}

// long reports whether updates merge.
func (l *deltaLog) long() bool {
	return l.live >= mergeAbove && (l.keep == 0 || l.keep > 0 && l.bytes >= l.keep)
}

func (l *deltaLog) add(p place) {
	if p.mark != isDelta {
		l.places.Push(p)
		return
	}
	l.scope(p.Scope).bookmark = 0
	at := l.places.Push(p)
	if l.indexed {
		l.last[l.places.At(at).Key] = at
	}
	l.live++
	l.bytes += p.weight()
	l.heap += int64(p.Heap)
}

// uncount takes back what add counted for a delta that waits no more.
func (l *deltaLog) uncount(d *Delta) {
	l.live--
	l.bytes -= d.weight()
	l.heap -= int64(d.Heap)
}

// index builds the index by key if anything waits. It lasts until the log is
// empty. Usually the log is short and needs no index.
func (l *deltaLog) index() {
	if l.indexed || l.places.Len()+len(l.flight.Deltas) == 0 {
		return
	}
	if l.last == nil {
		l.last = make(map[kube.Key]uint64, l.live+len(l.flight.Deltas))
	}
	for i := range l.flight.Deltas {
		l.last[l.flight.Deltas[i].Key] = 0 // before the front
	}
	for at := l.places.Front(); at < l.places.Back(); at++ {
		if p := l.places.At(at); p.mark == isDelta && !p.gone {
			l.last[p.Key] = at
		}
	}
	l.indexed = true
}

// merge merges d into the key's last delta if that has the same scope, and
// reports whether it did.
func (l *deltaLog) merge(d Delta) bool {
	last, ok := l.last[d.Key]
	if !ok || last < max(l.places.Front(), l.barrier) {
		return false
	}
	p := l.places.At(last)
	if p.gone || p.Scope != d.Scope {
		return false
	}
	switch {
	case p.Type == Deleted && d.Type == Deleted:
		if p.UID != d.UID && p.UID != "" && d.UID != "" {
			return false
		}
		if p.FinalStateUnknown && !d.FinalStateUnknown {
			d.UID = cmp.Or(d.UID, p.UID)
			l.bytes += d.weight() - p.weight()
			l.heap += int64(d.Heap) - int64(p.Heap)
			p.Delta = d
		}
		return true
	case d.Type == Updated && p.Type != Deleted && p.UID == d.UID && l.long():
		l.bytes += d.weight() - p.weight()
		l.heap += int64(d.Heap) - int64(p.Heap)
		p.Bytes, p.Heap = d.Bytes, d.Heap
		p.Object, p.Version, p.Err, p.Metadata, p.Refused = d.Object, d.Version, d.Err, d.Metadata, d.Refused
		if p.Type == Sync {
			p.Type = Updated
		}
		// The place now holds what the stream delivers only here. A batch with
		// one must have the other, or the scope would be in a state that it
		// never had.
		l.whole = l.places.Back()
		return true
	}
	return false
}

// mark records that scope has reached v.
func (l *deltaLog) mark(scope base.ScopeID, v kube.Version) {
	s := l.scope(scope)
	if s.ended {
		return
	}
	if s.bookmark > l.places.Front() {
		l.places.At(s.bookmark - 1).Version = v
		return
	}
	s.bookmark = l.places.Push(place{Delta: Delta{Scope: scope, Version: v}, mark: bookmark}) + 1
}

// pass records that what comes next from scope is of a generation.
func (l *deltaLog) pass(scope base.ScopeID, generation uint32) {
	if !l.scope(scope).ended {
		l.places.Push(place{Delta: Delta{Scope: scope}, mark: passed, generation: generation})
	}
}

// group appends a list's differences and its end, to be popped together.
func (l *deltaLog) group(scope base.ScopeID, deltas *deque.Deque[Delta], v kube.Version, newEpoch bool, unsaid *keeps) {
	if newEpoch {
		l.add(place{Delta: Delta{Scope: scope}, mark: epoch, joined: true})
	}
	for deltas.Len() > 0 {
		l.add(place{Delta: deltas.Pop(), joined: true})
	}
	l.add(place{Delta: Delta{Scope: scope, Version: v}, mark: listEnd, keeps: unsaid})
	l.scope(scope).bookmark = 0
	l.barrier = l.places.Back()
}

// waits reports whether a delta of key waits, or is in the last batch.
func (l *deltaLog) waits(key kube.Key) bool {
	l.index()
	_, ok := l.last[key]
	return ok
}

// rewound reports whether a list of new revisions of scope waits.
func (l *deltaLog) rewound(scope base.ScopeID) bool {
	for at := l.places.Front(); at < l.places.Back(); at++ {
		if p := l.places.At(at); p.mark == epoch && p.Scope == scope {
			return true
		}
	}
	return false
}

// reaches reports whether a waiting delta of key will reach handler.
func (l *deltaLog) reaches(key kube.Key, handler int) bool {
	l.index()
	last, ok := l.last[key]
	if !ok || last < l.places.Front() {
		return false // or it is being delivered
	}
	p := l.places.At(last)
	return !p.gone && (p.Type != Sync || p.Handler == handler)
}

// Newest returns the version of the last waiting delta of key; 0: none.
func (l *deltaLog) Newest(key kube.Key) kube.Version {
	l.index()
	last, ok := l.last[key]
	if !ok || last < l.places.Front() || l.places.At(last).gone {
		return 0
	}
	return l.places.At(last).Version
}

// waiting returns the last waiting delta of each key in scope.
func (l *deltaLog) waiting(scope base.ScopeID) map[kube.Key]Delta {
	out := make(map[kube.Key]Delta)
	for _, d := range l.flight.Deltas {
		if d.Scope == scope {
			out[d.Key] = d
		}
	}
	for i := l.places.Front(); i < l.places.Back(); i++ {
		if p := l.places.At(i); p.mark == isDelta && !p.gone && p.Scope == scope {
			out[p.Key] = p.Delta
		}
	}
	return out
}

// release drops the last batch, which has been applied.
func (l *deltaLog) release() {
	front := l.places.Front()
	for i := 0; l.indexed && i < len(l.flight.Deltas); i++ {
		key := l.flight.Deltas[i].Key
		if last, ok := l.last[key]; ok && last < front {
			delete(l.last, key)
		}
	}
	if l.indexed && l.places.Len() == 0 {
		l.indexed = false
		clear(l.last)
	}
	// Memory for a large backlog is kept while backlogs recur.
	large := len(l.flight.Deltas) < cap(l.flight.Deltas)/4 || cap(l.flight.Deltas) > 2*mergeAbove
	l.flying = 0
	clear(l.flight.Deltas)
	l.flight.Deltas = l.flight.Deltas[:0]
	if cap(l.flight.Deltas) > 2*BatchLimit && large {
		l.flight.Deltas = nil
		if len(l.last) == 0 {
			l.last = nil // a map never shrinks
		}
	}
	l.flight.Reached = l.flight.Reached[:0]
	l.flight.Synced, l.flight.Relisted, l.flight.Epochs, l.flight.Passed = nil, nil, nil, nil
}

// batch takes the front of the log. The result is valid until release.
func (l *deltaLog) batch(limit int) Batch {
	l.release()
	b := &l.flight
	b.Merged, l.said = l.merged-l.said, l.merged
	joined := false
	if l.places.Front() < l.whole {
		b.Deltas = slices.Grow(b.Deltas, min(l.live, int(l.whole-l.places.Front())))
	}
	for l.places.Len() > 0 {
		p := l.places.At(l.places.Front())
		if p.mark == epoch && len(b.Deltas)+len(b.Reached) > 0 {
			break
		}
		if list := p.joined || p.mark == listEnd; list && !joined && b.listed(p.Scope) != 0 {
			break // the rules need the version of the list that a delta belongs to
		}
		if len(b.Deltas) >= limit && !joined && l.places.Front() >= l.whole && p.mark == isDelta {
			break
		}
		if p.joined && !joined {
			b.Deltas = slices.Grow(b.Deltas, l.live) // a list is not split
		}
		joined = p.joined
		l.take(b, l.places.Pop())
	}
	slices.SortFunc(b.Reached, func(x, y Reached) int { return cmp.Compare(x.Scope, y.Scope) })
	return *b
}

func (l *deltaLog) take(b *Batch, p place) {
	switch p.mark {
	case epoch:
		b.Epochs = append(b.Epochs, p.Scope)
	case passed:
		l.scope(p.Scope).passed = p.generation
		b.Passed = append(b.Passed, Passed{Scope: p.Scope, Generation: p.generation})
	case listEnd:
		b.reach(p.Scope, p.Version, p.Version).keeps = p.keeps
		s := l.scope(p.Scope)
		if s.passed > 0 {
			b.Passed = append(b.Passed, Passed{Scope: p.Scope, Generation: s.passed, Listed: true})
		}
		if !s.listed {
			s.listed = true
			b.Synced = append(b.Synced, p.Scope)
		} else if !slices.Contains(b.Relisted, p.Scope) {
			b.Relisted = append(b.Relisted, p.Scope)
		}
	case bookmark:
		b.reach(p.Scope, p.Version, 0)
	case isDelta:
		if p.gone {
			return
		}
		l.uncount(&p.Delta)
		l.flying += int64(p.Heap)
		b.Deltas = append(b.Deltas, p.Delta)
		// An object that a list found missing does not advance the scope before
		// the list's end. A deletion from the watch does, decodable or not.
		if p.Type == Added || p.Type == Updated || p.Type == Deleted && !p.joined {
			b.reach(p.Scope, p.Version, 0)
		}
	}
}

func (b *Batch) reach(scope base.ScopeID, v, list kube.Version) *Reached {
	for i := range b.Reached {
		if r := &b.Reached[i]; r.Scope == scope {
			r.Version, r.List = max(r.Version, v), max(r.List, list)
			return r
		}
	}
	b.Reached = append(b.Reached, Reached{Scope: scope, Version: v, List: list})
	return &b.Reached[len(b.Reached)-1]
}
