// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/textlog"
)

const (
	defaultPageSize = 500
	// A watch is asked to end after a time between these two, so that watches
	// which began together do not end together.
	shortestWatch, longestWatch = 5 * time.Minute, 10 * time.Minute
	// overdue is how long after its timeout a stream is given up.
	overdue = 30 * time.Second
	// answerWithin is how long the server may take to answer, and to go on with
	// an answer that it has begun.
	answerWithin = 90 * time.Second
	// initialWithin is how long a streaming list may pause. The first pause of a
	// source that may not know streaming lists is shorter.
	initialWithin, foreignWithin = 30 * time.Second, 10 * time.Second
	// silentAfter without a frame, a stream that has bookmarks is dead: they
	// come once a minute.
	silentAfter = 150 * time.Second
	// earlyEnd is how long before its timeout the end of a stream needs a reason:
	// what two clocks differ by in ten minutes. An end that is taken for the
	// timeout hides a change of schema.
	earlyEnd = 500 * time.Millisecond
)

// sink is where a Reflector puts what it learns: the DeltaFIFO.
type sink[T Object] interface {
	Push(Delta[T])
	Bookmark(ScopeID, Version)
	replace(ScopeID) replacement[T]
	newest(ScopeID, Key) Version
	// present is what the scope holds after all that was put in so far.
	present(ScopeID) iter.Seq[Delta[T]]
}

// replacement collects one list.
type replacement[T Object] interface {
	Add(Delta[T])
	Remove(Delta[T])
	Keep(Key)
	Unreadable()
	Epoch()
	Recompare()
	Undone(Version) []Key
	Commit(Version)
	Abort()
}

// fifoSink is a DeltaFIFO as a sink.
type fifoSink[T Object] struct{ *DeltaFIFO[T] }

func (s fifoSink[T]) replace(scope ScopeID) replacement[T] { return s.Replace(scope) }

// Reflector lists and watches one scope of a kind and pushes what changes into
// the DeltaFIFO, until its Run ends. What it does after each success and each
// failure is decided by next, in phase.go.
type Reflector[T Object] struct {
	lw      ListerWatcher[T]
	id      ScopeID
	scope   WatchScope
	objects string // their type
	sink    sink[T]
	opts    Options
	random  func() float64
	sim     simhook.Hooks // nil: none
	status  reflectorStatus
	order   streamOrder // used by Run alone
	server  *apiServer  // whose gate the requests pass; nil: there is none
	kind    schema.GroupVersionKind
	size    int     // objects of the scope, as far as the stream has told
	tee     *tee[T] // the sink, with a place for taps
	wants   demands
	garbled bool         // frames of a watch were, and no list has made up for them
	madeUp  time.Time    // when one was wanted last
	undone  int          // lists in a row that had objects in older versions; used by Run alone
	schema  *schemaScope // nil: nobody looks after it

	borrow  func(from Version) *tap // a watch that has the objects in full; nil: never one
	follows atomic.Pointer[tap]     // what feeds the scope instead of a watch of its own
}

// newReflector returns the reflector of one scope. It starts nothing.
func newReflector[T Object](lw ListerWatcher[T], scope WatchScope, id ScopeID, fifo *DeltaFIFO[T], opts Options) *Reflector[T] {
	return newReflectorInto(lw, scope, id, fifoSink[T]{fifo}, opts)
}

func newReflectorInto[T Object](lw ListerWatcher[T], scope WatchScope, id ScopeID, into sink[T], opts Options) *Reflector[T] {
	opts.PageSize = cmp.Or(opts.PageSize, defaultPageSize)
	tee := newTee(into)
	r := &Reflector[T]{lw: lw, id: id, sink: tee, tee: tee, opts: opts, random: rand.Float64}
	r.status.begin(scope)
	r.scope = scope
	return r
}

// State says where the reflector stands, or the one whose watch it shares.
func (r *Reflector[T]) State() ScopeState {
	own := r.status.snapshot()
	if t := r.follows.Load(); t != nil {
		return t.shared(own)
	}
	return own
}

// Run lists and watches until ctx ends, and then returns nil. It retries
// whatever fails. It runs in the goroutine of its caller alone.
func (r *Reflector[T]) Run(ctx context.Context) error {
	log, err := logr.FromContext(ctx)
	if err != nil {
		log = r.opts.Logger
	}
	r.status.logTo(textlog.Throttled(log))
	defer r.status.stopped()
	r.simulated(simhook.Of(ctx))

	r.schema.join()
	defer r.schema.leave()
	p := progress{paged: r.opts.PagedLists, foreign: r.server == nil}
	p.phase = p.listPhase(time.Now())
	var open *session[T]
	defer func() { open.close() }()
	defer func() { r.tee.end(p.last) }()
	for ctx.Err() == nil {
		if d := r.wants.take(); d.reason != "" {
			r.status.demanded(d.reason, p.phase)
			p = p.demanded(d, time.Now())
			open.close()
			open = nil
		}
		if open == nil {
			if after, followed := r.follow(ctx, p); followed {
				p = after
				continue
			}
		}
		r.tee.adopt(ctx, r.id, p.last)
		began := time.Now()
		var o outcome
		if open != nil && p.phase == phaseWatch {
			r.status.trying(p.phase)
			over := r.tee.during(open.cancel)
			o = r.watch(open, &p)
			over()
			open.close()
			open = nil
		} else {
			p = r.heedMemory(p, time.Now())
			open, o = r.step(ctx, p)
		}
		if ctx.Err() != nil {
			break
		}
		if errors.Is(o.err, errTapped) {
			continue // and on from where the stream was
		}
		o.now = time.Now()
		r.note(p, o, began)
		d := next(p, o)
		if d.fellBack {
			r.fellBack(d.next, o, cmp.Or(p.probing, text(o.err)))
		}
		wait := r.wait(d, o.now)
		r.status.show(d, o, max(wait, r.heldUntil(o.now).Sub(o.now)))
		p = d.next
		if !r.tee.pause(ctx, wait, r.id, p.last) {
			break
		}
	}
	return nil
}

// step asks the server for what p says, when the gate lets it.
func (r *Reflector[T]) step(ctx context.Context, p progress) (*session[T], outcome) {
	if r.sim != nil {
		r.sim.Step(ctx, "ask", r.name())
	}
	ctx, pass := r.admitted(ctx, p)
	defer pass.done()
	if ctx.Err() != nil {
		return nil, outcome{}
	}
	r.status.trying(p.phase)
	if p.elsewhere {
		ctx = elsewhere(ctx)
	}
	switch p.phase {
	case phaseList:
		return nil, r.list(ctx, p, pass)
	case phaseStream:
		return r.stream(ctx, p)
	}
	return r.open(ctx, r.watchOptions(p))
}

// note tells those who look after the scope how a step went.
func (r *Reflector[T]) note(p progress, o outcome, began time.Time) {
	if o.result == resultCompleted && p.repair {
		r.status.repaired()
	}
	switch {
	case o.result == resultCompleted:
		r.schema.complete(began, p.byContent())
	case o.result == resultOpened:
		r.schema.open()
	case p.phase != phaseWatch, o.result == resultDemanded, o.result == resultHeld:
	case o.result != resultEnded:
		r.schema.broke(r.status.lastContact(), true)
	case o.early:
		r.schema.broke(o.now, false)
	}
}

// wait is how long to wait before the next step. What a gate holds until the
// server's Retry-After is over does not wait besides.
func (r *Reflector[T]) wait(d decision, now time.Time) time.Duration {
	if d.atLeast > 0 && !r.heldUntil(now).IsZero() {
		return 0
	}
	wait := d.pause(r.random())
	if asked := min(d.atLeast, longestRetryAfter); wait < asked {
		wait = asked + time.Duration(r.random()*float64(asked)/10)
	}
	return wait
}

// failed is the outcome of err.
func failed(err error, continued bool) outcome {
	o := outcome{err: err, continued: continued}
	o.result, o.retryAfter = classify(err)
	return o
}

// delta is item as a change of this scope.
func (r *Reflector[T]) delta(typ DeltaType, item Item[T]) Delta[T] {
	d := Delta[T]{
		Type: typ, Key: item.Key, Scope: r.id, Object: item.Object,
		UID: item.UID, Version: ParseVersion(item.ResourceVersion), Err: item.Err, Metadata: item.Metadata,
		Bytes: item.Bytes, original: item.original,
	}
	if typ == Deleted && item.Err != nil {
		// What could not be read is gone: that much is sure.
		d.Err, d.FinalStateUnknown = nil, true
	}
	return d
}

// watchTimeout is a random time to ask for.
func (r *Reflector[T]) watchTimeout() time.Duration {
	return shortestWatch + time.Duration(r.random()*float64(longestWatch-shortestWatch))
}

func (r *Reflector[T]) watchOptions(p progress) WatchOptions {
	return WatchOptions{ResourceVersion: p.last, Timeout: r.watchTimeout()}
}

// deltaType of a frame that carries an object.
func deltaType(f FrameType) (DeltaType, bool) {
	switch f {
	case FrameAdded:
		return Added, true
	case FrameModified:
		return Updated, true
	case FrameDeleted:
		return Deleted, true
	}
	return "", false
}
