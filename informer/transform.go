// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// transforming applies a transform to the objects of a ListerWatcher.
type transforming struct {
	ListerWatcher[Object]
	transform func() func(Object) (Object, error)
	// again decodes an item again, because a failed transform may have modified
	// it; nil: not possible, so objects are copied before.
	again func(listwatch.Item[Object]) (Object, error)
	probe *taskProbe // records the calls; nil: not needed
	// pack returns an item as a compact informer holds it, while its Raw is
	// valid; nil: objects are held decoded.
	pack func(listwatch.Item[Object]) listwatch.Item[Object]
}

// decodingAgain is a ListerWatcher that can decode an item again until the next
// item or frame is read.
type decodingAgain interface {
	Again(listwatch.Item[Object]) (Object, error)
}

// againBy returns the function with which lw decodes an item again, or nil.
func againBy(lw ListerWatcher[Object]) func(listwatch.Item[Object]) (Object, error) {
	if d, ok := lw.(decodingAgain); ok {
		return d.Again
	}
	return nil
}

// byItem is a ListerWatcher that passes on each item of a page as soon as it is
// decoded, while its Raw is valid. The page holds what each returns.
type byItem interface {
	ListEach(ctx context.Context, opts listwatch.ListOptions, each func(listwatch.Item[Object]) listwatch.Item[Object]) (listwatch.Page[Object], error)
}

// listEach is ListEach of any ListerWatcher.
func listEach(ctx context.Context, lw ListerWatcher[Object], opts listwatch.ListOptions, each func(listwatch.Item[Object]) listwatch.Item[Object]) (listwatch.Page[Object], error) {
	if one, ok := lw.(byItem); ok {
		return one.ListEach(ctx, opts, each)
	}
	page, err := lw.List(ctx, opts)
	for i := range page.Items {
		page.Items[i] = each(page.Items[i])
	}
	return page, err
}

func (t transforming) List(ctx context.Context, opts listwatch.ListOptions) (listwatch.Page[Object], error) {
	transform := t.transform()
	if transform != nil && t.probe != nil {
		t.probe.setGoroutine()
	}
	return listEach(ctx, t.ListerWatcher, opts, func(item listwatch.Item[Object]) listwatch.Item[Object] { return t.item(transform, item) })
}

func (t transforming) Watch(ctx context.Context, opts listwatch.WatchOptions) (listwatch.Stream[Object], error) {
	stream, err := t.ListerWatcher.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	transform := t.transform()
	if transform == nil && t.pack == nil {
		return stream, nil
	}
	return &transformingStream{Stream: stream, transform: transform, by: t}, nil
}

type transformingStream struct {
	listwatch.Stream[Object]
	transform func(Object) (Object, error)
	by        transforming
	begun     bool
}

func (s *transformingStream) Next() (listwatch.Frame[Object], error) {
	if !s.begun && s.transform != nil && s.by.probe != nil {
		s.begun = true
		s.by.probe.setGoroutine()
	}
	frame, err := s.Stream.Next()
	switch frame.Type {
	case listwatch.FrameAdded, listwatch.FrameModified, listwatch.FrameDeleted:
		frame.Item = s.by.item(s.transform, frame.Item)
	}
	return frame, err
}

// item returns the transformed item. An error or panic of the transform becomes
// the item's.
func (t transforming) item(transform func(Object) (Object, error), item listwatch.Item[Object]) listwatch.Item[Object] {
	if transform != nil && item.Err == nil && item.Anomaly != base.OtherKind && item.Anomaly != base.OtherNamespace {
		if t.probe != nil {
			t.probe.begin()
			defer t.probe.end()
		}
		item = transformItem(transform, t.again, item)
	}
	if t.pack != nil {
		item = t.pack(item)
	}
	item.Raw = nil // its buffer is used again
	return item
}

func transformItem(transform func(Object) (Object, error), again func(listwatch.Item[Object]) (Object, error), item listwatch.Item[Object]) listwatch.Item[Object] {
	var none Object
	original := none
	if again == nil {
		original = Copy(item.Object)
	}
	obj, err := base.CallTransform(transform, item.Object)
	if err == nil {
		item.Object = obj
		return item
	}
	item.Object, item.Err = none, fmt.Errorf("transform: %w", err)
	if again != nil {
		if original, err = again(item); err != nil {
			return item // retried only with its next version
		}
	}
	item.Refused = original
	item.Metadata = base.MetadataOf(original, original.GetObjectKind().GroupVersionKind())
	return item
}
