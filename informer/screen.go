// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// screening marks objects from a ListerWatcher that are not of the requested
// scope. It comes before the transform, which may change labels.
type screening struct {
	ListerWatcher[Object]
	of screen
}

func (l screening) List(ctx context.Context, opts listwatch.ListOptions) (listwatch.Page[Object], error) {
	return l.ListEach(ctx, opts, func(item listwatch.Item[Object]) listwatch.Item[Object] { return item })
}

func (l screening) ListEach(ctx context.Context, opts listwatch.ListOptions, each func(listwatch.Item[Object]) listwatch.Item[Object]) (listwatch.Page[Object], error) {
	// Discovery may have answered only when the first item arrives.
	of := sync.OnceValue(l.of.now)
	return listEach(ctx, l.ListerWatcher, opts, func(item listwatch.Item[Object]) listwatch.Item[Object] { return each(screened(of(), item, false)) })
}

func (l screening) Watch(ctx context.Context, opts listwatch.WatchOptions) (listwatch.Stream[Object], error) {
	stream, err := l.ListerWatcher.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return screeningStream{Stream: stream, of: l.of.now()}, nil
}

type screeningStream struct {
	listwatch.Stream[Object]
	of admission
}

func (s screeningStream) Next() (listwatch.Frame[Object], error) {
	frame, err := s.Stream.Next()
	switch frame.Type {
	case listwatch.FrameAdded, listwatch.FrameModified, listwatch.FrameDeleted:
		frame.Item = screened(s.of, frame.Item, frame.Type == listwatch.FrameDeleted)
	}
	return frame, err
}

func screened(of admission, item listwatch.Item[Object], ended bool) listwatch.Item[Object] {
	if item.Anomaly != base.Sound || restclient.IsUnreadable(item) {
		return item
	}
	switch {
	case !base.IsNil(item.Object):
		item.Anomaly = of.judge(item.Key, item.Object, ended)
	case item.Metadata != nil:
		item.Anomaly = of.judge(item.Key, item.Metadata, ended)
	default:
		item.Anomaly = of.judge(item.Key, nil, ended)
	}
	return item
}

// screen is what the objects of one scope must match.
type screen struct {
	matcher    base.Matcher
	selects    bool                    // the scope has selectors
	kind       schema.GroupVersionKind // empty: the decoder checks the kind
	namespaced func() (namespaced, known bool)
}

// admission is a screen with what is now known of the kind.
type admission struct {
	screen
	divided, known bool // results of namespaced
}

func (s screen) now() admission {
	a := admission{screen: s}
	a.divided, a.known = s.namespaced()
	return a
}

// judge classifies an object, which is nil if only its key is known. The state
// of an ended object is not checked: it may have left the scope because of it.
func (a admission) judge(key Key, obj Object, ended bool) base.Anomaly {
	if u, ok := obj.(*unstructured.Unstructured); ok && a.kind.Kind != "" {
		if u.GetKind() != "" && u.GroupVersionKind() != a.kind {
			return base.OtherKind
		}
	}
	switch ns := key.Namespace; {
	case a.known && a.divided == (ns == ""):
		return base.OtherNamespace
	case a.matcher.Namespace != "" && ns != "" && ns != a.matcher.Namespace:
		return base.OtherNamespace
	case ended || obj == nil || !a.selects:
		return base.Sound
	case a.matcher.Match(obj) == base.Outside:
		return base.Unselected
	}
	return base.Sound
}
