// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"io"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/gate"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// errorReporter reports the errors of a ListerWatcher.
type errorReporter struct {
	ListerWatcher[Object]
	tell func(context.Context, error)
}

func (l errorReporter) List(ctx context.Context, opts listwatch.ListOptions) (listwatch.Page[Object], error) {
	page, err := l.ListerWatcher.List(ctx, opts)
	l.listed(ctx, err)
	return page, err
}

func (l errorReporter) ListEach(ctx context.Context, opts listwatch.ListOptions, each func(listwatch.Item[Object]) listwatch.Item[Object]) (listwatch.Page[Object], error) {
	page, err := listEach(ctx, l.ListerWatcher, opts, each)
	l.listed(ctx, err)
	return page, err
}

func (l errorReporter) listed(ctx context.Context, err error) {
	if err != nil && !errors.Is(err, gate.ErrHeld) {
		l.tell(ctx, err)
	}
}

func (l errorReporter) Watch(ctx context.Context, opts listwatch.WatchOptions) (listwatch.Stream[Object], error) {
	stream, err := l.ListerWatcher.Watch(ctx, opts)
	if err != nil {
		if r, _ := steps.Classify(err); r != steps.ResultHeld && (!opts.SendInitialEvents || !r.LeadsToPages()) {
			l.tell(ctx, err)
		}
		return nil, err
	}
	return reportingStream{Stream: stream, tell: func(err error) { l.tell(ctx, err) }}, nil
}

type reportingStream struct {
	listwatch.Stream[Object]
	tell func(error)
}

func (s reportingStream) Next() (listwatch.Frame[Object], error) {
	frame, err := s.Stream.Next()
	switch {
	case errors.Is(err, io.EOF) && !base.IsNetwork(err): // a clean end
	case err != nil:
		s.tell(err)
	case frame.Type == listwatch.FrameError && frame.Err != nil:
		s.tell(frame.Err)
	}
	return frame, err
}

// pagedOnly is a ListerWatcher that may not support streaming lists. The name
// is client-go's, whose fakes have the method.
type pagedOnly interface {
	IsWatchListSemanticsUnSupported() bool
}
