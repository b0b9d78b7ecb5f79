// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/informer/internal/mutation"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/stacks"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/kube"
)

// Listener delivers the events of one handler, from its own goroutine and
// backlog.
type Listener struct {
	Options
	handle    func(kube.Event[kube.Object])
	woken     *sync.Cond // on mu: something waits, or the run must end
	ready     chan struct{}
	made      time.Time
	goroutine atomic.Uint64 // that calls the handler
	mu        struct {
		sync.Mutex
		waiting   Backlog
		pacing    pacing
		alarm     *time.Timer // watches for long calls; nil: not running
		armed     bool
		filter    *store.ScopeSet // the scopes that the handler sees; nil: all
		marked    bool            // the initial objects are in the backlog
		synced    bool            // the handler has returned from them
		removed   bool
		delivered uint64
		panics    uint64
	}
}

// Options of a Listener.
type Options struct {
	ID   int    // of the handler, as in Delta.Handler
	Name string // in logs and snapshots
	Log  logr.Logger
	Kind func() schema.GroupVersionKind
	// Guard compares the objects that are given. Nil: none.
	Guard *mutation.Guard
	// EveryEvent delivers each event, so keys do not bound the backlog.
	EveryEvent bool
	// BacklogBytes bounds the backlog if every event is delivered. 0: 64 MiB. Negative: no bound.
	BacklogBytes int64
	// Relists redelivers objects that a list has unchanged.
	Relists bool
	// Undecodable delivers undecodable objects too.
	Undecodable bool
}

// New returns a Listener that calls handle with what filter shows. Run delivers.
func New(handle func(kube.Event[kube.Object]), opts Options, filter *store.ScopeSet) *Listener {
	opts.BacklogBytes = cmp.Or(opts.BacklogBytes, defaultBacklogBytes)
	l := &Listener{Options: opts, handle: handle, ready: make(chan struct{}), made: time.Now()}
	l.woken = sync.NewCond(&l.mu)
	l.mu.filter = filter
	l.mu.waiting = NewBacklog(opts)
	return l
}

// Push adds the changes that the handler sees. It never blocks. shared has the
// same changes; nil: they are for this handler only.
func (l *Listener) Push(changes []store.Change, shared *Shared) {
	if len(changes) == 0 && (shared == nil || shared.merged == 0) {
		return
	}
	n, over := l.add(changes, shared)
	if n > 0 {
		textlog.Warn(l.Log, nil, "A handler falls behind; shorten its calls, or let it receive states instead of every event", "handler", l.Name, "backlog", n)
	}
	if over > 0 {
		textlog.Warn(l.Log, nil, "The backlog of a handler has reached its bound; merging consecutive updates of an object until it shrinks", "handler", l.Name, "bytes", over)
	}
}

// add returns the size of the backlog in events and in bytes if it should be
// logged, else 0.
func (l *Listener) add(changes []store.Change, shared *Shared) (behind int, over int64) {
	now := time.Since(l.made)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.removed {
		return 0, 0
	}
	l.mu.waiting.Clock(millis(now))
	if !l.mu.waiting.Join(shared, l.mu.filter, !l.mu.marked) {
		for i := range changes {
			if c := &changes[i]; c.Resync && c.Handler != l.ID {
				continue
			}
			l.mu.waiting.Push(changes[i], l.mu.filter, !l.mu.marked)
		}
	}
	l.woken.Signal()
	if n := l.mu.waiting.Len(); l.EveryEvent && l.mu.pacing.behind(n, l.oldestLocked(now)) {
		behind = n
	}
	if bytes, merged := l.mu.waiting.Size(); l.mu.pacing.over(merged, now) {
		over = bytes
	}
	return behind, over
}

// oldestLocked returns how long the first waiting event has waited.
func (l *Listener) oldestLocked(now time.Duration) time.Duration {
	at, ok := l.mu.waiting.Oldest()
	if !ok {
		return 0
	}
	return ageOf(at, now)
}

// Look changes the handler's filter and delivers what appears and disappears.
func (l *Listener) Look(filter *store.ScopeSet, differently iter.Seq[store.Change]) {
	l.setFilter(filter)
	l.giveAll(differently)
}

// giveAll adds changes in parts, so that the handler can be called meanwhile.
func (l *Listener) giveAll(changes iter.Seq[store.Change]) {
	var batch []store.Change
	for c := range changes {
		if batch = append(batch, c); len(batch) == 256 {
			l.give(batch)
			batch = batch[:0]
		}
	}
	l.give(batch)
}

func (l *Listener) setFilter(filter *store.ScopeSet) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.filter = filter
}

// give adds changes regardless of the filter.
func (l *Listener) give(changes []store.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.removed {
		return
	}
	l.mu.waiting.Clock(millis(time.Since(l.made)))
	for _, c := range changes {
		l.mu.waiting.Push(c, nil, !l.mu.marked)
	}
	l.woken.Signal()
}

// Mark records that all initial objects are in the backlog: synced is closed
// when the handler has returned from them. It may be called twice.
func (l *Listener) Mark() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.marked {
		return
	}
	l.mu.marked = true
	if !l.mu.removed {
		l.mu.waiting.Mark()
		l.woken.Signal()
	}
}

// Run delivers events until ctx ends or the listener is removed, and returns
// nil.
func (l *Listener) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.woken.Broadcast()
	})()
	defer l.watch()()
	l.goroutine.Store(uint64(stacks.Self()))
	sim := simhook.Of(ctx)
	var buf [3]kube.Event[kube.Object]
	for {
		events, marked, ok := l.next(ctx, buf[:0])
		if !ok {
			return nil
		}
		for i := range events {
			e := events[i]
			if sim != nil && !l.atOnesOwnInstant(ctx, sim, e) {
				return nil
			}
			if i > 0 && !l.begin(e.Key) || !l.call(e) {
				return nil
			}
			if sim != nil {
				l.reportHandled(sim, e)
			}
		}
		clear(buf[:])
		if marked {
			close(l.ready)
		}
	}
}

// next blocks for the next events and begins the call of the first, or for the
// mark. Not ok: the run must end.
func (l *Listener) next(ctx context.Context, buf []kube.Event[kube.Object]) (events []kube.Event[kube.Object], marked, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Since(l.made) // one clock reading for the end of a call and the start of the next
	l.mu.pacing.end(now)
	for {
		if l.mu.removed || ctx.Err() != nil {
			return nil, false, false
		}
		events, marked = l.mu.waiting.Take(buf)
		if marked {
			l.mu.synced = true
		}
		if len(events) > 0 {
			l.beginLocked(events[0].Key, now)
		}
		if marked || len(events) > 0 {
			return events, marked, true
		}
		l.woken.Wait()
		now = time.Since(l.made)
	}
}

// call passes one event to the handler. A panic affects only that event. Not
// ok: the listener was removed.
func (l *Listener) call(e kube.Event[kube.Object]) (ok bool) {
	defer func() {
		p := recover()
		if ok {
			return
		}
		log := l.Log.WithValues("handler", l.Name, "key", e.Key.String(), "event", e.Type.String())
		stack := string(debug.Stack())
		l.panicked()
		if p == nil { // a Goexit cannot be stopped
			l.Remove()
			log.Error(errors.New("runtime.Goexit"), "A handler called runtime.Goexit; it receives no more events", "stack", stack)
			return
		}
		ok = true
		log.Error(fmt.Errorf("panic: %v", p), "A handler panicked; it continues with the next event", "stack", stack)
	}()
	e, err := Open(e)
	if err != nil {
		l.Log.Error(err, "Cannot open the packed object of an event; the handler does not receive it", "handler", l.Name, "key", e.Key.String())
		return true
	}
	if l.Guard != nil {
		v := l.Guard.BeginCall(l.Name, e.Old, e.New)
		defer l.Guard.EndCall(v)
	}
	l.handle(e)
	return true
}

// begin ends a call and begins the one for key. It returns false if the
// listener was removed.
func (l *Listener) begin(key kube.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.removed {
		return false
	}
	now := time.Since(l.made)
	l.mu.pacing.end(now)
	l.beginLocked(key, now)
	return true
}

func (l *Listener) beginLocked(key kube.Key, now time.Duration) {
	l.mu.delivered++
	l.mu.waiting.Begin()
	l.mu.pacing.begin(key, now)
	if !l.mu.armed && l.mu.alarm != nil {
		l.mu.armed = true
		l.mu.alarm.Reset(longCall)
	}
}

// watch logs calls that do not end. The alarm is set only by the first call
// after it fired, so that calls cost nothing extra.
func (l *Listener) watch() (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.alarm = time.AfterFunc(longCall, l.rung)
	l.mu.armed = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.mu.alarm.Stop()
		l.mu.alarm = nil
	}
}

// rung checks the present call.
func (l *Listener) rung() {
	l.mu.Lock()
	now := time.Since(l.made)
	report, again := l.mu.pacing.overrun(now)
	key, running, backlog := l.mu.pacing.key, l.mu.pacing.running(now), l.mu.waiting.Len()
	if l.mu.armed = again > 0 && l.mu.alarm != nil; l.mu.armed {
		l.mu.alarm.Reset(again)
	}
	l.mu.Unlock()
	if report {
		textlog.Warn(l.Log, nil, "A handler has not returned from a call; move long work to a queue, and bound its waits",
			"handler", l.Name, "key", key.String(), "running", running.String(), "backlog", backlog)
	}
}

func (l *Listener) panicked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.panics++
}

// Remove ends the run: no call begins after it returns.
func (l *Listener) Remove() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.removed {
		return
	}
	l.mu.removed = true
	l.mu.pacing.calling = false   // a running call is no longer observed
	l.mu.waiting = &eventStream{} // frees the waiting events
	l.woken.Broadcast()
}

// Synced is closed when the handler has returned from the initial objects.
func (l *Listener) Synced() <-chan struct{} { return l.ready }

// Snapshot returns the state of the handler.
func (l *Listener) Snapshot() state.Handler {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Since(l.made)
	running := l.mu.pacing.running(now)
	bytes, merged := l.mu.waiting.Size()
	return state.Handler{
		Name: l.Name, Synced: l.mu.synced, Backlog: l.mu.waiting.Len(),
		BacklogBytes: bytes, Merged: merged,
		Delivered: l.mu.delivered, Panics: l.mu.panics,
		Running: running, Oldest: l.oldestLocked(now), Longest: max(l.mu.pacing.longest, running),
		Goroutine: l.goroutine.Load(),
	}
}

// GiveAgain redelivers the objects of scope, if the handler sees it.
func (l *Listener) GiveAgain(scope base.ScopeID, unchanged iter.Seq[store.Change]) {
	l.mu.Lock()
	seen := l.mu.filter == nil || l.mu.filter.Has(scope)
	l.mu.Unlock()
	if seen {
		l.giveAll(unchanged)
	}
}

// atOnesOwnInstant waits until the simulation is otherwise idle, and reports e.
// It returns false if the run must end.
func (l *Listener) atOnesOwnInstant(ctx context.Context, sim simhook.Hooks, e kube.Event[kube.Object]) bool {
	sim.Step(ctx, simhook.Deliver, fmt.Sprintf("%s %d %s", l.Name, l.ID, e.Key))
	if ctx.Err() != nil {
		return false
	}
	n := l.simNote(simhook.Delivered, e)
	switch {
	case e.Type == kube.Deleted:
	case e.Undecodable != nil:
		n.UID, n.Version = string(e.Undecodable.UID), uint64(e.Undecodable.Version)
	case !base.IsNil(e.New):
		n.UID, n.Version = string(e.New.GetUID()), uint64(kube.ParseVersion(e.New.GetResourceVersion()))
	}
	sim.Note(n)
	return true
}

func (l *Listener) reportHandled(sim simhook.Hooks, e kube.Event[kube.Object]) {
	sim.Note(l.simNote(simhook.Handled, e))
}

func (l *Listener) simNote(what simhook.What, e kube.Event[kube.Object]) simhook.Note {
	return simhook.Note{What: what, Kind: l.Kind().GroupKind().String(), Name: l.Name, Key: e.Key.String(), Quiet: e.Resync, Count: l.ID}
}

// Open returns e with the objects that are packed in it.
func Open(e kube.Event[kube.Object]) (kube.Event[kube.Object], error) {
	var err error
	if compact.IsPacked(e.Old) {
		if e.Old, err = compact.Open(e.Old); err != nil {
			return e, err
		}
	}
	if compact.IsPacked(e.New) {
		e.New, err = compact.Open(e.New)
	}
	return e, err
}
