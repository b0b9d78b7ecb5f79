// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"time"
)

// stream reads a streaming list and replaces the scope's objects by it. The
// session that it returns goes on as a watch.
func (r *Reflector[T]) stream(ctx context.Context, p progress) (*session[T], outcome) {
	opts := WatchOptions{SendInitialEvents: true, Timeout: r.watchTimeout()}
	opts.ResourceVersion, _ = p.listVersion(r.opts.ListFromCache)
	s, o := r.open(ctx, opts)
	if s == nil {
		return nil, o
	}
	if r.server == nil {
		s.alarm.Reset(foreignWithin)
	}
	if o = r.initial(s, p); o.result != resultCompleted {
		s.close()
		return nil, o
	}
	s.begin()
	return s, o
}

// initial reads a stream up to the bookmark that ends its initial events.
func (r *Reflector[T]) initial(s *session[T], p progress) outcome {
	replace := r.sink.replace(r.id)
	if p.byContent() {
		replace.Recompare()
	}
	done := false
	defer func() {
		if !done {
			replace.Abort()
		}
	}()
	unreadable, size := unreadables{}, 0
	for n := 0; ; n++ {
		frame, err := s.Next()
		if err != nil {
			o := s.after(err)
			o.err = fmt.Errorf("streaming list: %w", o.err)
			return o
		}
		r.status.heard()
		if n == 0 && frame.Type != FrameError {
			r.status.enter(phaseStream)
		}
		if time.Since(s.opened) > streamingWithin(size) {
			return s.after(fmt.Errorf("streaming list: %d objects after %s: %w", size, time.Since(s.opened).Round(time.Second), errEndless))
		}
		switch frame.Type {
		case FrameError:
			return s.errorFrame(frame.Err)
		case FrameBookmark:
			if !frame.InitialEventsEnd {
				continue
			}
			r.status.sawBookmark()
			if below(frame.Item.ResourceVersion, p.last) {
				return s.after(r.refuse(p, frame.Item.ResourceVersion))
			}
			version := ParseVersion(frame.Item.ResourceVersion)
			done, r.size = true, size
			r.contradicted(replace.Undone(version))
			replace.Commit(version)
			r.status.listed(version, unreadable)
			return outcome{result: resultCompleted, version: frame.Item.ResourceVersion}
		}
		typ, ok := deltaType(frame.Type)
		switch {
		case !ok:
			return s.after(unknownFrame(frame.Type))
		case frame.Item.unreadable():
			unreadable.add(1, frame.Item.Err)
			replace.Unreadable()
		case frame.Item.stranger != sound:
			r.listed(replace, frame.Item)
		case typ == Deleted:
			// The server may tell of changes before it has ended the list.
			size--
			replace.Remove(r.delta(Deleted, frame.Item))
		default:
			if frame.Type == FrameAdded {
				size++
				r.status.read(size)
			}
			replace.Add(r.delta(Replaced, frame.Item))
		}
	}
}

// streamingWithin is how long a streaming list may take of which so many
// objects have arrived. What changes meanwhile does not count, and is no reason to
// wait on: pages come to their end.
func streamingWithin(objects int) time.Duration {
	return min(2*initialWithin+time.Duration(objects)*(20*time.Millisecond), pageWithin)
}

// inOrder counts what is wrong with the place of an event in the stream that
// has shown last, and says whether it may count at all.
func (r *Reflector[T]) inOrder(typ DeltaType, item Item[T], last string) bool {
	e := shown{key: item.Key, version: ParseVersion(item.ResourceVersion), ended: typ == Deleted}
	kind := r.order.judge(e, ParseVersion(last), func(key Key) Version { return r.sink.newest(r.id, key) })
	stale := kind == late && r.order.stale(e)
	r.order.note(e)
	if kind != sound {
		r.status.anomaly(kind, e, last)
	}
	return !stale
}

func unknownFrame(typ FrameType) error { return fmt.Errorf("frame of unknown type %q", typ) }

// watch pushes what an open stream brings, until it ends.
func (r *Reflector[T]) watch(s *session[T], p *progress) outcome {
	defer r.wants.during(s.cancel)()
	if p.instead {
		defer r.status.liveAfter(brief)()
	}
	before := p.last
	s.passes = true
	for {
		r.makeUp(s)
		frame, err := s.Next()
		if err != nil {
			return s.after(err)
		}
		switch frame.Type {
		case FrameError:
			return s.errorFrame(frame.Err)
		case FrameBookmark:
			p.advance(frame.Item.ResourceVersion)
			r.sink.Bookmark(r.id, ParseVersion(frame.Item.ResourceVersion))
			r.status.sawBookmark()
			if s.within == 0 {
				s.within = silentAfter
				s.rearm()
			}
		default:
			if frame.Item.unreadable() {
				r.status.unreadable(frame.Item.Err)
				r.garbled = true
				continue
			}
			typ, ok := deltaType(frame.Type)
			if !ok {
				return s.after(unknownFrame(frame.Type))
			}
			switch frame.Item.stranger {
			case sound:
			case unselected:
				r.status.stranger(frame.Item.stranger, frame.Item.Key, nil)
				typ = Deleted // if it was in the scope, it has left it
			default:
				r.status.stranger(frame.Item.stranger, frame.Item.Key, frame.Item.Err)
				continue
			}
			if r.inOrder(typ, frame.Item, p.last) {
				r.sink.Push(r.delta(typ, frame.Item))
			}
			p.advance(frame.Item.ResourceVersion)
			switch typ {
			case Added:
				r.size++
			case Deleted:
				r.size--
			}
		}
		if !s.moved && (p.last != before || ParseVersion(p.last) == 0) {
			s.moved = true
			if p.instead {
				r.status.set(StateLive, "")
			}
		}
		r.status.reached(ParseVersion(p.last))
	}
}
