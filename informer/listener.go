// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"sync"

	"github.com/go-logr/logr"
)

// listener gives one handler its events, from a goroutine and a backlog of its
// own.
type listener[T Object] struct {
	id     int // of the handler, as in Delta.Handler
	handle func(Event[T])
	name   string
	log    logr.Logger
	woken  *sync.Cond // on mu: something waits, or the run is to end
	ready  chan struct{}
	mu     struct {
		sync.Mutex
		waiting   waiting[T]
		filter    *scopeSet // the scopes that the handler sees; nil: all
		marked    bool      // the initial objects are in
		synced    bool      // and the handler has returned from them
		removed   bool
		delivered uint64
		panics    uint64
	}
}

// newListener starts nothing.
func newListener[T Object](id int, handle func(Event[T]), opts HandlerOptions, filter *scopeSet, log logr.Logger) *listener[T] {
	l := &listener[T]{
		id: id, handle: handle, name: opts.Name, log: log,
		ready: make(chan struct{}),
	}
	l.woken = sync.NewCond(&l.mu)
	l.mu.filter = filter
	if opts.EveryEvent {
		l.mu.waiting = &eventStream[T]{}
	} else {
		l.mu.waiting = newBacklog[T]()
	}
	return l
}

// push adds changes, those that the handler sees. It never blocks.
func (l *listener[T]) push(changes []change[T]) {
	if len(changes) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.removed {
		return
	}
	for i := range changes {
		if c := &changes[i]; c.resync && c.handler != l.id {
			continue
		}
		l.mu.waiting.push(changes[i], l.mu.filter, !l.mu.marked)
	}
	l.woken.Signal()
}

// look has the handler see through filter from now on, and tells it what comes
// and goes by that.
func (l *listener[T]) look(filter *scopeSet, differently iter.Seq[change[T]]) {
	l.setFilter(filter)
	var batch []change[T]
	for c := range differently {
		if batch = append(batch, c); len(batch) == 256 {
			l.give(batch)
			batch = batch[:0]
		}
	}
	l.give(batch)
}

func (l *listener[T]) setFilter(filter *scopeSet) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.filter = filter
}

// give adds changes whatever the filter.
func (l *listener[T]) give(changes []change[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.removed {
		return
	}
	for _, c := range changes {
		l.mu.waiting.push(c, nil, !l.mu.marked)
	}
	l.woken.Signal()
}

// mark says that the initial objects are all in: synced is closed when the
// handler has returned from them. Marking twice is fine.
func (l *listener[T]) mark() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.marked {
		return
	}
	l.mu.marked = true
	if !l.mu.removed {
		l.mu.waiting.mark()
		l.woken.Signal()
	}
}

// run delivers until ctx ends or the listener is removed, and returns nil.
func (l *listener[T]) run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.woken.Broadcast()
	})()
	var buf [2]Event[T]
	for {
		events, marked, ok := l.next(ctx, buf[:0])
		if !ok {
			return nil
		}
		for _, e := range events {
			if !l.call(e) {
				return nil
			}
		}
		clear(buf[:])
		if marked {
			close(l.ready)
		}
	}
}

// next waits for the next events, or the mark. Not ok: the run is to end.
func (l *listener[T]) next(ctx context.Context, buf []Event[T]) (events []Event[T], marked, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if l.mu.removed || ctx.Err() != nil {
			return nil, false, false
		}
		events, marked = l.mu.waiting.take(buf)
		if marked {
			l.mu.synced = true
		}
		if marked || len(events) > 0 {
			return events, marked, true
		}
		l.woken.Wait()
	}
}

// call gives the handler one event. A panic costs that event alone. Not ok:
// the listener has been removed.
func (l *listener[T]) call(e Event[T]) (ok bool) {
	if !l.begin() {
		return false
	}
	defer func() {
		p := recover()
		if ok {
			return
		}
		log := l.log.WithValues("handler", l.name, "key", e.Key.String(), "event", e.Type.String(), "stack", string(debug.Stack()))
		l.panicked()
		if p == nil { // nothing can stop a Goexit
			l.remove()
			log.Error(errors.New("runtime.Goexit"), "Handler ended its goroutine; it is given no more events")
			return
		}
		ok = true
		log.Error(fmt.Errorf("panic: %v", p), "Handler panicked; it is given the next event")
	}()
	l.handle(e)
	return true
}

func (l *listener[T]) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.removed {
		return false
	}
	l.mu.delivered++
	return true
}

func (l *listener[T]) panicked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.panics++
}

// remove ends the run: no further call begins after it returns.
func (l *listener[T]) remove() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.removed {
		return
	}
	l.mu.removed = true
	l.mu.waiting = &eventStream[T]{} // what waited is given back
	l.woken.Broadcast()
}

// synced is closed when the handler has returned from the initial objects.
func (l *listener[T]) synced() <-chan struct{} { return l.ready }

func (l *listener[T]) snapshot() HandlerSnapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	return HandlerSnapshot{
		Name: l.name, Synced: l.mu.synced, Backlog: l.mu.waiting.len(),
		Delivered: l.mu.delivered, Panics: l.mu.panics,
	}
}
