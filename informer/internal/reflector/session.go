// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

type session struct {
	listwatch.Stream[kube.Object]
	ctx     context.Context
	cancel  context.CancelCauseFunc
	alarm   *time.Timer   // ends ctx when the stream is silent
	within  time.Duration // timeout of the alarm
	opened  time.Time
	until   time.Time // earliest regular end; the server counts from the request
	spoke   bool
	moved   bool // as in Outcome.Moved
	passes  bool // garbled frames are skipped
	foreign int  // frames of objects of shards that are not held
	garble  garble
}

// open opens a stream. The session ends with ctx, after too long a silence, or
// if the server does not end it at its timeout.
func (r *Reflector) open(ctx context.Context, opts listwatch.WatchOptions) (*session, steps.Outcome) {
	s := &session{}
	ctx, cancelOverdue := context.WithTimeoutCause(ctx, opts.Timeout+steps.Overdue, base.ErrOverdue)
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	cancel := s.cancel
	s.cancel = func(cause error) {
		cancel(cause)
		cancelOverdue()
	}
	s.alarm = time.AfterFunc(restclient.AnswerWithin, func() { cancel(base.ErrSilent) })
	asked := time.Now()
	stream, err := r.lw.Watch(s.ctx, opts)
	if err != nil {
		err = s.because(err)
		s.close()
		return nil, failed(err, false)
	}
	s.Stream, s.opened = stream, time.Now()
	s.until = asked.Add(opts.Timeout.Truncate(time.Second)) // requested in whole seconds
	s.alarm.Stop()
	switch {
	case opts.SendInitialEvents:
		s.within = initialWithin
	case r.Status.hasBookmarks():
		s.within = steps.SilentAfter
	}
	s.rearm()
	r.Status.recordContact()
	return s, steps.Outcome{Result: steps.ResultOpened}
}

// because returns why the session's context ended, if it did, else err.
func (s *session) because(err error) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return err
}

// begin makes a streaming list continue as a watch that has sent nothing yet.
func (s *session) begin() {
	s.opened, s.spoke, s.within = time.Now(), false, steps.SilentAfter
	s.rearm()
}

func (s *session) rearm() {
	if s.within > 0 {
		s.alarm.Reset(s.within)
	}
}

// Next returns the stream's next frame, or why there is none.
func (s *session) Next() (listwatch.Frame[kube.Object], error) {
	frame, err := s.Stream.Next()
	for err != nil && s.pass(err) {
		frame, err = s.Stream.Next()
	}
	if err != nil {
		if err = s.because(err); s.garble.last != nil && !errors.Is(err, steps.ErrDemanded) && !errors.Is(err, context.Canceled) {
			err = s.garble.last // it is why nothing more came
		}
		return frame, err
	}
	s.sound()
	if frame.Item.Anomaly == base.Foreign {
		s.foreign++
	}
	s.spoke = true
	s.rearm()
	return frame, nil
}

func (s *session) close() {
	if s == nil {
		return
	}
	s.alarm.Stop()
	if s.Stream != nil {
		_ = s.Close() // before its context ends, to free its connection at once
	}
	s.cancel(nil)
}

// after returns the outcome of a stream that ended with err.
func (s *session) after(err error) steps.Outcome {
	o := failed(err, false)
	if o.Result == steps.ResultCut || o.Result == steps.ResultUnreachable {
		o.Err = fmt.Errorf("the connection to the server broke off: %w", err)
	}
	o.Lived, o.Early = time.Since(s.opened), time.Until(s.until) > earlyEnd
	o.Spoke, o.Moved = s.spoke, s.moved
	return o
}

// errorFrame returns the outcome of a stream that the server ended with an
// error.
func (s *session) errorFrame(err error) steps.Outcome {
	if err == nil {
		err = errors.New("error frame without an error")
	}
	o := s.after(err)
	// The error itself is no sign of life of the stream.
	o.Spoke = false
	return o
}

// liveAfter sets the state to Live when a watch has been open for d, unless
// over is called before.
func (s *reflectorStatus) liveAfter(d time.Duration) (over func()) {
	open := func(is bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.watching = is
	}
	open(true)
	live := time.AfterFunc(d, func() { s.setIf(func() bool { return s.mu.watching }, state.Live, "") })
	return func() {
		live.Stop()
		open(false)
	}
}
