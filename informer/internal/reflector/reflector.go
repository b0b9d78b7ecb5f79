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
	"github.com/flyball-dev/flyball/informer/internal/headroom"
	"github.com/flyball-dev/flyball/informer/internal/pacing"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/schemas"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/kube"
)

const (
	DefaultPageSize = 500
	// initialWithin bounds the pauses of a streaming list, foreignWithin the
	// first pause of a source that may not support streaming lists.
	initialWithin, foreignWithin = 30 * time.Second, 10 * time.Second

	// earlyEnd is how long before its timeout a stream must end to count as
	// early: the drift of two clocks in ten minutes. An early end mistaken for
	// the timeout would hide a schema change.
	earlyEnd = 500 * time.Millisecond
)

// sink receives the Reflector's output: the DeltaFIFO.
type sink interface {
	Push(store.Delta)
	Bookmark(base.ScopeID, kube.Version)
	replace(base.ScopeID) replacement
	Newest(base.ScopeID, kube.Key) kube.Version
	// Present yields what the scope holds after everything put in so far.
	Present(base.ScopeID) iter.Seq[store.Delta]
}

type replacement interface {
	Add(store.Delta)
	Remove(store.Delta)
	Keep(kube.Key)
	Unreadable()
	Heap() int64
	Pack()
	Epoch()
	Recompare()
	Undone(kube.Version) []kube.Key
	Commit(kube.Version)
	Abort()
}

// FIFOSink makes a DeltaFIFO a sink.
type FIFOSink struct{ *store.DeltaFIFO }

func (s FIFOSink) replace(scope base.ScopeID) replacement { return s.Replace(scope) }

// Reflector lists and watches one scope of a kind and pushes the changes into
// the DeltaFIFO, until its Run ends. steps.Next decides each step.
type Reflector struct {
	lw      listwatch.ListerWatcher[kube.Object]
	id      base.ScopeID
	scope   listwatch.Scope
	Objects string // type of the objects
	sink    sink
	opts    Options
	random  func() float64
	sim     simhook.Hooks
	Status  reflectorStatus
	order   streamOrder        // used only by Run
	server  *restclient.Server // whose gate requests pass; nil: no gate
	kind    schema.GroupVersionKind
	size    int // objects of the scope, by what the stream has sent
	room    *headroom.Claim
	// Relieve packs objects, because a list that needs so many bytes does not fit, and reports
	// whether that may have freed memory. Nil: nothing can be packed.
	Relieve func(needs int64) bool
	kept    int64 // memory of the last list
	Tee     *tee  // the sink, with taps
	Wants   demands
	garbled bool           // a watch had garbled frames, and no list has made up for them
	madeUp  time.Time      // when such a list was last demanded
	undone  int            // consecutive lists with objects in older versions; used only by Run
	Schema  *schemas.Scope // nil: schema not observed
	newest  shown          // the newest event or object seen; used only by Run
	broken  bool           // the connection broke since the last watch was opened; used only by Run

	// Recall reads key as it was at a version, from the server's present history; 0: it was not
	// there. Nil: it cannot.
	Recall func(ctx context.Context, key kube.Key, at string) (kube.Version, error)

	Borrow  func(from kube.Version) *Tap // returns a watch with the full objects, or nil
	follows atomic.Pointer[Tap]          // feeds the scope in place of its own watch
}

// Options configure one Reflector.
type Options struct {
	Logger        logr.Logger // if the context of Run has none
	PageSize      int64       // of paged lists; 0: 500
	PagedLists    bool        // never use streaming lists
	ListFromCache bool        // the first list may come from the server's cache
}

// New returns the Reflector of one scope. It starts nothing.
func New(lw listwatch.ListerWatcher[kube.Object], scope listwatch.Scope, id base.ScopeID, fifo *store.DeltaFIFO, opts Options) *Reflector {
	return newInto(lw, scope, id, FIFOSink{fifo}, opts)
}

func newInto(lw listwatch.ListerWatcher[kube.Object], scope listwatch.Scope, id base.ScopeID, into sink, opts Options) *Reflector {
	opts.PageSize = cmp.Or(opts.PageSize, DefaultPageSize)
	tee := newTee(into)
	r := &Reflector{lw: lw, id: id, sink: tee, Tee: tee, opts: opts, random: rand.Float64}
	r.Status.begin(scope)
	r.scope = scope
	return r
}

// State returns the state of the Reflector, or of the one whose watch it
// shares.
func (r *Reflector) State() state.Scope {
	own := r.Status.snapshot()
	if t := r.follows.Load(); t != nil {
		return t.shared(own)
	}
	return own
}

// IsLive reports whether the State is state.Live, at less cost.
func (r *Reflector) IsLive() bool {
	if t := r.follows.Load(); t != nil {
		return t.State().State == state.Live
	}
	return r.Status.isLive()
}

// Run lists and watches until ctx ends, retries all failures, and returns nil.
// It starts no goroutine.
func (r *Reflector) Run(ctx context.Context) error {
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
	var open *session
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
			p = r.withSharedMemory(p, time.Now())
			open, o = r.step(ctx, p)
		}
		if ctx.Err() != nil {
			break
		}
		if errors.Is(o.Err, errTapped) {
			continue // continue where the stream was
		}
		o.Now = time.Now()
		r.record(p, o, began)
		r.recall(ctx, p, o)
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

// step performs the next step of p once the gate admits it.
func (r *Reflector) step(ctx context.Context, p steps.Progress) (_ *session, o steps.Outcome) {
	if r.sim != nil {
		r.sim.Step(ctx, "ask", r.Name())
	}
	if p.Phase != steps.PhaseWatch {
		defer func() { r.room.Done(o.Result == steps.ResultCompleted) }()
		if r.roomFor(ctx, p) != nil {
			return nil, steps.Outcome{}
		}
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

// record records how a step went in the status and the schema watch.
func (r *Reflector) record(p steps.Progress, o steps.Outcome, began time.Time) {
	if o.Result == steps.ResultCompleted && p.Repair {
		r.Status.repaired()
	}
	switch {
	case o.Result == steps.ResultCompleted:
		r.schemas(func(s *schemas.Scope) { s.Complete(began, p.ByContent()) })
	case o.Result == steps.ResultOpened:
		r.schemas((*schemas.Scope).Open)
	case p.Phase != steps.PhaseWatch, o.Result == steps.ResultDemanded, o.Result == steps.ResultHeld:
	case o.Result != steps.ResultEnded:
		r.schemas(func(s *schemas.Scope) { s.Broke(r.Status.lastContact(), true) })
	case o.Early:
		r.schemas(func(s *schemas.Scope) { s.Broke(o.Now, false) })
	}
}

// schemas calls f for the scope and for those that share its watch.
func (r *Reflector) schemas(f func(*schemas.Scope)) {
	f(r.Schema)
	r.Tee.each(func(t *Tap) { f(t.Schema) })
}

// wait returns the pause before the next step. A step that the gate holds until
// the server's Retry-After has no further pause.
func (r *Reflector) wait(d steps.Decision, now time.Time) time.Duration {
	if d.AtLeast > 0 && !r.heldUntil(now).IsZero() {
		return 0
	}
	wait := d.Pause(r.random())
	if asked := min(d.AtLeast, pacing.LongestRetryAfter); wait < asked {
		wait = asked + time.Duration(r.random()*float64(asked)/10)
	}
	return wait
}

// failed returns the outcome of err.
func failed(err error, continued bool) steps.Outcome {
	o := steps.Outcome{Err: err, Continued: continued}
	o.Result, o.RetryAfter = steps.Classify(err)
	return o
}

// delta returns item as a change of this scope.
func (r *Reflector) delta(typ store.DeltaType, item listwatch.Item[kube.Object]) store.Delta {
	if v := kube.ParseVersion(item.ResourceVersion); v >= r.newest.version {
		r.newest = shown{key: item.Key, version: v, ended: typ == store.Deleted}
	}
	d := store.Delta{
		Type: typ, Key: item.Key, Scope: r.id, Object: item.Object,
		UID: item.UID, Version: kube.ParseVersion(item.ResourceVersion), Err: item.Err, Metadata: item.Metadata,
		Bytes: item.Bytes, Heap: heapOf(item), Refused: item.Refused,
	}
	if typ == store.Deleted && item.Err != nil {
		// Unreadable or not, it is gone.
		d.Err, d.FinalStateUnknown = nil, true
	}
	return d
}

// watchTimeout returns a random timeout to ask for.
func (r *Reflector) watchTimeout() time.Duration {
	return steps.ShortestWatch + time.Duration(r.random()*float64(steps.LongestWatch-steps.ShortestWatch))
}

func (r *Reflector) watchOptions(p steps.Progress) listwatch.WatchOptions {
	return listwatch.WatchOptions{ResourceVersion: p.Last, Timeout: r.watchTimeout()}
}

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

// Auditable reports whether the scope has its own watch and that is open, or
// lists replace it.
func (r *Reflector) Auditable() bool {
	current := r.Status.snapshot().State
	return r.follows.Load() == nil && (current == state.Live || current == state.DecodingErrors || r.Status.byLists.Load())
}
