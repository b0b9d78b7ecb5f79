// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/kube"
)

// run is one reconcile, and its context. Values that most reconciles do not need are
// created on demand: the logger, and the text of the ID. Creating them takes longer
// than all other work of the controller for a reconcile.
type run[K comparable] struct {
	context.Context
	cancel     context.CancelCauseFunc
	controller *Controller[K]
	key        K
	number     uint64
	since      time.Time
	caused     *caused        // read and written by the controller's causes
	witnessed  func()         // ends what the Witness began, if there is one
	sending    sending        // its requests
	recording  *recording.Run // nil: it is not recorded for a replay

	named    sync.Once
	overdue  bool // used only by the watch
	priority int8 // of its key, if there are traces
	log      logr.Logger
}

func (c *Controller[K]) newRun(ctx context.Context, key K) *run[K] {
	r := &run[K]{controller: c, key: key, number: c.draw(key), since: time.Now()}
	r.Context, r.cancel = context.WithCancelCause(ctx)
	return r
}

// id returns 16 random hexadecimal digits, the first not below 8.
func (r *run[K]) id() string { return strconv.FormatUint(r.number, 16) }

func (r *run[K]) logger() logr.Logger {
	r.named.Do(func() {
		r.log = r.controller.log.WithValues("key", keyText(r.key), "reconcileID", r.id(), "cause", r.whyItRuns().String())
		if r.controller.traces != nil {
			r.log = r.log.WithValues("traceID", trace.SpanContextFromContext(r.Context).TraceID().String())
		}
	})
	return r.log
}

// Deadline returns the hard deadline.
func (r *run[K]) Deadline() (time.Time, bool) {
	if r.controller.watchdog.hard < 0 {
		return time.Time{}, false
	}
	return r.since.Add(r.controller.watchdog.hard), true
}

// Err returns context.DeadlineExceeded after the hard deadline.
func (r *run[K]) Err() error {
	err := r.Context.Err()
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*DeadlineError](context.Cause(r.Context)); ok {
		return context.DeadlineExceeded
	}
	return err
}

// Value returns the logger, and the reconcile itself.
func (r *run[K]) Value(key any) any {
	switch {
	case key == r.controller.loggerKey:
		return r.logger()
	case key != (contextvalues.TaskKey{}):
		return r.Context.Value(key)
	case r.controller.wrote != nil:
		return writing[K]{r}
	}
	return r
}

// Moved implements contextvalues.Task.
func (r *run[K]) Moved() { r.controller.counters.Moved() }

// Name implements contextvalues.Task.
func (r *run[K]) Name() (controller, key string) { return r.controller.name, keyText(r.key) }

// TraceContext returns the span of r for a kube.TraceContextAnnotation. Empty: there is none.
func (r *run[K]) TraceContext() string { return spanIn(r.Context) }

// Recording returns what r is written to for a replay; nil: nothing.
func (r *run[K]) Recording() *recording.Run { return r.recording }

// Now returns the time for r, and records it.
func (r *run[K]) Now() time.Time {
	if sim, is := r.controller.sim.(simhook.Replay); is {
		return sim.Clock(r.controller.name, keyText(r.key))
	}
	now := simhook.Wall(r.controller.sim)
	r.recording.Clock(now)
	return now
}

// Random returns a draw for r, and records it.
func (r *run[K]) Random(what string) float64 {
	if sim, is := r.controller.sim.(simhook.Replay); is {
		return sim.Chance(r.controller.name, keyText(r.key))
	}
	drawn := simhook.Float64(r.controller.sim, what)
	r.recording.Chance(drawn)
	return drawn
}

// Records implements contextvalues.Task.
func (r *run[K]) Records() bool { return r.controller.recorder != nil }

// Sent implements contextvalues.Task.
func (r *run[K]) Sent(q contextvalues.Request) (number int) { return r.sending.sent(q) }

// Answered implements contextvalues.Task.
func (r *run[K]) Answered(number int, a contextvalues.Answer) { r.sending.answered(number, a) }

// Effected implements contextvalues.Task.
func (r *run[K]) Effected(w kube.Written, from kube.Version) { r.sending.effected(w, from) }

func (r *run[K]) whyItRuns() Causes { return r.controller.causes.of(&r.caused) }

// loggerKey returns the key by which logr looks up the logger of a context.
func loggerKey() any {
	var asked keyCatcher
	_ = logr.FromContextOrDiscard(&asked)
	return asked.key
}

// keyCatcher is a context that records the requested key.
type keyCatcher struct {
	context.Context
	key any
}

func (c *keyCatcher) Value(key any) any {
	c.key = key
	return nil
}
