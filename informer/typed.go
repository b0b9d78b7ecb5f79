// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// Internally the informer works on Objects, so that one compiled form serves
// all kinds: neither the binary nor its build time grows with each watched
// kind. The public API is typed. This file converts between the two.

// as converts obj to T; zero if that is not its type.
func as[T kube.Object](obj kube.Object) T {
	typed, _ := obj.(T)
	return typed
}

// object converts obj to Object; a nil pointer becomes nil.
func object[T kube.Object](obj T) kube.Object {
	if base.IsNil(obj) {
		return nil
	}
	return obj
}

func eventAs[T kube.Object](e kube.Event[kube.Object]) kube.Event[T] {
	return kube.Event[T]{
		Type: e.Type, Key: e.Key, Old: as[T](e.Old), New: as[T](e.New), Undecodable: e.Undecodable,
		Initial: e.Initial, Resync: e.Resync, Relisted: e.Relisted, Healed: e.Healed, FinalStateUnknown: e.FinalStateUnknown, LeftScope: e.LeftScope, Own: e.Own,
	}
}

func itemAs[To, From kube.Object](i listwatch.Item[From], convert func(From) To) listwatch.Item[To] {
	out := listwatch.Item[To]{Key: i.Key, UID: i.UID, ResourceVersion: i.ResourceVersion, Metadata: i.Metadata, Bytes: i.Bytes, Heap: i.Heap, Err: i.Err}
	out.Anomaly = i.Anomaly
	if !base.IsNil(i.Object) {
		out.Object = convert(i.Object)
	}
	if !base.IsNil(i.Refused) {
		out.Refused = convert(i.Refused)
	}
	return out
}

func pageAs[To, From kube.Object](p listwatch.Page[From], convert func(From) To) listwatch.Page[To] {
	out := listwatch.Page[To]{ResourceVersion: p.ResourceVersion, Continue: p.Continue, Remaining: p.Remaining, Unreadable: p.Unreadable, UnreadableErr: p.UnreadableErr}
	if p.Items != nil {
		out.Items = make([]listwatch.Item[To], 0, len(p.Items))
	}
	for _, i := range p.Items {
		out.Items = append(out.Items, itemAs(i, convert))
	}
	return out
}

// listerWatcherAs adapts a ListerWatcher to another Go type of the same
// objects.
type listerWatcherAs[To, From kube.Object] struct {
	from    listwatch.ListerWatcher[From]
	convert func(From) To
}

// objectsOf returns lw as the informer reads it.
func objectsOf[T kube.Object](lw listwatch.ListerWatcher[T]) listwatch.ListerWatcher[kube.Object] {
	if typed, ok := lw.(listerWatcherAs[T, kube.Object]); ok {
		return typed.from
	}
	return listerWatcherAs[kube.Object, T]{lw, object[T]}
}

func (l listerWatcherAs[To, From]) List(ctx context.Context, opts listwatch.ListOptions) (listwatch.Page[To], error) {
	page, err := l.from.List(ctx, opts)
	return pageAs(page, l.convert), err
}

func (l listerWatcherAs[To, From]) Watch(ctx context.Context, opts listwatch.WatchOptions) (listwatch.Stream[To], error) {
	stream, err := l.from.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return streamAs[To, From]{stream, l.convert}, nil
}

// CloseIdleConnections closes the connections that no request uses, if from
// supports it.
func (l listerWatcherAs[To, From]) CloseIdleConnections() {
	if c, ok := l.from.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// IsWatchListSemanticsUnSupported returns what from reports about streaming
// lists.
func (l listerWatcherAs[To, From]) IsWatchListSemanticsUnSupported() bool {
	p, ok := l.from.(pagedOnly)
	return ok && p.IsWatchListSemanticsUnSupported()
}

func (l listerWatcherAs[To, From]) Namespaced() (namespaced, known bool) {
	if d, ok := l.from.(dividing); ok {
		return d.Namespaced()
	}
	return false, false
}

type streamAs[To, From kube.Object] struct {
	from    listwatch.Stream[From]
	convert func(From) To
}

func (s streamAs[To, From]) Next() (listwatch.Frame[To], error) {
	f, err := s.from.Next()
	return listwatch.Frame[To]{Type: f.Type, Item: itemAs(f.Item, s.convert), InitialEventsEnd: f.InitialEventsEnd, Err: f.Err}, err
}

func (s streamAs[To, From]) Close() error { return s.from.Close() }

// dividing is a ListerWatcher that may know whether its kind is namespaced.
type dividing interface {
	Namespaced() (namespaced, known bool)
}

// pagedOnly is a ListerWatcher that may not support streaming lists. The name
// is client-go's, whose fakes have the method.
type pagedOnly interface {
	IsWatchListSemanticsUnSupported() bool
}
