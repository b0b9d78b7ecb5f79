// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/gate"
	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// SetErrorHandler has f called with each error of a list or watch, those that
// are tried again among them; State tells the same in states. f is called by
// the goroutine that lists and watches, which waits for it. There is one per
// kind: the last call wins, and a nil f is none. It is an error after the
// informer started.
func (i *SharedInformer[T]) SetErrorHandler(f func(ctx context.Context, err error)) error {
	if err := i.Err(); err != nil {
		return err
	}
	c := i.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.started && c.mu.opened {
		return c.errorf("set error handler: the informer has started; set it before the run, or on a handle whose Scope is Deferred")
	}
	c.mu.onError = f
	return nil
}

func (c *core) tell(ctx context.Context, err error) {
	c.mu.Lock()
	f := c.mu.onError
	c.mu.Unlock()
	if f == nil || ctx.Err() != nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			c.log.Error(fmt.Errorf("panic: %v", p), "Error handler panicked", "stack", string(debug.Stack()))
		}
	}()
	f(ctx, err)
}

// telling passes the errors of a ListerWatcher on.
type telling[T Object] struct {
	ListerWatcher[T]
	tell func(context.Context, error)
}

func (l telling[T]) List(ctx context.Context, opts listwatch.ListOptions) (listwatch.Page[T], error) {
	page, err := l.ListerWatcher.List(ctx, opts)
	if err != nil && !errors.Is(err, gate.ErrHeld) {
		l.tell(ctx, err)
	}
	return page, err
}

func (l telling[T]) Watch(ctx context.Context, opts listwatch.WatchOptions) (listwatch.Stream[T], error) {
	stream, err := l.ListerWatcher.Watch(ctx, opts)
	if err != nil {
		if r, _ := steps.Classify(err); r != steps.ResultHeld && (!opts.SendInitialEvents || !r.LeadsToPages()) {
			l.tell(ctx, err)
		}
		return nil, err
	}
	return tellingStream[T]{Stream: stream, tell: func(err error) { l.tell(ctx, err) }}, nil
}

type tellingStream[T Object] struct {
	listwatch.Stream[T]
	tell func(error)
}

func (s tellingStream[T]) Next() (listwatch.Frame[T], error) {
	frame, err := s.Stream.Next()
	switch {
	case errors.Is(err, io.EOF) && !base.IsNetwork(err): // the server's clean end
	case err != nil:
		s.tell(err)
	case frame.Type == listwatch.FrameError && frame.Err != nil:
		s.tell(frame.Err)
	}
	return frame, err
}

// pagedOnly is what a ListerWatcher may have to say that it knows no streaming
// lists. The name is client-go's, whose fakes have the method.
type pagedOnly interface {
	IsWatchListSemanticsUnSupported() bool
}

// optionsOf are the options of a Reflector that is fed by lw.
func (c *core) optionsOf(lw ListerWatcher[Object]) reflector.Options {
	opts := reflector.Options{
		Logger: c.opts.Logger, PageSize: c.opts.PageSize, PagedLists: c.opts.PagedLists, ListFromCache: c.opts.ListFromCache,
	}
	if p, ok := lw.(pagedOnly); ok && p.IsWatchListSemanticsUnSupported() {
		opts.PagedLists = true
	}
	return opts
}
