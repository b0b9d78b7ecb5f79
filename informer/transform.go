// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// transforming applies a transform to what a ListerWatcher gives.
type transforming[T Object] struct {
	ListerWatcher[T]
	transform func() func(T) (T, error)
}

func (t transforming[T]) List(ctx context.Context, opts ListOptions) (Page[T], error) {
	page, err := t.ListerWatcher.List(ctx, opts)
	transform := t.transform()
	if transform == nil {
		return page, err
	}
	for i := range page.Items {
		page.Items[i] = transformItem(transform, page.Items[i])
	}
	return page, err
}

func (t transforming[T]) Watch(ctx context.Context, opts WatchOptions) (Stream[T], error) {
	stream, err := t.ListerWatcher.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	transform := t.transform()
	if transform == nil {
		return stream, nil
	}
	return transformingStream[T]{Stream: stream, transform: transform}, nil
}

type transformingStream[T Object] struct {
	Stream[T]
	transform func(T) (T, error)
}

func (s transformingStream[T]) Next() (Frame[T], error) {
	frame, err := s.Stream.Next()
	switch frame.Type {
	case FrameAdded, FrameModified, FrameDeleted:
		frame.Item = transformItem(s.transform, frame.Item)
	}
	return frame, err
}

// transformItem turns an error or panic of the transform into the item's own.
func transformItem[T Object](transform func(T) (T, error), item Item[T]) Item[T] {
	if item.Err != nil || item.stranger == otherKind || item.stranger == otherNamespace {
		return item
	}
	var none T
	obj, err := callTransform(transform, item.Object)
	if err != nil {
		kind := item.Object.GetObjectKind().GroupVersionKind()
		item.Metadata = metadataOf(item.Object, kind)
		item.Object, item.Err = none, fmt.Errorf("transform: %w", err)
		return item
	}
	item.Object = obj
	return item
}

func callTransform[T Object](transform func(T) (T, error), obj T) (_ T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: string(debug.Stack())}
		}
	}()
	obj, err = transform(obj)
	if err == nil && isNil(obj) {
		err = errors.New("the function returned no object")
	}
	return obj, err
}

// panicError is a panic of a user's function. Its text leaves the stack out,
// since each read of the key repeats it.
type panicError struct {
	value any
	stack string
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}
