// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/pacing"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

type (
	listItem    = listwatch.Item[kube.Object]
	listPage    = listwatch.Page[kube.Object]
	watchFrame  = listwatch.Frame[kube.Object]
	watchStream = listwatch.Stream[kube.Object]
)

// A Transform modifies an object before it is stored.
type Transform = func(kube.Object) (kube.Object, error)

// ListerWatcher is the ListerWatcher of one scope, with all that the informer does to a request
// before it is sent and to an object before it is stored.
//
//	Reflector ──▶ Check ──▶ Begin ──▶ list or watch ──▶ server
//	Reflector ◀── Pack ◀── transform ◀── Screen ◀── Report ◀── page or frame
//
// It runs in the Reflector's goroutine, has no lock and keeps no state. Nil functions do nothing.
type ListerWatcher struct {
	// From lists and watches the scope.
	From listwatch.ListerWatcher[kube.Object]
	// Screen marks objects that are not of the scope. It sees them before the transform, which
	// may change labels.
	Screen Screen
	// Check is called before each request. The request fails with its error.
	Check func(context.Context) error
	// Begin is called before each list.
	Begin func()
	// Report is called with each error, except those of requests that were not sent.
	Report func(context.Context, error)
	// Transform returns the transform, or nil. It is called once per page or watch.
	Transform func() Transform
	// Probe records the calls of the transform.
	Probe Probe
	// Ignored is called if the server is seen to ignore the shardSelector of the scope, which is
	// ShardSelector.
	Ignored       func()
	ShardSelector string
	// Pack returns an item as a compact informer holds it, while its Raw is valid.
	Pack func(listwatch.Item[kube.Object]) listwatch.Item[kube.Object]
}

// Probe records a recurring task.
type Probe interface {
	SetGoroutine() // records that the calling goroutine runs the task from now on
	Begin()
	End()
}

// byItem is a ListerWatcher that passes on each item of a page as soon as it is
// decoded, while its Raw is valid. The page holds what each returns.
type byItem interface {
	ListEach(ctx context.Context, opts listwatch.ListOptions, each func(listItem) listItem) (listPage, error)
}

// List implements listwatch.ListerWatcher.
func (l ListerWatcher) List(ctx context.Context, opts listwatch.ListOptions) (listPage, error) {
	p := l.processor()
	p.setGoroutine()
	if opts.Continue == "" && l.Begin != nil {
		l.Begin()
	}
	// Discovery may have answered only when the first item arrives.
	admission := sync.OnceValue(l.Screen.now)
	page, err := l.listEach(ctx, opts, func(i listItem) listItem {
		return p.process(admission().mark(i, false))
	})
	if err != nil && l.Report != nil && !errors.Is(err, pacing.ErrHeld) {
		l.Report(ctx, err)
	}
	if err == nil && l.ignores(page) {
		l.Ignored()
	}
	return page, err
}

// ignores reports whether the server of a page ignores the ShardSelector.
func (l ListerWatcher) ignores(page listPage) bool {
	return l.Ignored != nil && l.ShardSelector != "" && (page.Foreign > 0 || page.ShardSelector != l.ShardSelector)
}

// listEach lists a page, of which each item passes through each.
func (l ListerWatcher) listEach(ctx context.Context, opts listwatch.ListOptions, each func(listItem) listItem) (listPage, error) {
	if err := l.check(ctx); err != nil {
		return listPage{}, err
	}
	if one, ok := l.From.(byItem); ok {
		return one.ListEach(ctx, opts, each)
	}
	page, err := l.From.List(ctx, opts)
	for i := range page.Items {
		page.Items[i] = each(page.Items[i])
	}
	return page, err
}

// Watch implements listwatch.ListerWatcher.
func (l ListerWatcher) Watch(ctx context.Context, opts listwatch.WatchOptions) (watchStream, error) {
	if opts.SendInitialEvents && l.Begin != nil {
		l.Begin()
	}
	from, err := l.watch(ctx, opts)
	if err != nil {
		if r, _ := steps.Classify(err); l.Report != nil && r != steps.ResultHeld && (!opts.SendInitialEvents || !r.LeadsToPages()) {
			l.Report(ctx, err)
		}
		return nil, err
	}
	s := &streamOf{watchStream: from, admission: l.Screen.now(), processor: l.processor()}
	if l.ShardSelector != "" {
		s.ignored = l.Ignored
	}
	if l.Report != nil {
		s.report = func(err error) { l.Report(ctx, err) }
	}
	return s, nil
}

func (l ListerWatcher) watch(ctx context.Context, opts listwatch.WatchOptions) (watchStream, error) {
	if err := l.check(ctx); err != nil {
		return nil, err
	}
	return l.From.Watch(ctx, opts)
}

func (l ListerWatcher) check(ctx context.Context) error {
	if l.Check == nil {
		return nil
	}
	return l.Check(ctx)
}

// streamOf is a stream of a ListerWatcher.
type streamOf struct {
	watchStream
	report    func(error) // nil: not needed
	ignored   func()      // called if the server ignores the shardSelector; nil: not needed
	admission admission
	processor processor
	begun     bool
}

// Next implements listwatch.Stream.
func (s *streamOf) Next() (watchFrame, error) {
	if !s.begun {
		s.begun = true
		s.processor.setGoroutine()
	}
	f, err := s.watchStream.Next()
	s.reportErrors(f, err)
	switch f.Type {
	case listwatch.FrameAdded, listwatch.FrameModified, listwatch.FrameDeleted:
		f.Item = s.admission.mark(f.Item, f.Type == listwatch.FrameDeleted)
		f.Item = s.processor.process(f.Item)
		if f.Item.Anomaly == base.Foreign && s.ignored != nil {
			s.ignored()
		}
	}
	return f, err
}

func (s *streamOf) reportErrors(f watchFrame, err error) {
	switch {
	case s.report == nil:
	case errors.Is(err, io.EOF) && !base.IsNetwork(err): // a clean end
	case err != nil:
		s.report(err)
	case f.Type == listwatch.FrameError && f.Err != nil:
		s.report(f.Err)
	}
}
