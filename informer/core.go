// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/headroom"
	"github.com/flyball-dev/flyball/informer/internal/mutation"
	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/taskgroup"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/kube"
)

// core is the one informer of a kind, shared by its handles: a Reflector per
// scope feeds the DeltaFIFO; dispatch pops batches, stores them, and passes
// them to the listeners. It ends with its last handle.
type core struct {
	upstream
	opts    Options
	log     logr.Logger
	shared  bool          // a factory runs it
	ended   chan struct{} // closed when Run has ended
	fifo    *store.DeltaFIFO
	indexer *store.Indexer
	group   taskgroup.Group
	guard   *mutation.Guard  // nil: off
	memory  *headroom.Budget // nil: no bound
	packing packing          // empty: objects are held decoded

	follow     func(selector string) *SharedInformer[*metav1.PartialObjectMetadata] // nil: not possible
	forget     func()                                                               // called when the last handle is released
	closeIdle  func()                                                               // frees connections after Run
	membership membership
	joined     atomic.Int64 // handlers so far
	storing    *taskProbe   // of dispatch
	writes     ownWrites
	auditor    auditor
	projection projection
	narrowed   func(*fields.Set) // called with each set of fields that is not everything; nil: nobody asks
	refusals   refusals
	misuses    misuses // of running scopes
	usage      usage
	owners     restclient.Owners
	divider    divider

	critical critical
	opener   opener
	settings settings
}

// critical is held while changes go into the Indexer and to the backlogs, and while scopes begin
// and end, so that every handler sees them in the order in which they were stored. Other locks
// are taken inside it, never the other way round. Methods whose names end in Locked need it held,
// and the others take it.
type critical struct {
	sync.Mutex
	scopes   scopeTable
	handles  []*handle
	handlers handlers
	waits    []*syncWait
	over     bool          // Run has ended
	closed   bool          // the last handle was released
	sim      simhook.Hooks // of Run; nil: none
	recorded recorded
	turned   chan struct{} // closed when scopes are turned or synced; nil: nobody waits
}

func newCore(object reflect.Type, kind schema.GroupVersionKind, opts Options, lw func(listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error)) *core {
	c := &core{
		upstream:  newUpstream(object, kind, lw),
		opts:      opts,
		log:       textlog.Throttled(opts.Logger).WithValues("kind", kind.Kind),
		ended:     make(chan struct{}),
		indexer:   store.NewIndexer(kind),
		closeIdle: func() {},
		forget:    func() {},
	}
	c.fifo = store.NewDeltaFIFO(c.indexer)
	c.usage.log = c.log
	c.settings.setDefaults(opts, c.log, c.errorf)
	c.kindless = c.settings.omitsKind
	c.projection.begin()
	c.critical.scopes = newScopeTable()
	c.critical.handlers.fifo, c.critical.handlers.indexer = c.fifo, c.indexer
	c.critical.recorded = recorded{indexer: c.indexer, scopes: &c.critical.scopes, source: func() recording.Source {
		s := recording.Source{Kind: c.gvk(), Metadata: restclient.OfMetadata(c.object)}
		if namespaced, known := c.namespaced(); known {
			s.Namespaced, s.Resource = namespaced, c.resource().Resource
		}
		return s
	}}
	c.storing = c.membership.take(newTaskProbe("store a batch"))
	c.writes.begin(c)
	c.auditor.core = c
	c.refusals.settings, c.refusals.packing, c.refusals.indexer = &c.settings, &c.packing, c.indexer
	c.refusals.group, c.refusals.log = &c.group, c.log
	c.refusals.store = func(apply func() ([]store.Change, error)) []store.Change {
		return c.store(store.Batch{}, false, apply)
	}
	_ = c.group.Go(c.dispatch)
	detector := opts.detector
	if detector == nil {
		if detector = mutation.New(opts.DetectMutations, opts.Logger); detector != nil {
			_ = c.group.Go(detector.Run)
		}
	}
	c.guard = mutation.NewGuard(detector, c.gvk, c.indexer)
	c.refusals.guard = c.guard
	c.divider.begin()
	c.divider.upstream, c.divider.log, c.divider.ended = &c.upstream, c.log, c.ended
	c.divider.turned, c.divider.part = c.critical.whenTurned, c.critical.anyPart
	c.divider.turn, c.divider.dropped = c.divide, c.dropRetired
	c.opener = opener{
		upstream: &c.upstream, opts: &c.opts, log: c.log, table: &c.critical.scopes, fifo: c.fifo, indexer: c.indexer,
		group: &c.group, settings: &c.settings, projection: &c.projection, packing: &c.packing,
		membership: &c.membership, misuses: &c.misuses, guard: c.guard, place: c.place,
		redeliver: func(w *watched) { redeliver(c, w) },
		divider:   &c.divider,
	}
	return c
}

// end records that the informer will never run.
func (c *core) end() {
	c.group.End()
	c.finish()
}

// finish tells all handles that nothing new will be stored.
func (c *core) finish() {
	c.writes.settler.End()
	c.critical.Lock()
	defer c.critical.Unlock()
	if c.critical.over {
		return
	}
	c.critical.over = true
	close(c.ended)
	for _, h := range c.critical.handles {
		close(h.ended)
	}
}

// run runs the Reflectors, handlers and dispatch, including those that join
// later, until ctx ends.
func (c *core) run(ctx context.Context) error {
	c.settings.setStarted()
	if c.divider.start() {
		_ = c.group.Go(c.divider.Run) // it has not begun
	}
	c.critical.notify()
	c.critical.setHooks(simhook.Of(ctx))
	if err := c.settings.misuse(); err != nil {
		return err
	}
	if c.guard != nil {
		defer c.guard.Leave()
	}
	defer recording.Of(ctx).Join(func(w *recording.Window) {
		c.critical.Lock()
		defer c.critical.Unlock()
		c.critical.recorded.beginLocked(w)
	})()
	return c.group.Run(logr.NewContext(ctx, c.log))
}

// snapshot uses no lock that is held while user code runs.
func (c *core) snapshot() state.Informer {
	s := c.indexer.Snapshot()
	s.Waiting = c.fifo.Len()
	s.Fields = c.projection.current().set.Paths()
	s.Awaiting += c.writes.settler.Len()
	if p := c.packing.Load(); p != nil {
		stats := p.Stats()
		s.Opened, s.Hot, s.PackedBecause = stats.Decoded, stats.Hot, c.packing.reason()
	}
	if c.guard != nil {
		s.Mutations = c.guard.Found()
	}
	s.Division = c.divider.state()
	waiting := c.divider.undecided()
	s.Synced, s.Scopes = len(waiting) == 0, waiting
	scopes, choices := c.membership.shown()
	for _, f := range choices {
		current := f.state(f.clusterWide, f.known)
		s.Synced = s.Synced && current.Synced
		s.Scopes = append(s.Scopes, current)
	}
	quarantine := c.indexer.QuarantineByScope()
	for _, w := range scopes {
		current := withQuarantine(w.reflector.State(), quarantine[w.id])
		current.Synced = w.synced.Load()
		s.Synced = s.Synced && current.Synced
		s.Scopes = append(s.Scopes, current)
	}
	_, members := c.membership.all()
	for _, m := range members {
		s.Handlers = append(s.Handlers, m.Snapshot())
	}
	s.UnusedSince = c.usage.unusedSince(time.Now(), !s.Synced || len(members) > 0, c.joined.Load())
	s.Scans = c.usage.scans()
	return s
}

// simulatedIn returns the keys of the objects of scopes, if there is a simulation.
func (c *core) simulatedIn(scopes []*watched) (keys []kube.Key) {
	if c.critical.sim == nil {
		return nil
	}
	for _, w := range scopes {
		for key := range c.indexer.KnownIn(w.id) {
			keys = append(keys, key)
		}
	}
	return keys
}

// reportGoneLocked reports those of keys that are not held any more to the simulation.
func (c *core) reportGoneLocked(keys []kube.Key) {
	var gone []store.Change
	for _, key := range keys {
		if _, scopes, _ := c.indexer.Get(key); scopes.Empty() {
			gone = append(gone, store.Change{Key: key})
		}
	}
	if len(gone) > 0 {
		c.reportStoredLocked(gone, false)
	}
}

// reportStoredLocked reports a batch to the simulation, if there is one: each change, the last
// with the version up to which the store is complete. A batch without changes
// is one such note.
func (c *core) reportStoredLocked(changes []store.Change, own bool) {
	reached, whole := c.critical.scopes.reached(c.indexer), true
	for w := range c.critical.scopes.all() {
		whole = whole && w.scope == listwatch.Scope{}
		if !w.scope.Division.Everything() {
			reached = 0 // a shard that is gained may be listed from an older state
		}
	}
	batch := simhook.Note{
		What: simhook.Stored, Kind: c.gvk().GroupKind().String(), Name: c.object.String(),
		Reached: uint64(reached), Own: own, Whole: whole,
	}
	if len(changes) == 0 {
		c.critical.sim.Note(batch)
	}
	for i := range changes {
		n, change := batch, &changes[i]
		n.Key, n.Quiet, n.Count = change.Key.String(), change.Same || change.Resync, len(changes)-1-i
		switch {
		case change.Trouble != nil && change.Trouble.Is != nil:
			n.UID, n.Version = string(change.Trouble.Is.UID), uint64(change.Trouble.Is.Version)
		case !change.After.Empty() && !base.IsNil(change.New):
			n.UID, n.Version = string(change.NewUID), uint64(kube.ParseVersion(change.New.GetResourceVersion()))
		}
		c.critical.sim.Note(n)
	}
}

// showLocked updates the membership with the present scopes and namespace choices.
func (c *core) showLocked() {
	scopes := make([]scopeView, 0, len(c.critical.scopes.byScope))
	for w := range c.critical.scopes.all() {
		scopes = append(scopes, scopeView{w, w.reflector})
	}
	var choices []choice
	for _, h := range c.critical.handles {
		for _, f := range h.follows {
			choices = append(choices, choice{f, h.clusterWide, f.known})
		}
	}
	c.membership.show(scopes, choices)
}

func (c *core) progress() Progress {
	p := Progress{Kind: c.gvk()}
	hands, members := c.membership.all()
	for _, h := range hands {
		if t := h.task(); t.Begun > 0 {
			p.Tasks = append(p.Tasks, t)
		}
	}
	for _, m := range members {
		p.Handlers = append(p.Handlers, m.Snapshot())
	}
	return p
}

func (c *critical) setHooks(sim simhook.Hooks) {
	c.Lock()
	defer c.Unlock()
	c.sim = sim
}

func (c *critical) watchedNow() []*watched {
	c.Lock()
	defer c.Unlock()
	return slices.AppendSeq(make([]*watched, 0, len(c.scopes.byScope)), c.scopes.all())
}

// reflectorOf returns the Reflector of w, or nil if the scope has ended.
func (c *critical) reflectorOf(w *watched) *reflector.Reflector {
	c.Lock()
	defer c.Unlock()
	return w.reflector
}

func (c *critical) any(is func(*handle) bool) bool {
	c.Lock()
	defer c.Unlock()
	return slices.ContainsFunc(c.handles, is)
}

// assume makes a handle that assumes otherwise assume it from now on, so that no other scope plans
// for it too, and returns what to plan. Nil: there is none.
func (c *critical) assume(clusterWide bool) (h *handle, plain []Scope) {
	c.Lock()
	defer c.Unlock()
	i := slices.IndexFunc(c.handles, func(h *handle) bool { return h.asked != nil && h.clusterWide != clusterWide })
	if i < 0 {
		return nil, nil
	}
	h = c.handles[i]
	h.clusterWide, h.replans = clusterWide, true
	plain, _ = h.chosenOf(h.asked)
	return h, plain
}

// syncWait closes done when each handle in missing is synced or released.
type syncWait struct {
	missing map[*handle]bool
	done    chan struct{}
}

func (c *critical) syncedLocked(scope base.ScopeID) {
	if w := c.scopes.at(scope); w != nil {
		w.synced.Store(true)
		c.notifySyncedLocked()
	}
}

// notifySyncedLocked notifies the handles that are now synced, their handlers, and
// their waiters.
func (c *critical) notifySyncedLocked() {
	for _, h := range c.handles {
		if !h.settled && h.isSynced() {
			h.settled = true
			close(h.synced)
		}
	}
	if c.turned != nil {
		close(c.turned)
		c.turned = nil
	}
	c.handlers.markSynced()
	c.waits = slices.DeleteFunc(c.waits, func(w *syncWait) bool {
		maps.DeleteFunc(w.missing, func(h *handle, _ bool) bool { return h.settled || h.released })
		if len(w.missing) == 0 {
			close(w.done)
		}
		return len(w.missing) == 0
	})
}

// allSynced is closed when the present handles are synced or released.
func (c *critical) allSynced() <-chan struct{} {
	c.Lock()
	defer c.Unlock()
	missing := make(map[*handle]bool)
	for _, h := range c.handles {
		if h.isAwaited() {
			missing[h] = true
		}
	}
	for _, w := range c.waits {
		if maps.Equal(w.missing, missing) {
			return w.done
		}
	}
	w := &syncWait{missing: missing, done: make(chan struct{})}
	if len(missing) == 0 {
		close(w.done)
	} else {
		c.waits = append(c.waits, w)
	}
	return w.done
}

// misusedBy returns why one of the handles cannot sync, or what is closed when there may be a
// reason.
func (c *critical) misusedBy(misuses *misuses, is func(*handle) bool) (changed <-chan struct{}, err error) {
	noted, changed := misuses.so()
	if !noted {
		return changed, nil
	}
	var scopes []scopeView
	c.Lock()
	for _, h := range c.handles {
		if !is(h) {
			continue
		}
		if h.clusterWide && len(h.follows) > 0 {
			err = errScopeMisused // namespaces cannot be chosen for it
		}
		for _, w := range h.holds {
			if !w.synced.Load() {
				scopes = append(scopes, scopeView{w, w.reflector})
			}
		}
	}
	c.Unlock()
	if slices.ContainsFunc(scopes, func(s scopeView) bool { return s.reflector.State().State == state.Misuse }) {
		err = errScopeMisused
	}
	return changed, err
}

// whenTurned returns what is closed when scopes are turned or synced.
func (c *critical) whenTurned() <-chan struct{} {
	c.Lock()
	defer c.Unlock()
	if c.turned == nil {
		c.turned = make(chan struct{})
	}
	return c.turned
}

// notify notifies who waits for scopes, or for the division.
func (c *critical) notify() {
	c.Lock()
	defer c.Unlock()
	c.notifySyncedLocked()
}
