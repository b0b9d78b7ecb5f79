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
type transforming[T Object] struct {
	ListerWatcher[T]
	transform func() func(T) (T, error)
	// again decodes an item again, because a failed transform may have modified
	// it; nil: not possible, so objects are copied before.
	again func(listwatch.Item[T]) (T, error)
	hand  *hand // records the calls; nil: not needed
}

// decodingAgain is a ListerWatcher that can decode an item again until the next
// page or frame is read.
type decodingAgain[T Object] interface {
	Again(listwatch.Item[T]) (T, error)
}

// againBy returns the function with which lw decodes an item again, or nil.
func againBy[T Object](lw ListerWatcher[T]) func(listwatch.Item[T]) (T, error) {
	if d, ok := lw.(decodingAgain[T]); ok {
		return d.Again
	}
	return nil
}

func (t transforming[T]) List(ctx context.Context, opts listwatch.ListOptions) (listwatch.Page[T], error) {
	page, err := t.ListerWatcher.List(ctx, opts)
	transform := t.transform()
	if transform != nil && t.hand != nil {
		t.hand.takenUp()
	}
	for i := range page.Items {
		page.Items[i] = t.item(transform, page.Items[i])
	}
	return page, err
}

func (t transforming[T]) Watch(ctx context.Context, opts listwatch.WatchOptions) (listwatch.Stream[T], error) {
	stream, err := t.ListerWatcher.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	transform := t.transform()
	if transform == nil {
		return stream, nil
	}
	return &transformingStream[T]{Stream: stream, transform: transform, by: t}, nil
}

type transformingStream[T Object] struct {
	listwatch.Stream[T]
	transform func(T) (T, error)
	by        transforming[T]
	begun     bool
}

func (s *transformingStream[T]) Next() (listwatch.Frame[T], error) {
	if !s.begun && s.by.hand != nil {
		s.begun = true
		s.by.hand.takenUp()
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
func (t transforming[T]) item(transform func(T) (T, error), item listwatch.Item[T]) listwatch.Item[T] {
	if transform != nil && item.Err == nil && item.Anomaly != base.OtherKind && item.Anomaly != base.OtherNamespace {
		if t.hand != nil {
			t.hand.begin()
			defer t.hand.end()
		}
		item = transformItem(transform, t.again, item)
	}
	item.Raw = nil // it keeps a whole page in memory
	return item
}

func transformItem[T Object](transform func(T) (T, error), again func(listwatch.Item[T]) (T, error), item listwatch.Item[T]) listwatch.Item[T] {
	var none T
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
