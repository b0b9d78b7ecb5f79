// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

// errTapped interrupts a stream so that a tap can join. The Reflector then
// continues where it was.
var errTapped = errors.New("another informer joins the watch")

// tee passes everything from a Reflector to its sink, and as metadata to the
// taps.
//
//	Reflector ──▶ tee ──▶ DeltaFIFO of the full objects
//	               └────▶ tap ──▶ DeltaFIFO of their metadata
//
// Only the Reflector's goroutine writes and adopts; taps join from others.
type tee struct {
	sink
	taps   []*Tap        // used only by the Reflector's goroutine
	listed bool          // as taps: a whole list has passed
	joined chan struct{} // has a token while a tap waits
	mu     struct {
		sync.Mutex
		joining   []*Tap
		interrupt func(error) // ends the stream being read; nil: none
		ended     bool
	}
}

func newTee(into sink) *tee {
	return &tee{sink: into, joined: make(chan struct{}, 1)}
}

// Join feeds t from the Reflector's next pause between two steps. It returns
// false if the Reflector has ended. It does not block.
func (e *tee) Join(t *Tap) bool {
	e.mu.Lock()
	if e.mu.ended {
		e.mu.Unlock()
		return false
	}
	e.mu.joining = append(e.mu.joining, t)
	interrupt := e.mu.interrupt
	e.mu.Unlock()
	select {
	case e.joined <- struct{}{}:
	default:
	}
	if interrupt != nil {
		interrupt(errTapped)
	}
	return true
}

// during makes a joining tap interrupt a stream, until over is called.
func (e *tee) during(interrupt func(error)) (over func()) {
	e.mu.Lock()
	e.mu.interrupt = interrupt
	waits := len(e.mu.joining) > 0
	e.mu.Unlock()
	if waits {
		interrupt(errTapped)
	}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.mu.interrupt = nil
	}
}

// adopt starts to feed the waiting taps. After the first list, a tap first
// receives what scope holds at version last, where the Reflector is, as its
// list.
func (e *tee) adopt(ctx context.Context, scope base.ScopeID, last string) {
	e.mu.Lock()
	joining := e.mu.joining
	e.mu.joining = nil
	e.mu.Unlock()
	for _, t := range joining {
		if e.listed && !e.show(ctx, t, scope, kube.ParseVersion(last)) {
			t.end("")
			continue
		}
		if e.listed {
			t.Schema.Complete(time.Now(), false)
		}
		e.taps = append(e.taps, t)
	}
}

// show gives t what scope holds. It returns false if the scope has ended, since
// it may then hold less than it did.
func (e *tee) show(ctx context.Context, t *Tap, scope base.ScopeID, at kube.Version) bool {
	list := t.replace()
	for d := range e.Present(scope) {
		list.add(metadataDelta(d))
	}
	// The context ends before the scope does.
	if ctx.Err() != nil {
		list.list.Abort()
		return false
	}
	list.commit(at)
	return true
}

// pause sleeps for d, adopting taps meanwhile, and reports whether ctx is
// alive.
func (e *tee) pause(ctx context.Context, d time.Duration, scope base.ScopeID, last string) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		case <-e.joined:
			e.adopt(ctx, scope, last)
		}
	}
}

// end releases the taps: nothing comes after version last.
func (e *tee) end(last string) {
	e.mu.Lock()
	joining := e.mu.joining
	e.mu.joining, e.mu.ended = nil, true
	e.mu.Unlock()
	for _, t := range joining {
		t.end("")
	}
	if !e.listed {
		last = ""
	}
	for _, t := range e.taps {
		t.end(last)
	}
	e.taps = nil
}

// each calls f for each tap, and drops those that have left.
func (e *tee) each(f func(t *Tap)) {
	if len(e.taps) == 0 {
		return
	}
	e.taps = slices.DeleteFunc(e.taps, (*Tap).hasLeft)
	for _, t := range e.taps {
		f(t)
	}
}

func (e *tee) Push(d store.Delta) {
	e.sink.Push(d)
	if len(e.taps) > 0 {
		m := metadataDelta(d)
		e.each(func(t *Tap) { t.push(m) })
	}
}

func (e *tee) Bookmark(scope base.ScopeID, v kube.Version) {
	e.sink.Bookmark(scope, v)
	e.each(func(t *Tap) { t.bookmark(v) })
}

func (e *tee) replace(scope base.ScopeID) replacement {
	r := &teeReplacement{replacement: e.sink.replace(scope), tee: e}
	e.each(func(t *Tap) { r.taps = append(r.taps, t.replace()) })
	return r
}

// teeReplacement is a list that also goes to the taps.
type teeReplacement struct {
	replacement
	tee  *tee
	taps []*tapReplacement
}

func (r *teeReplacement) Add(d store.Delta) {
	r.replacement.Add(d)
	if len(r.taps) > 0 {
		m := metadataDelta(d)
		for _, t := range r.taps {
			t.add(m)
		}
	}
}

func (r *teeReplacement) Remove(d store.Delta) {
	r.replacement.Remove(d)
	if len(r.taps) > 0 {
		m := metadataDelta(d)
		for _, t := range r.taps {
			t.remove(m)
		}
	}
}

func (r *teeReplacement) Keep(key kube.Key) {
	r.replacement.Keep(key)
	for _, t := range r.taps {
		t.list.Keep(key)
	}
}

func (r *teeReplacement) Unreadable() {
	r.replacement.Unreadable()
	for _, t := range r.taps {
		t.list.Unreadable()
	}
}

func (r *teeReplacement) Epoch() {
	r.replacement.Epoch()
	for _, t := range r.taps {
		t.list.Epoch()
	}
}

func (r *teeReplacement) Commit(v kube.Version) {
	r.replacement.Commit(v)
	r.tee.listed = true
	for _, t := range r.taps {
		t.commit(v)
	}
}

func (r *teeReplacement) Abort() {
	r.replacement.Abort()
	for _, t := range r.taps {
		t.list.Abort()
	}
}

// metadataDelta reduces d to metadata. An object that only its content makes
// undecodable becomes decodable.
func metadataDelta(d store.Delta) store.Delta {
	m := store.Delta{
		Type: d.Type, Key: d.Key, UID: d.UID, Version: d.Version,
		FinalStateUnknown: d.FinalStateUnknown, Err: d.Err,
	}
	switch {
	case d.Metadata != nil:
		m.Object, m.Err, m.FinalStateUnknown = d.Metadata, nil, false
	case d.Err == nil && !base.IsNil(d.Object):
		obj, err := compact.Open(d.Object)
		if err != nil {
			m.Err = err
			break
		}
		m.Object = base.MetadataOf(obj, obj.GetObjectKind().GroupVersionKind())
	}
	return m
}
