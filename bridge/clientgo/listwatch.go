// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// NewListerWatcher adapts a client-go ListerWatcher, such as a cache.ListWatch
// with a typed, dynamic or fake client, for informer.New. If it has a method
// IsWatchListSemanticsUnSupported that returns true, as fakes do, only paged
// lists are used. The objects of lw must be of type T and belong to the
// informer; the transform may modify them. Since they are already decoded there
// is no quarantine: an undecodable object fails its list or watch.
//
// If lw takes no context, a call that hangs after the context has ended is
// abandoned; use one with ListWithContext and WatchWithContext.
func NewListerWatcher[T kube.Object](lw cache.ListerWatcher) listwatch.ListerWatcher[T] {
	if lw == nil {
		return nil // informer.New reports the error
	}
	paged := false
	if l, ok := lw.(interface{ IsWatchListSemanticsUnSupported() bool }); ok {
		paged = l.IsWatchListSemanticsUnSupported()
	}
	return listerWatcher[T]{lw: cache.ToListerWatcherWithContext(lw), paged: paged}
}

type listerWatcher[T kube.Object] struct {
	lw    cache.ListerWatcherWithContext
	paged bool
}

// IsWatchListSemanticsUnSupported is called by the informer before it chooses
// how to list.
func (l listerWatcher[T]) IsWatchListSemanticsUnSupported() bool { return l.paged }

func (l listerWatcher[T]) List(ctx context.Context, opts listwatch.ListOptions) (listwatch.Page[T], error) {
	list, err := l.lw.ListWithContext(ctx, metav1.ListOptions{
		Limit: opts.Limit, Continue: opts.Continue,
		ResourceVersion: opts.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatch(opts.ResourceVersionMatch),
	})
	if err != nil {
		return listwatch.Page[T]{}, err
	}
	return pageOf[T](list)
}

func pageOf[T kube.Object](list runtime.Object) (page listwatch.Page[T], err error) {
	m, err := meta.ListAccessor(list)
	if err != nil {
		return page, fmt.Errorf("read a list of %s: the answer is a %T: %w", reflect.TypeFor[T](), list, err)
	}
	page.ResourceVersion, page.Continue = m.GetResourceVersion(), m.GetContinue()
	page.Items = make([]listwatch.Item[T], 0, meta.LenList(list))
	// Otherwise each object would keep the whole list in memory.
	err = meta.EachListItemWithAlloc(list, func(obj runtime.Object) error {
		item, err := itemOf[T](obj)
		page.Items = append(page.Items, item)
		return err
	})
	if err != nil {
		return listwatch.Page[T]{}, fmt.Errorf("read a list of %s: %w", reflect.TypeFor[T](), err)
	}
	return page, nil
}

func itemOf[T kube.Object](obj runtime.Object) (listwatch.Item[T], error) {
	typed, ok := obj.(T)
	if !ok {
		return listwatch.Item[T]{}, fmt.Errorf("the object is a %T", obj)
	}
	return listwatch.Item[T]{
		Key: kube.KeyOf(typed), UID: typed.GetUID(), ResourceVersion: typed.GetResourceVersion(), Object: typed,
	}, nil
}

func (l listerWatcher[T]) Watch(ctx context.Context, opts listwatch.WatchOptions) (listwatch.Stream[T], error) {
	seconds := int64(opts.Timeout.Seconds())
	asked := metav1.ListOptions{
		ResourceVersion: opts.ResourceVersion, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	}
	if opts.SendInitialEvents {
		initial := true
		asked.SendInitialEvents, asked.ResourceVersionMatch = &initial, metav1.ResourceVersionMatchNotOlderThan
	}
	w, err := l.lw.WatchWithContext(ctx, asked)
	if err != nil {
		return nil, err
	}
	if w == nil {
		return nil, errors.New("the ListerWatcher returned neither a watch nor an error")
	}
	closed := make(chan struct{})
	return &stream[T]{watch: w, ended: ctx.Done(), closed: closed, close: sync.OnceFunc(func() {
		close(closed)
		w.Stop()
	})}, nil
}

// stream presents a watch.Interface as a listwatch.Stream.
type stream[T kube.Object] struct {
	watch  watch.Interface
	ended  <-chan struct{}
	closed chan struct{}
	close  func()
}

func (s *stream[T]) Next() (listwatch.Frame[T], error) {
	// Check each channel alone first: that takes no lock, whereas a select
	// takes those of all three.
	events := s.watch.ResultChan()
	switch {
	case over(s.ended), over(s.closed):
		return listwatch.Frame[T]{}, context.Canceled
	}
	select {
	case e, ok := <-events:
		return next[T](e, ok)
	default:
	}
	select {
	case e, ok := <-events:
		return next[T](e, ok)
	case <-s.ended:
	case <-s.closed:
	}
	return listwatch.Frame[T]{}, context.Canceled
}

func over(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func next[T kube.Object](e watch.Event, ok bool) (listwatch.Frame[T], error) {
	if !ok {
		return listwatch.Frame[T]{}, io.EOF
	}
	return frameOf[T](e)
}

func (s *stream[T]) Close() error {
	s.close()
	return nil
}

func frameOf[T kube.Object](e watch.Event) (frame listwatch.Frame[T], err error) {
	switch e.Type {
	case watch.Error:
		return listwatch.Frame[T]{Type: listwatch.FrameError, Err: apierrors.FromObject(e.Object)}, nil
	case watch.Bookmark:
		m, err := meta.Accessor(e.Object)
		if err != nil {
			return frame, fmt.Errorf("read a bookmark of %s: %w", reflect.TypeFor[T](), err)
		}
		frame.Type, frame.Item.ResourceVersion = listwatch.FrameBookmark, m.GetResourceVersion()
		frame.InitialEventsEnd = m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
		return frame, nil
	}
	frame.Type = listwatch.FrameType(e.Type)
	if frame.Item, err = itemOf[T](e.Object); err != nil {
		return listwatch.Frame[T]{}, fmt.Errorf("read a watch of %s: %w", reflect.TypeFor[T](), err)
	}
	return frame, nil
}
