// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// shortestResync is client-go's lower bound of a handler's resync period.
const shortestResync = time.Second

// AddEventHandlerWithResyncPeriod is AddEventHandlerWithOptions with a resync
// period for the handler; 0: none.
func (s *SharedIndexInformer[T]) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, period time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(h, cache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions calls h with every event from now on, starting
// with the present objects. A resync period applies regardless of the
// informer's own; it is at least a second and has a jitter of a tenth. Messages
// about the handler go to the Logger of opts, else to the informer's. It is an
// error after the informer's end.
func (s *SharedIndexInformer[T]) AddEventHandlerWithOptions(h cache.ResourceEventHandler, opts cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	if h == nil {
		return nil, fmt.Errorf("add handler to the informer of %s: %w", s.informer, errNilHandler)
	}
	if s.IsStopped() {
		return nil, s.stoppedError()
	}
	r := &registration{owner: s, shutdown: make(chan struct{})}
	added, err := s.informer.AddHandler(func(e kube.Event[T]) {
		if r.enter() {
			defer r.leave()
			deliver(h, e)
		}
	}, informer.HandlerOptions{
		Resync: resyncOf(opts.ResyncPeriod), Logger: loggerOf(opts),
		EveryEvent: true, BacklogBytes: s.opts.BacklogBytes, Relists: !s.opts.OnlyDifferences,
	})
	if err != nil {
		return nil, err
	}
	r.handler, r.name = added, fmt.Sprintf("%s + %T", s.name(), h)
	if !s.life.add(r) {
		r.remove()
		return nil, s.stoppedError()
	}
	return r, nil
}

func (s *SharedIndexInformer[T]) stoppedError() error {
	return fmt.Errorf("add handler to the informer of %s: it has stopped already", s.informer)
}

func loggerOf(opts cache.HandlerOptions) logr.Logger {
	if opts.Logger == nil {
		return logr.Logger{}
	}
	return *opts.Logger
}

// resyncOf converts period to informer.HandlerOptions, where 0 is the
// informer's own period and a negative one is never.
func resyncOf(period *time.Duration) time.Duration {
	switch {
	case period == nil:
		return 0
	case *period <= 0:
		return -1
	}
	return max(*period, shortestResync)
}

// deliver calls h as client-go would.
func deliver[T kube.Object](h cache.ResourceEventHandler, e kube.Event[T]) {
	switch {
	case e.Type == kube.Added:
		h.OnAdd(e.New, e.Initial)
	case e.Type == kube.Updated:
		h.OnUpdate(e.Old, e.New)
	case e.FinalStateUnknown:
		h.OnDelete(cache.DeletedFinalStateUnknown{Key: keyOf(e.Key), Obj: e.Old})
	default:
		h.OnDelete(e.Old)
	}
}

// registration is one handler of an informer.
type registration struct {
	owner    any
	name     string
	handler  *informer.Registration
	shutdown chan struct{}
	state    atomic.Uint32 // calling and removed
}

const (
	calling uint32 = 1 << iota
	removed
)

// HasSynced reports whether the handler has returned from the initial objects.
func (r *registration) HasSynced() bool { return isClosed(r.handler.Synced()) }

// HasSyncedChecker is done when the handler has returned from the initial
// objects.
func (r *registration) HasSyncedChecker() cache.DoneChecker {
	return checker{name: r.name, done: r.handler.Synced()}
}

// ShutdownChan is closed when the handler has been removed and its last call
// has returned. cache.ShutDownEventHandler waits for it.
func (r *registration) ShutdownChan() <-chan struct{} { return r.shutdown }

func (r *registration) enter() bool { return r.state.CompareAndSwap(0, calling) }

func (r *registration) leave() {
	if !r.state.CompareAndSwap(calling, 0) {
		close(r.shutdown) // removed meanwhile
	}
}

func (r *registration) remove() {
	r.handler.Remove()
	if r.state.Or(removed) == 0 {
		close(r.shutdown)
	}
}
