// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"slices"

	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

const (
	// partEvents is the most events in a part.
	partEvents = 128
	// firstEvents is the capacity of the first part of a burst.
	firstEvents = 8
	// sharedFrom is the size of a batch from which its events are made once for
	// all handlers. For fewer changes, copies are cheaper than a separate part.
	sharedFrom = 8
)

// part is a section of an eventStream that is delivered together, or the mark.
type part struct {
	events []kube.Event[kube.Object]
	costs  []cost
	// shared: other streams have the same events, which must not be modified.
	shared bool
	isMark bool
	at     uint32 // when a shared part, or the mark, began to wait
}

// cost is the memory of a waiting event, and since when it waits.
type cost struct{ bytes, at uint32 }

func (p *part) since(i int) uint32 {
	if p.shared || p.isMark {
		return p.at
	}
	return p.costs[i].at
}

// open returns the part for the next event.
func (s *eventStream) open() *part {
	room := firstEvents
	if s.parts.Len() > 0 {
		p := s.parts.At(s.parts.Back() - 1)
		if !p.shared && !p.isMark {
			if len(p.events) < partEvents {
				return p
			}
			room = partEvents
		}
	}
	next := s.spare
	s.spare = part{}
	if cap(next.events) == 0 {
		next = part{events: make([]kube.Event[kube.Object], 0, room), costs: make([]cost, 0, room)}
	}
	return s.parts.At(s.parts.Push(next))
}

func (s *eventStream) Mark() { s.parts.Push(part{isMark: true, at: s.time}) }

func (s *eventStream) Oldest() (at uint32, ok bool) {
	switch {
	case s.begun < len(s.taken.events):
		return s.taken.since(s.begun), true
	case s.parts.Len() > 0:
		return s.parts.At(s.parts.Front()).since(0), true
	}
	return 0, false
}

// Take returns a whole part, which must not be modified. The events taken
// before were delivered.
func (s *eventStream) Take(buf []kube.Event[kube.Object]) (events []kube.Event[kube.Object], marked bool) {
	for s.begun < len(s.taken.events) {
		s.Begin()
	}
	s.putBack(s.taken)
	s.taken, s.begun = part{}, 0
	if s.parts.Len() == 0 {
		s.update = nil
		return buf, false
	}
	p := s.parts.Pop()
	if p.isMark {
		return buf, true
	}
	s.taken = p
	if len(buf) == 0 {
		return p.events, false
	}
	return append(buf, p.events...), false
}

func (s *eventStream) Begin() {
	if s.begun < len(s.taken.events) {
		s.count--
		s.bytes -= store.EventBytes + int64(s.taken.costs[s.begun].bytes)
		s.begun++
	}
}

// putBack keeps the memory of an unused part. An empty stream keeps at most
// one.
func (s *eventStream) putBack(p part) {
	if p.shared || cap(p.events) <= cap(s.spare.events) {
		return
	}
	clear(p.events)
	s.spare = part{events: p.events[:0], costs: p.costs[:0]}
}

func (s *eventStream) Join(shared *Shared, filter *store.ScopeSet, initial bool) bool {
	if shared != nil {
		s.merged += shared.merged
	}
	c := shared.events(filter, s.undecodable, initial)
	return c != nil && s.join(c)
}

// join adds parts shared with other streams, if they fit within the bound and
// no waiting event may merge.
func (s *eventStream) join(c *common) bool {
	if s.update != nil || s.limit >= 0 && s.bytes+c.stream.bytes > s.bound() {
		return false
	}
	for i := c.stream.parts.Front(); i < c.stream.parts.Back(); i++ {
		p := *c.stream.parts.At(i)
		p.shared, p.at = true, s.time
		s.parts.Push(p)
	}
	s.count += c.stream.count
	s.bytes += c.stream.bytes
	return true
}

// Shared makes the events of a batch once for all EveryEvent handlers with the
// same view.
type Shared struct {
	changes []store.Change
	merged  uint64 // updates merged before the store
	off     bool   // too few changes, or not for all handlers
	made    []*common
}

// common has the events of a batch for handlers with the same view.
type common struct {
	filter  *store.ScopeSet
	initial bool
	stream  eventStream
}

// Share returns a Shared for that many EveryEvent handlers, nil if there is
// nothing to share.
func Share(changes []store.Change, handlers int, merged uint64) *Shared {
	s := NewShared(changes)
	s.merged, s.off = merged, s.off || handlers < 2 || len(changes) < sharedFrom
	if s.off && merged == 0 {
		return nil
	}
	return s
}

// NewShared shares the events of changes, unless one of them is for a single handler.
func NewShared(changes []store.Change) *Shared {
	return &Shared{changes: changes, off: slices.ContainsFunc(changes, func(c store.Change) bool { return c.Resync })}
}

// events returns the events of the batch for handlers with filter, nil if each
// makes its own.
func (s *Shared) events(filter *store.ScopeSet, undecodable, initial bool) *common {
	if s == nil || s.off {
		return nil
	}
	for _, c := range s.made {
		if c.filter.Equal(filter) && c.initial == initial && c.stream.undecodable == undecodable {
			return c
		}
	}
	c := &common{filter: filter, initial: initial, stream: eventStream{limit: -1, undecodable: undecodable}}
	for i := range s.changes {
		c.stream.Push(s.changes[i], filter, initial)
	}
	s.made = append(s.made, c)
	return c
}
