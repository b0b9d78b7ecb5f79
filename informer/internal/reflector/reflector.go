// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

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

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/gate"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/schemas"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/textlog"
)

const (
	DefaultPageSize = 500
	// initialWithin is how long a streaming list may pause. The first pause of a
	// source that may not know streaming lists is shorter.
	initialWithin, foreignWithin = 30 * time.Second, 10 * time.Second

	// earlyEnd is how long before its timeout the end of a stream needs a reason:
	// what two clocks differ by in ten minutes. An end that is taken for the
	// timeout hides a change of schema.
	earlyEnd = 500 * time.Millisecond
)

// sink is where a Reflector puts what it learns: the DeltaFIFO.
type sink[T base.Object] interface {
	Push(store.Delta[T])
	Bookmark(base.ScopeID, base.Version)
	replace(base.ScopeID) replacement[T]
	Newest(base.ScopeID, base.Key) base.Version
	// present is what the scope holds after all that was put in so far.
	Present(base.ScopeID) iter.Seq[store.Delta[T]]
}

// replacement collects one list.
type replacement[T base.Object] interface {
	Add(store.Delta[T])
	Remove(store.Delta[T])
	Keep(base.Key)
	Unreadable()
	Epoch()
	Recompare()
	Undone(base.Version) []base.Key
	Commit(base.Version)
	Abort()
}

// FIFOSink is a DeltaFIFO as a sink.
type FIFOSink[T base.Object] struct{ *store.DeltaFIFO[T] }

func (s FIFOSink[T]) replace(scope base.ScopeID) replacement[T] { return s.Replace(scope) }

// Reflector lists and watches one scope of a kind and pushes what changes into
// the DeltaFIFO, until its Run ends. What it does after each success and each
// failure is decided by steps.Next.
type Reflector[T base.Object] struct {
	lw      listwatch.ListerWatcher[T]
	id      base.ScopeID
	scope   base.WatchScope
	Objects string // their type
	sink    sink[T]
	opts    Options
	random  func() float64
	sim     simhook.Hooks // nil: none
	Status  reflectorStatus
	order   streamOrder        // used by Run alone
	server  *restclient.Server // whose gate the requests pass; nil: there is none
	kind    schema.GroupVersionKind
	size    int     // objects of the scope, as far as the stream has told
	Tee     *tee[T] // the sink, with a place for taps
	Wants   demands
	garbled bool           // frames of a watch were, and no list has made up for them
	madeUp  time.Time      // when one was wanted last
	undone  int            // lists in a row that had objects in older versions; used by Run alone
	Schema  *schemas.Scope // nil: nobody looks after it

	Borrow  func(from base.Version) *Tap // a watch that has the objects in full; nil: never one
	follows atomic.Pointer[Tap]          // what feeds the scope instead of a watch of its own
}

// Options of one Reflector.
type Options struct {
	Logger        logr.Logger // of a Run whose context has none
	PageSize      int64       // of paged lists; 0: 500
	PagedLists    bool        // no streaming lists
	ListFromCache bool        // the first list may be any state that the server has at hand
}

// New returns the reflector of one scope. It starts nothing.
func New[T base.Object](lw listwatch.ListerWatcher[T], scope base.WatchScope, id base.ScopeID, fifo *store.DeltaFIFO[T], opts Options) *Reflector[T] {
	return newInto(lw, scope, id, FIFOSink[T]{fifo}, opts)
}

func newInto[T base.Object](lw listwatch.ListerWatcher[T], scope base.WatchScope, id base.ScopeID, into sink[T], opts Options) *Reflector[T] {
	opts.PageSize = cmp.Or(opts.PageSize, DefaultPageSize)
	tee := newTee(into)
	r := &Reflector[T]{lw: lw, id: id, sink: tee, Tee: tee, opts: opts, random: rand.Float64}
	r.Status.begin(scope)
	r.scope = scope
	return r
}

// State says where the reflector stands, or the one whose watch it shares.
func (r *Reflector[T]) State() base.ScopeState {
	own := r.Status.snapshot()
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
	r.Status.logTo(textlog.Throttled(log))
	defer r.Status.Stopped()
	r.simulated(simhook.Of(ctx))

	r.Schema.Join()
	defer r.Schema.Leave()
	p := steps.Progress{Paged: r.opts.PagedLists, Foreign: r.server == nil}
	p.Phase = p.ListPhase(time.Now())
	var open *session[T]
	defer func() { open.close() }()
	defer func() { r.Tee.end(p.Last) }()
	for ctx.Err() == nil {
		if d := r.Wants.take(); d.Reason != "" {
			r.Status.demanded(d.Reason, p.Phase)
			p = p.Demanded(d, time.Now())
			open.close()
			open = nil
		}
		if open == nil {
			if after, followed := r.follow(ctx, p); followed {
				p = after
				continue
			}
		}
		r.Tee.adopt(ctx, r.id, p.Last)
		began := time.Now()
		var o steps.Outcome
		if open != nil && p.Phase == steps.PhaseWatch {
			r.Status.trying(p.Phase)
			over := r.Tee.during(open.cancel)
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
		if errors.Is(o.Err, errTapped) {
			continue // and on from where the stream was
		}
		o.Now = time.Now()
		r.note(p, o, began)
		d := steps.Next(p, o)
		if d.FellBack {
			r.fellBack(d.Next, o, cmp.Or(p.Probing, base.TextOf(o.Err)))
		}
		wait := r.wait(d, o.Now)
		r.Status.show(d, o, max(wait, r.heldUntil(o.Now).Sub(o.Now)))
		p = d.Next
		if !r.Tee.pause(ctx, wait, r.id, p.Last) {
			break
		}
	}
	return nil
}

// step asks the server for what p says, when the gate lets it.
func (r *Reflector[T]) step(ctx context.Context, p steps.Progress) (*session[T], steps.Outcome) {
	if r.sim != nil {
		r.sim.Step(ctx, "ask", r.Name())
	}
	ctx, pass := r.admitted(ctx, p)
	defer pass.Done()
	if ctx.Err() != nil {
		return nil, steps.Outcome{}
	}
	r.Status.trying(p.Phase)
	if p.Elsewhere {
		ctx = restclient.Elsewhere(ctx)
	}
	switch p.Phase {
	case steps.PhaseList:
		return nil, r.list(ctx, p, pass)
	case steps.PhaseStream:
		return r.stream(ctx, p)
	}
	return r.open(ctx, r.watchOptions(p))
}

// note tells those who look after the scope how a step went.
func (r *Reflector[T]) note(p steps.Progress, o steps.Outcome, began time.Time) {
	if o.Result == steps.ResultCompleted && p.Repair {
		r.Status.repaired()
	}
	switch {
	case o.Result == steps.ResultCompleted:
		r.Schema.Complete(began, p.ByContent())
	case o.Result == steps.ResultOpened:
		r.Schema.Open()
	case p.Phase != steps.PhaseWatch, o.Result == steps.ResultDemanded, o.Result == steps.ResultHeld:
	case o.Result != steps.ResultEnded:
		r.Schema.Broke(r.Status.lastContact(), true)
	case o.Early:
		r.Schema.Broke(o.Now, false)
	}
}

// wait is how long to wait before the next step. What a gate holds until the
// server's Retry-After is over does not wait besides.
func (r *Reflector[T]) wait(d steps.Decision, now time.Time) time.Duration {
	if d.AtLeast > 0 && !r.heldUntil(now).IsZero() {
		return 0
	}
	wait := d.Pause(r.random())
	if asked := min(d.AtLeast, gate.LongestRetryAfter); wait < asked {
		wait = asked + time.Duration(r.random()*float64(asked)/10)
	}
	return wait
}

// failed is the outcome of err.
func failed(err error, continued bool) steps.Outcome {
	o := steps.Outcome{Err: err, Continued: continued}
	o.Result, o.RetryAfter = steps.Classify(err)
	return o
}

// delta is item as a change of this scope.
func (r *Reflector[T]) delta(typ store.DeltaType, item listwatch.Item[T]) store.Delta[T] {
	d := store.Delta[T]{
		Type: typ, Key: item.Key, Scope: r.id, Object: item.Object,
		UID: item.UID, Version: base.ParseVersion(item.ResourceVersion), Err: item.Err, Metadata: item.Metadata,
		Bytes: item.Bytes, Refused: item.Refused,
	}
	if typ == store.Deleted && item.Err != nil {
		// What could not be read is gone: that much is sure.
		d.Err, d.FinalStateUnknown = nil, true
	}
	return d
}

// watchTimeout is a random time to ask for.
func (r *Reflector[T]) watchTimeout() time.Duration {
	return steps.ShortestWatch + time.Duration(r.random()*float64(steps.LongestWatch-steps.ShortestWatch))
}

func (r *Reflector[T]) watchOptions(p steps.Progress) listwatch.WatchOptions {
	return listwatch.WatchOptions{ResourceVersion: p.Last, Timeout: r.watchTimeout()}
}

// deltaType of a frame that carries an object.
func deltaType(f listwatch.FrameType) (store.DeltaType, bool) {
	switch f {
	case listwatch.FrameAdded:
		return store.Added, true
	case listwatch.FrameModified:
		return store.Updated, true
	case listwatch.FrameDeleted:
		return store.Deleted, true
	}
	return "", false
}

// Auditable: the scope has a watch of its own, and it is open, or lists stand in
// for it.
func (r *Reflector[T]) Auditable() bool {
	state := r.Status.snapshot().State
	return r.follows.Load() == nil && (state == base.StateLive || state == base.StateDecodingErrors || r.Status.byLists.Load())
}
