// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"

	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/internal/deque"
	"github.com/flyball-dev/flyball/kube"
)

const (
	// defaultBacklogBytes is the default of Options.BacklogBytes.
	defaultBacklogBytes = 64 << 20
)

// eventStream is the backlog of an EveryEvent handler, in order. It never drops
// additions and deletions, so it grows with them.
type eventStream struct {
	parts deque.Deque[part]
	taken part  // being delivered
	begun int   // events of taken whose calls have begun
	spare part  // unused memory of a part
	count int   // waiting events
	limit int64 // in bytes; 0: defaultBacklogBytes, negative: none
	bytes int64 // of the waiting events
	// merged counts updates merged into an earlier one, here or before the
	// store.
	merged uint64
	// update has the position of a key's last event if that is an update or an
	// Undecoded, for events pushed above the limit.
	update map[kube.Key]eventPlace
	// undecodable: the handler wants undecodable objects.
	undecodable bool
	time        uint32 // as in backlog
}

// eventPlace is the position of an event: the number of its part, and the index
// in it.
type eventPlace struct {
	part uint64
	at   int
}

func newEventStream(opts Options) *eventStream {
	return &eventStream{limit: opts.BacklogBytes, undecodable: opts.Undecodable}
}

func (s *eventStream) Len() int { return s.count }

func (s *eventStream) Size() (bytes int64, merged uint64) { return s.bytes, s.merged }

func (s *eventStream) full() bool {
	return s.limit >= 0 && s.bytes >= s.bound()
}

func (s *eventStream) bound() int64 { return cmp.Or(s.limit, defaultBacklogBytes) }

func (s *eventStream) Push(c store.Change, filter *store.ScopeSet, initial bool) {
	was, is := c.Before.SeenBy(filter), c.After.SeenBy(filter)
	var wasBad, isBad *kube.Undecodable
	if s.undecodable {
		wasBad, isBad = c.Trouble.SeenBy(filter)
	}
	full, resync := s.full(), c.Resync && !c.Relisted
	switch {
	case wasBad == isBad && (!was && !is || was && is && c.Same), resync && full:
		return
	case was && is && c.OldUID == c.NewUID:
		if !c.Same && !(c.Resync && isBad != nil) {
			e := kube.Event[kube.Object]{Type: kube.Updated, Key: c.Key, Old: c.Old, New: c.New, Resync: resync, Relisted: c.Relisted, Healed: wasBad != nil && isBad == nil, Own: c.Own}
			s.mergeable(e, onlyHere(&c), full)
		}
	default:
		s.cameOrWent(&c, was, is, wasBad, isBad, initial)
	}
	if isBad != nil && (isBad != wasBad || c.Resync) {
		e := kube.Event[kube.Object]{Type: kube.Undecoded, Key: c.Key, Undecodable: isBad, Initial: initial, Resync: resync, Relisted: c.Relisted}
		if is {
			e.Old = c.New
		}
		s.mergeable(e, 0, full)
	}
}

// onlyHere returns the size of the state that c removes from the store: while
// the event waits, only a backlog holds it.
func onlyHere(c *store.Change) uint32 {
	if c.Resync {
		return 0
	}
	return cmp.Or(c.Bytes, store.UnknownBytes)
}

// cameOrWent adds the end of the old object and the start of the new one.
func (s *eventStream) cameOrWent(c *store.Change, was, is bool, wasBad, isBad *kube.Undecodable, initial bool) {
	delete(s.update, c.Key)
	switch ended := wasBad != nil && (!is && isBad == nil || c.OldUID != c.NewUID); {
	case was:
		e := kube.Event[kube.Object]{Type: kube.Deleted, Key: c.Key, LeftScope: c.LeftScope, Own: c.Own}
		e.Old, e.FinalStateUnknown = c.End()
		s.add(e, onlyHere(c))
	case ended:
		e := kube.Event[kube.Object]{Type: kube.Deleted, Key: c.Key, LeftScope: c.LeftScope, Undecodable: wasBad}
		_, e.FinalStateUnknown = c.End()
		s.add(e, 0)
	}
	if is {
		s.add(kube.Event[kube.Object]{Type: kube.Added, Key: c.Key, New: c.New, Initial: initial, Own: c.Own}, 0)
	}
}

func (s *eventStream) add(e kube.Event[kube.Object], bytes uint32) eventPlace {
	p := s.open()
	p.events = append(p.events, e)
	p.costs = append(p.costs, cost{bytes: bytes, at: s.time})
	s.count++
	s.bytes += store.EventBytes + int64(bytes)
	return eventPlace{s.parts.Back() - 1, len(p.events) - 1}
}

// mergeable adds an update or an Undecoded, or merges it into an earlier one of
// the same type.
func (s *eventStream) mergeable(e kube.Event[kube.Object], bytes uint32, full bool) {
	if !full {
		delete(s.update, e.Key)
		s.add(e, bytes)
		return
	}
	if n, ok := s.update[e.Key]; ok && n.part >= s.parts.Front() {
		p := s.parts.At(n.part)
		if at := &p.events[n.at]; at.Type == e.Type {
			if at.Relisted && !e.Relisted {
				// The redelivered state is now the one that the update
				// replaces.
				p.costs[n.at].bytes += bytes
				s.bytes += int64(bytes)
			}
			at.New, at.Undecodable, at.Resync, at.Healed = e.New, e.Undecodable, false, at.Healed || e.Healed
			at.Relisted, at.Own = at.Relisted && e.Relisted, at.Own && e.Own
			s.merged++
			return
		}
	}
	if s.update == nil {
		s.update = make(map[kube.Key]eventPlace)
	}
	s.update[e.Key] = s.add(e, bytes)
}

func (s *eventStream) Clock(now uint32) { s.time = now }
