// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/flyball-dev/flyball/internal/deque"
	"github.com/flyball-dev/flyball/kube"
)

// opened is an object of an Entry in memory. Only its flags change.
type opened struct {
	obj   kube.Object // nil: not kept for the next reader
	weak  weak.Pointer[byte]
	bytes int64       // encoded
	used  atomic.Bool // read since it joined the line
	shown atomic.Bool // a reader may hold it
}

// show marks the object of o as used, and returns it.
func (p *Packer) show(o *opened) kube.Object {
	if !o.used.Load() {
		o.used.Store(true)
	}
	p.first(o)
	return o.obj
}

// first marks o as given to a reader.
func (p *Packer) first(o *opened) {
	if !o.shown.Load() && o.shown.CompareAndSwap(false, true) && p.kind.Shown != nil {
		p.kind.Shown(o.obj)
	}
}

// held returns the object of o, or nil if it is not in memory any more.
func (p *Packer) held(o *opened) kube.Object {
	if o.obj != nil {
		return o.obj
	}
	at := o.weak.Value()
	if at == nil {
		return nil
	}
	obj, _ := reflect.NewAt(p.kind.Object.Elem(), unsafe.Pointer(at)).Interface().(kube.Object)
	return obj
}

// hot are the objects kept open, in a line: the first one goes back to the end if
// it was used meanwhile, else it is evicted. Evicted objects that readers may
// hold are remembered until the collector has freed them.
type hot struct {
	objects int
	bytes   int64
	hidden  func(kube.Object)
	mu      struct {
		sync.Mutex
		line  deque.Deque[place]
		bytes int64 // of the line
		away  deque.Deque[place]
	}
}

// place is an object in the line, or away. It is void if the entry has another
// one by now.
type place struct {
	entry  *Entry
	opened *opened
}

func (h *hot) put(e *Entry, o *opened) {
	gone := h.add(place{e, o})
	if h.hidden == nil {
		return
	}
	for _, obj := range gone {
		h.hidden(obj)
	}
}

// add returns the evicted objects that readers may hold.
func (h *hot) add(p place) (gone []kube.Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.mu.line.Len() > 0 && (h.mu.line.Len() >= h.objects || h.mu.bytes+p.opened.bytes > h.bytes) {
		if obj := h.evictLocked(); obj != nil && h.hidden != nil {
			gone = append(gone, obj)
		}
	}
	h.mu.line.Push(p)
	h.mu.bytes += p.opened.bytes
	return gone
}

// evictLocked takes the first one of the line, and returns its object if that is
// evicted and readers may hold it.
func (h *hot) evictLocked() kube.Object {
	p := h.mu.line.Pop()
	if p.entry.opened.Load() == p.opened && p.opened.used.Swap(false) {
		h.mu.line.Push(p)
		return nil
	}
	h.mu.bytes -= p.opened.bytes
	if !p.opened.shown.Load() && p.entry.opened.CompareAndSwap(p.opened, nil) {
		return nil // if it is being shown now, another reader decodes it again
	}
	away := &opened{weak: weak.Make((*byte)(reflect.ValueOf(p.opened.obj).UnsafePointer())), bytes: p.opened.bytes}
	if !p.entry.opened.CompareAndSwap(p.opened, away) {
		return p.opened.obj // forgotten
	}
	h.mu.away.Push(place{p.entry, away})
	h.sweepLocked()
	return p.opened.obj
}

// sweepLocked forgets up to two objects that are no longer in memory.
func (h *hot) sweepLocked() {
	for range 2 {
		if h.mu.away.Len() == 0 {
			return
		}
		p := h.mu.away.Pop()
		switch {
		case p.entry.opened.Load() != p.opened:
		case p.opened.weak.Value() != nil:
			h.mu.away.Push(p)
		default:
			p.entry.opened.CompareAndSwap(p.opened, nil)
		}
	}
}

func (h *hot) size() (objects int, bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.line.Len(), h.mu.bytes
}
