// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"reflect"
	"unsafe"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// A Grafter makes transformed objects share parts. A transform may modify its object, so that is
// decoded into memory of its own:
//
//	bytes ──▶ alone ──▶ Begin ──▶ transform ──▶ End ──▶ what is equal becomes shared
//	     └──▶ with shared parts ───────────────────┘
//
// A part that the transform has changed stays the object's own. End modifies memory that was
// decoded for the object alone, nothing that the transform has put into it. It belongs to one
// goroutine.
type Grafter struct {
	decoder *Decoder
	own     map[unsafe.Pointer]bool // what the object consists of, before the transform
}

// Grafter returns what makes transformed objects share parts; nil: they are not transformed, or
// do not stay decoded.
func (lw *restListerWatcher) Grafter() *Grafter {
	kept := lw.kept()
	if !kept.Grafted {
		return nil
	}
	kept.Parts, kept.Alone = true, false
	kind, _ := lw.resolver.KindOf(lw.of)
	return &Grafter{decoder: lw.decoder.ofKind(kind).keeping(kept), own: make(map[unsafe.Pointer]bool)}
}

// Begin records what the item's object consists of.
func (g *Grafter) Begin(item listwatch.Item[kube.Object]) {
	clear(g.own)
	g.record(reflect.ValueOf(item.Object))
}

// End returns item, whose object was transformed, with shared parts. Its Raw is still valid.
func (g *Grafter) End(item listwatch.Item[kube.Object]) listwatch.Item[kube.Object] {
	to := reflect.ValueOf(item.Object)
	if to.Kind() != reflect.Pointer || !g.own[to.UnsafePointer()] || len(item.Raw) == 0 {
		return item // another object, which the transform may have kept
	}
	shared := g.decoder.again(item.Raw)
	from := reflect.ValueOf(shared.Object)
	if shared.Err != nil || from.Type() != to.Type() {
		return item
	}
	g.graft(to.Elem(), from.Elem())
	item.Heap = min(item.Heap, shared.Heap)
	return item
}

// record adds the memory of v to own.
func (g *Grafter) record(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			g.own[v.UnsafePointer()] = true
			g.record(v.Elem())
		}
	case reflect.Interface:
		g.record(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() { // it is exported
				g.record(f)
			}
		}
	case reflect.Slice:
		if v.Len() == 0 {
			return
		}
		g.own[v.UnsafePointer()] = true
		if !isPlain(v.Type().Elem().Kind()) {
			for i := range v.Len() {
				g.record(v.Index(i))
			}
		}
	case reflect.Map:
		if v.IsNil() {
			return
		}
		g.own[v.UnsafePointer()] = true
		if !isPlain(v.Type().Elem().Kind()) {
			for it := v.MapRange(); it.Next(); {
				g.record(it.Value())
			}
		}
	}
}

// isPlain reports whether values of the kind consist of no other memory than themselves.
func isPlain(k reflect.Kind) bool { return k <= reflect.Complex128 || k == reflect.String }

// graft sets what can be set in to and equals from, to from.
func (g *Grafter) graft(to, from reflect.Value) {
	switch to.Kind() {
	case reflect.String:
		if to.String() == from.String() {
			to.Set(from)
		}
	case reflect.Struct:
		for i := range to.NumField() {
			if f := to.Field(i); f.CanSet() { // it is exported
				g.graft(f, from.Field(i))
			}
		}
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		if to.IsNil() || from.IsNil() {
			return
		}
		if reflect.DeepEqual(to.Interface(), from.Interface()) {
			to.Set(from)
			return
		}
		g.graftInto(to, from)
	}
}

// graftInto grafts what to refers to, which as a whole differs from from.
func (g *Grafter) graftInto(to, from reflect.Value) {
	if to.Kind() == reflect.Interface {
		to, from = to.Elem(), from.Elem()
		if to.Type() != from.Type() || to.Kind() != reflect.Map && to.Kind() != reflect.Slice && to.Kind() != reflect.Pointer {
			return
		}
	}
	if !g.own[to.UnsafePointer()] {
		return // the transform's
	}
	switch to.Kind() {
	case reflect.Pointer:
		g.graft(to.Elem(), from.Elem())
	case reflect.Slice:
		for i := range min(to.Len(), from.Len()) {
			g.graft(to.Index(i), from.Index(i))
		}
	case reflect.Map:
		for it := to.MapRange(); it.Next(); {
			is := from.MapIndex(it.Key())
			if !is.IsValid() {
				continue
			}
			// A value of a map cannot be set in place.
			value := reflect.New(it.Value().Type()).Elem()
			value.Set(it.Value())
			g.graft(value, is)
			to.SetMapIndex(it.Key(), value)
		}
	}
}
