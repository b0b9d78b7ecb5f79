// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/kube"
)

// stream reads a streaming list and replaces the scope's objects with it. The
// returned session continues as a watch.
func (r *Reflector) stream(ctx context.Context, p steps.Progress) (*session, steps.Outcome) {
	opts := listwatch.WatchOptions{SendInitialEvents: true, Timeout: r.watchTimeout()}
	opts.ResourceVersion, _ = p.ListVersion(r.opts.ListFromCache)
	s, o := r.open(ctx, opts)
	if s == nil {
		return nil, o
	}
	if r.server == nil {
		s.alarm.Reset(foreignWithin)
	}
	if o = r.initial(s, p); o.Result != steps.ResultCompleted {
		s.close()
		return nil, o
	}
	s.begin()
	return s, o
}

// initial reads a stream up to the bookmark that ends its initial events.
func (r *Reflector) initial(s *session, p steps.Progress) steps.Outcome {
	replace := r.sink.replace(r.id)
	if p.ByContent() {
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
			o.Err = fmt.Errorf("streaming list: %w", o.Err)
			return o
		}
		r.Status.recordContact()
		if n == 0 && frame.Type != listwatch.FrameError {
			r.Status.enter(steps.PhaseStream)
		}
		if time.Since(s.opened) > streamingWithin(size+s.foreign) {
			return s.after(fmt.Errorf("streaming list: %d objects after %s: %w", size, time.Since(s.opened).Round(time.Second), base.ErrEndless))
		}
		switch frame.Type {
		case listwatch.FrameError:
			return s.errorFrame(frame.Err)
		case listwatch.FrameBookmark:
			if !frame.InitialEventsEnd {
				continue
			}
			r.Status.recordBookmark()
			if steps.Below(frame.Item.ResourceVersion, p.Last) {
				return s.after(r.refuse(p, frame.Item.ResourceVersion))
			}
			version := kube.ParseVersion(frame.Item.ResourceVersion)
			done, r.size, r.kept = true, size, max(r.kept, replace.Heap())
			r.contradicted(replace.Undone(version))
			replace.Commit(version)
			r.Status.listed(version, unreadable)
			return steps.Outcome{Result: steps.ResultCompleted, Version: frame.Item.ResourceVersion}
		}
		typ, ok := deltaType(frame.Type)
		switch {
		case !ok:
			return s.after(unknownFrame(frame.Type))
		case restclient.IsUnreadable(frame.Item):
			unreadable.add(1, frame.Item.Err)
			replace.Unreadable()
		case frame.Item.Anomaly != base.Sound:
			r.listed(replace, frame.Item)
		case typ == store.Deleted:
			// The server may send changes before the list ends.
			size--
			replace.Remove(r.delta(store.Deleted, frame.Item))
		default:
			if frame.Type == listwatch.FrameAdded {
				size++
				r.Status.read(size)
			}
			replace.Add(r.delta(store.Replaced, frame.Item))
			if err := r.fits(replace, size, 0); err != nil {
				return s.after(err)
			}
		}
	}
}

// streamingWithin bounds the time of a streaming list of which so many objects
// have arrived. Changes meanwhile do not count: unlike a stream, pages come to
// an end.
func streamingWithin(objects int) time.Duration {
	return min(2*initialWithin+time.Duration(objects)*(20*time.Millisecond), restclient.PageWithin)
}

// inOrder counts an event out of order in a stream that has reached last, and
// reports whether to apply the event.
func (r *Reflector) inOrder(typ store.DeltaType, item listwatch.Item[kube.Object], last string) bool {
	e := shown{key: item.Key, version: kube.ParseVersion(item.ResourceVersion), ended: typ == store.Deleted}
	kind := r.order.check(e, kube.ParseVersion(last), func(key kube.Key) kube.Version { return r.sink.Newest(r.id, key) })
	stale := kind == base.Late && r.order.stale(e)
	r.order.record(e)
	if kind != base.Sound {
		r.Status.anomaly(kind, e, last)
	}
	return !stale
}

func unknownFrame(typ listwatch.FrameType) error { return fmt.Errorf("frame of unknown type %q", typ) }

// watch pushes the events of an open stream until it ends.
func (r *Reflector) watch(s *session, p *steps.Progress) steps.Outcome {
	defer r.Wants.during(s.cancel)()
	if p.Instead {
		defer r.Status.liveAfter(steps.Brief)()
	}
	before := p.Last
	s.passes = true
	for {
		r.makeUp(s)
		frame, err := s.Next()
		if err != nil {
			return s.after(err)
		}
		switch frame.Type {
		case listwatch.FrameError:
			return s.errorFrame(frame.Err)
		case listwatch.FrameBookmark:
			p.Advance(frame.Item.ResourceVersion)
			r.sink.Bookmark(r.id, kube.ParseVersion(frame.Item.ResourceVersion))
			r.Status.recordBookmark()
			if s.within == 0 {
				s.within = steps.SilentAfter
				s.rearm()
			}
		default:
			if restclient.IsUnreadable(frame.Item) {
				r.Status.unreadable(frame.Item.Err)
				r.garbled = true
				continue
			}
			typ, ok := deltaType(frame.Type)
			if !ok {
				return s.after(unknownFrame(frame.Type))
			}
			switch frame.Item.Anomaly {
			case base.Sound:
			case base.Foreign:
				s.passForeign(r, frame.Item, p)
				s.hasMoved(p, before, r)
				continue
			case base.Unselected:
				r.Status.stranger(frame.Item.Anomaly, frame.Item.Key, nil)
				typ = store.Deleted // if it was in the scope, it has left it
			default:
				r.Status.stranger(frame.Item.Anomaly, frame.Item.Key, frame.Item.Err)
				continue
			}
			if r.inOrder(typ, frame.Item, p.Last) {
				r.sink.Push(r.delta(typ, frame.Item))
			}
			p.Advance(frame.Item.ResourceVersion)
			switch typ {
			case store.Added:
				r.size++
			case store.Deleted:
				r.size--
			}
		}
		s.hasMoved(p, before, r)
	}
}

// hasMoved records what a frame has brought, if the stream began after version before.
func (s *session) hasMoved(p *steps.Progress, before string, r *Reflector) {
	if !s.moved && (p.Last != before || kube.ParseVersion(p.Last) == 0) {
		s.moved = true
		if p.Instead {
			r.Status.set(state.Live, "")
		}
	}
	r.Status.reached(kube.ParseVersion(p.Last))
}

// passForeign passes over the event of an object of a shard that is not held: the scope has seen
// its version. An object that has come to that shard leaves the scope.
func (s *session) passForeign(r *Reflector, item listwatch.Item[kube.Object], p *steps.Progress) {
	p.Advance(item.ResourceVersion)
	if left, may := r.left(item); may && r.sink.Newest(r.id, item.Key) != 0 {
		r.sink.Push(left)
		r.size--
		return
	}
	if v := kube.ParseVersion(p.Last); v != 0 {
		r.sink.Bookmark(r.id, v)
	}
}

// left returns the end in this scope of an object of a shard that is not held. may: it can have been
// of another shard.
func (r *Reflector) left(item listwatch.Item[kube.Object]) (d store.Delta, may bool) {
	if r.scope.Division.By != shards.Owner || item.Key.Name == "" {
		return d, false
	}
	d = r.delta(store.Deleted, item)
	d.FinalStateUnknown = base.IsNil(item.Object)
	return d, true
}
