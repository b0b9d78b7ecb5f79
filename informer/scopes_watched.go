// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/informer/internal/feed"
	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/schemas"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/nursery"
	"github.com/flyball-dev/flyball/internal/sleep"
)

// scopesAtOnce is how many scopes begin or end in one critical section.
const scopesAtOnce = 256

// watched is one scope held by at least one handle, with its Reflector.
type watched struct {
	id        base.ScopeID
	scope     WatchScope
	matcher   base.Matcher
	reflector *reflector.Reflector
	member    *nursery.Member // the Reflector's run; nil: it never runs
	lw        ListerWatcher[Object]
	decoding  *taskProbe // calls of the transform
	holders   int
	kept      uint32 // generation of its objects, guarded by the core's critical section
	past      uint32 // no object of an earlier generation comes from it; as kept
	synced    atomic.Bool
	relists   atomic.Int64 // stored lists after the first
}

// quiet reports whether its Reflector has returned, or never runs.
func (w *watched) quiet() bool {
	if w.member == nil {
		return true
	}
	select {
	case <-w.member.Done():
		return true
	default:
		return false
	}
}

// findLocked returns the watched scopes, with new ones ready to be opened. On
// an error nothing changes.
func (c *core) findLocked(scopes []WatchScope) ([]*watched, error) {
	out := make([]*watched, 0, len(scopes))
	for _, s := range scopes {
		w := c.critical.scopes[s]
		if w == nil {
			m, err := base.NewMatcher(s)
			if err != nil {
				return nil, c.errorf("%w", err)
			}
			lw, err := c.newListerWatcher(s)
			if err != nil {
				return nil, c.errorf("watch %s: %w", s, err)
			}
			w = &watched{scope: s, matcher: m, lw: lw}
		}
		out = append(out, w)
	}
	return out, nil
}

// openLocked watches new scopes. It looks at each object and each other scope once, however
// many there are.
func (c *core) openLocked(scopes []*watched) {
	if len(scopes) == 0 {
		return
	}
	c.settings.setOpened() // the transform cannot change after this
	reclaimLocked(c)
	behind := behindLocked(c)
	opened := make(map[string][]*watched)
	for _, w := range scopes {
		prepareLocked(c, w, behind)
		opened[w.scope.Namespace] = append(opened[w.scope.Namespace], w)
	}
	lendLocked(c, opened)
	for _, w := range scopes {
		var err error
		if w.member, err = c.group.Spawn(w.reflector.Run); err != nil {
			w.reflector.Status.Stopped() // the run has ended already
		}
	}
}

// lendLocked lends what is stored to new scopes, which are given by namespace.
func lendLocked(c *core, opened map[string][]*watched) {
	changed := c.settings.transform() != nil // maybe the labels too
	c.indexer.Lend(func(key Key, obj Object) iter.Seq[base.ScopeID] {
		return func(yield func(base.ScopeID) bool) {
			for w := range inNamespace(opened, key.Namespace) {
				if w.surely(key, obj, changed) && !yield(w.id) {
					return
				}
			}
		}
	})
}

// inNamespace yields the scopes that can have objects of a namespace; empty: of no namespace,
// or of one that is not known.
func inNamespace(scopes map[string][]*watched, namespace string) iter.Seq[*watched] {
	return func(yield func(*watched) bool) {
		for _, at := range []string{"", namespace} {
			for _, w := range scopes[at] {
				if !yield(w) {
					return
				}
			}
			if namespace == "" {
				break
			}
		}
		if namespace != "" {
			return
		}
		for at, some := range scopes {
			for _, w := range some {
				if at != "" && !yield(w) {
					return
				}
			}
		}
	}
}

// prepareLocked makes the Reflector of a new scope.
func prepareLocked(c *core, w *watched, behind bool) {
	w.id = c.freeLocked()
	startPacking(c, w.lw)
	w.decoding = c.membership.take(newTaskProbe("transform an object " + w.scope.String()))
	lw := feed.ListerWatcher{
		From:      w.lw,
		Screen:    c.screen(w),
		Check:     func(ctx context.Context) error { return c.place(ctx, w.scope) },
		Begin:     passing(c, w.id),
		Report:    c.settings.reportError,
		Transform: c.settings.transform,
		Probe:     w.decoding,
		Pack:      c.packing.items(c.indexer),
	}
	w.reflector = reflector.New(lw, w.scope, w.id, c.fifo, c.opts.reflectorOptions(w.lw))
	w.reflector.Objects = c.object.String()
	w.reflector.At(w.lw)
	w.reflector.Status.Misused = c.misuses.note
	w.reflector.Schema = schemaOf(c, w)
	if c.auditList != nil {
		w.reflector.Recall = c.auditList.recall
	}
	w.reflector.Borrow = c.borrower(w.scope, w.id, w.reflector.Schema)
	w.lw = nil
	beginKept(c, w, behind)
	c.critical.scopes[w.scope] = w
	c.critical.byID[w.id] = w
	c.critical.within[w.scope.Namespace] = append(c.critical.within[w.scope.Namespace], w)
	c.fifo.Open(w.id)
	c.indexer.Open(w.id)
}

// schemaOf returns what observes the schema of a scope's objects, or nil.
func schemaOf(c *core, w *watched) *schemas.Scope {
	r := w.reflector
	gv := c.kind.GroupVersion()
	switch {
	case c.schemas == nil:
		return nil
	case restclient.OfMetadata(c.object):
		return c.schemas.BlindScope(gv, r.Name(), func() { redeliver(c, w) })
	}
	return c.schemas.Scope(gv, r.Name(), func() { r.Wants.Add(steps.Demand{Reason: steps.RelistSchema, Content: true}) })
}

// redeliver gives the objects of a scope to its handlers again, as a resync does.
func redeliver(c *core, w *watched) {
	c.critical.Lock()
	members := slices.Clone(c.critical.members)
	c.critical.Unlock()
	for _, m := range members {
		if m.of.view.Load().scopes.Has(w.id) {
			c.fifo.Resync(w.id, m.id, c.indexer.ObjectsIn(w.id))
		}
	}
}

// surely reports whether a stored object, of which a transform may have changed the labels,
// belongs to w.
func (w *watched) surely(key Key, obj Object, changed bool) bool {
	if w.scope.LabelSelector+w.scope.FieldSelector == "" {
		return w.scope.Namespace == "" || key.Namespace == "" || key.Namespace == w.scope.Namespace
	}
	return !changed && w.matcher.MatchKey(key, compact.LabelsOf(obj)) == base.Inside
}

// reclaimLocked frees the numbers of ended scopes that no delta or Reflector uses any more.
// Rows never do. So there are never many more numbers than scopes at one time.
func reclaimLocked(c *core) {
	if len(c.critical.ended) == 0 {
		return
	}
	spoken := c.fifo.Spoken()
	c.critical.ended = slices.DeleteFunc(c.critical.ended, func(w *watched) bool {
		unused := w.quiet() && !spoken.Has(w.id)
		if unused {
			c.critical.free = append(c.critical.free, w.id)
		}
		return unused
	})
}

// freeLocked returns a number that no row, delta or Reflector uses.
func (c *core) freeLocked() base.ScopeID {
	if last := len(c.critical.free) - 1; last >= 0 {
		id := c.critical.free[last]
		c.critical.free = c.critical.free[:last]
		return id
	}
	c.critical.byID = append(c.critical.byID, nil)
	return base.ScopeID(len(c.critical.byID) - 1)
}

// endUnheld ends the scopes without holders, in parts: thousands of them do not keep events
// and own writes waiting. When it returns all have ended, also those that others had begun to
// end.
func endUnheld(c *core) {
	for more := true; more; {
		more = endSome(c)
	}
}

func endSome(c *core) (more bool) {
	c.critical.Lock()
	defer c.critical.Unlock()
	n := min(len(c.critical.unheld), scopesAtOnce)
	if n == 0 {
		return false
	}
	part := slices.DeleteFunc(c.critical.unheld[:n:n], func(w *watched) bool {
		return w.holders > 0 || c.critical.byID[w.id] != w // held again, or ended
	})
	c.endLocked(part)
	if c.critical.unheld = c.critical.unheld[n:]; len(c.critical.unheld) == 0 {
		c.critical.unheld = nil
		c.showLocked()
		showWaitingLocked(c) // no handle waits for fields of what has ended
	}
	return true
}

// endLocked ends scopes without holders: it stops their Reflectors, drops their waiting
// deltas, and removes what they alone held from the Indexer.
func (c *core) endLocked(scopes []*watched) {
	if len(scopes) == 0 {
		return
	}
	ids := make([]base.ScopeID, 0, len(scopes))
	hands, namespaces := make(map[*taskProbe]bool, len(scopes)), make(map[string]bool)
	for _, w := range scopes {
		if w.member != nil {
			w.member.Cancel()
		}
		delete(c.critical.scopes, w.scope)
		c.critical.byID[w.id] = nil
		namespaces[w.scope.Namespace] = true
		w.reflector = nil
		ids, hands[w.decoding] = append(ids, w.id), true
	}
	for namespace := range namespaces {
		leaveLocked(c, namespace)
	}
	c.critical.ended = append(c.critical.ended, scopes...)
	c.membership.drop(hands)
	ended := store.ScopesOf(ids...)
	c.fifo.End(ended)
	c.indexer.End(ended, c.mayHoldLocked)
}

// leaveLocked drops the ended scopes of a namespace.
func leaveLocked(c *core, namespace string) {
	living := slices.DeleteFunc(c.critical.within[namespace], func(w *watched) bool { return c.critical.byID[w.id] != w })
	if c.critical.within[namespace] = living; len(living) == 0 {
		delete(c.critical.within, namespace)
	}
}

// mayHoldLocked yields the scopes that can hold an object of key.
func (c *core) mayHoldLocked(key Key) iter.Seq[base.ScopeID] {
	return func(yield func(base.ScopeID) bool) {
		for w := range inNamespace(c.critical.within, key.Namespace) {
			if !yield(w.id) {
				return
			}
		}
	}
}

// livingLocked returns b without the scopes that ended after it was popped.
func (c *core) livingLocked(b store.Batch) store.Batch {
	ended := func(id base.ScopeID) bool { return int(id) < len(c.critical.byID) && c.critical.byID[id] == nil }
	if b.SpeaksOf(ended) {
		return b.Without(ended)
	}
	return b
}

func (c *core) watchedNow() []*watched {
	c.critical.Lock()
	defer c.critical.Unlock()
	return slices.DeleteFunc(slices.Clone(c.critical.byID), func(w *watched) bool { return w == nil })
}

// reflectorOf returns the Reflector of w, or nil if the scope has ended.
func (c *core) reflectorOf(w *watched) *reflector.Reflector {
	c.critical.Lock()
	defer c.critical.Unlock()
	return w.reflector
}

// idsLocked returns the numbers of the scopes that have not ended.
func (c *core) idsLocked(scopes []*watched) *store.ScopeSet {
	ids := make([]base.ScopeID, 0, len(scopes))
	for _, w := range scopes {
		if c.critical.byID[w.id] == w {
			ids = append(ids, w.id)
		}
	}
	return store.ScopesOf(ids...)
}

// place makes every handle cover what it requested, depending on whether
// discovery reports the kind as namespaced: a cluster-scoped kind is watched once,
// however many namespaces were requested. It runs before each list and watch of s,
// and returns ctx's error if this ends s, which is then superfluous.
func (c *core) place(ctx context.Context, s WatchScope) error {
	if c.discover == nil || s.Namespace == "" && !c.anyHandle(func(h *handle) bool { return h.clusterWide }) {
		return nil
	}
	for {
		namespaced, err := c.discover(ctx)
		if err != nil {
			return fmt.Errorf("list %s %s: %w", c.kind.Kind, s, err)
		}
		c.replan(!namespaced)
		// A handle that is being opened or planned anew still holds superfluous scopes, which
		// end with that.
		superfluous := s.Namespace != "" && !namespaced ||
			s.Namespace == "" && namespaced && c.anyHandle(func(h *handle) bool { return h.replans })
		if !superfluous || !sleep.For(ctx, placeAgain) {
			return ctx.Err()
		}
	}
}

// placeAgain is how long a superfluous scope waits for its end before it asks again whether it
// is one.
const placeAgain = time.Second

func (c *core) anyHandle(is func(*handle) bool) bool {
	c.critical.Lock()
	defer c.critical.Unlock()
	return slices.ContainsFunc(c.critical.handles, is)
}

// replan makes the handles cover their scopes again if they assumed otherwise.
func (c *core) replan(clusterWide bool) {
	for h, plain := c.assume(clusterWide); h != nil; h, plain = c.assume(clusterWide) {
		planned := planOf(plain, clusterWide)
		err := coverInParts(c, planned.watch, func() error {
			h.replans = false
			if h.asked == nil {
				return nil // released
			}
			return c.coverLocked(h, h.asked, planned)
		})
		if err != nil {
			c.log.Error(err, "Cannot watch the scopes of a handle")
		}
	}
	c.callPassed()
}

// assume makes a handle that assumes otherwise assume it from now on, so that no other scope plans
// for it too, and returns what to plan. Nil: there is none.
func (c *core) assume(clusterWide bool) (h *handle, plain []Scope) {
	c.critical.Lock()
	defer c.critical.Unlock()
	i := slices.IndexFunc(c.critical.handles, func(h *handle) bool { return h.asked != nil && h.clusterWide != clusterWide })
	if i < 0 {
		return nil, nil
	}
	h = c.critical.handles[i]
	h.clusterWide, h.replans = clusterWide, true
	plain, _ = h.chosenOf(h.asked)
	return h, plain
}

// borrower returns the function with which a metadata scope obtains a tap, fed
// by an informer with the full objects at version from or later.
func (c *core) borrower(scope WatchScope, id base.ScopeID, schema *schemas.Scope) func(from Version) *reflector.Tap {
	if c.borrow == nil || !restclient.OfMetadata(c.object) {
		return nil
	}
	return func(from Version) *reflector.Tap {
		t := reflector.NewTap(scope, id, reflector.FIFOSink{DeltaFIFO: c.fifo}, c.settings.transform())
		t.Schema = schema
		if t.Managed = c.settings.keepsManagedFields(); c.borrow(t, from) {
			return t
		}
		return nil
	}
}

// lend feeds t from a scope of this informer that has all the objects of t's
// scope, unmodified. It returns false if there is none, or if it is behind
// version from, so that t's objects would go back.
func (c *core) lend(t *reflector.Tap, from Version) bool {
	if restclient.OfMetadata(c.object) || t.Managed && !keptBy(c).ManagedFields {
		return false
	}
	r, scope := c.lender(t.Scope)
	if r == nil || from > Version(r.Status.Version.Load()) {
		return false
	}
	t.Lender, t.State = fmt.Sprintf("%s %s", c.object, scope), r.State
	if scope != t.Scope {
		t.Namespace = t.Scope.Namespace
	}
	return r.Tee.Join(t)
}

// lender returns the Reflector of s, or of s in all namespaces, or nil if there
// is none, or if its objects are modified.
func (c *core) lender(s WatchScope) (*reflector.Reflector, WatchScope) {
	whole := s
	whole.Namespace = ""
	c.critical.Lock()
	defer c.critical.Unlock()
	for _, scope := range []WatchScope{s, whole} {
		if w := c.critical.scopes[scope]; w != nil && keepsMetadataLocked(c, w) && c.settings.mayLend() {
			return w.reflector, scope
		}
	}
	return nil, s
}

// startPacking makes the informer compact, if that is wanted. lw is that of its
// first scope.
func startPacking(c *core, lw ListerWatcher[Object]) {
	how := c.settings.compact()
	if how.Codec == nil || c.object.Kind() != reflect.Pointer || c.packing.Load() != nil {
		return
	}
	kind := compact.Kind{Object: c.object, Name: c.gvk, ManagedFields: c.settings.keepsManagedFields}
	if again := feed.Again(lw); again != nil {
		kind.Decode = func(raw []byte) (Object, error) {
			var item listwatch.Item[Object]
			item.Raw = raw
			return again(item)
		}
		kind.Whole = c.settings.decodesAll
	}
	if c.guard != nil {
		kind.Shown = func(obj Object) { c.guard.offer(nil, KeyOf(obj), obj) }
		kind.Hidden = c.guard.hide
	}
	p, err := compact.NewPacker(kind, how)
	if err != nil {
		c.log.Error(err, "Cannot pack objects; they are held decoded")
		return
	}
	c.packing.Store(p)
	c.fifo.Pack(p)
}

// widenLocked makes the objects of the kind keep set too, and returns the first generation
// that does.
func widenLocked(c *core, set *fields.Set) (since uint32) {
	g, grown := c.projection.with(set)
	if !grown {
		return g.number
	}
	if g.set != nil && c.narrowed != nil {
		c.narrowed(g.set)
	}
	// The generation is set already, so a run that begins now decodes with it.
	if g.number == 0 || !c.settings.hasBegun() && c.indexer.Len() == 0 {
		return g.number
	}
	for _, w := range c.critical.byID {
		if w != nil {
			w.reflector.Wants.Add(steps.Demand{Reason: steps.RelistFields, Content: true})
		}
	}
	return g.number
}

// behindLocked reports whether a scope keeps less than new ones do.
func behindLocked(c *core) bool {
	now := c.projection.current().number
	return slices.ContainsFunc(c.critical.byID, func(w *watched) bool { return w != nil && w.kept < now })
}

// beginKept sets what a new scope keeps: what all others do, since it may show
// their objects.
func beginKept(c *core, w *watched, behind bool) {
	now := c.projection.current().number
	w.kept, w.past = now, now
	if behind {
		w.kept = 0
		w.reflector.Wants.Add(steps.Demand{Reason: steps.RelistFields, Content: true})
	}
}

// keptLocked reports whether all that w shows, now and later, has the fields of
// a generation.
func keptLocked(c *core, w *watched, since uint32) bool {
	if since == 0 {
		return true
	}
	if w.kept < since {
		return false
	}
	for other := range inNamespace(c.critical.within, w.scope.Namespace) {
		if other.past < since {
			return false
		}
	}
	return true
}

// lastNarrow reports whether the objects of c have all of their fields by now,
// and of which version the last ones may have been that had not.
func lastNarrow(c *core) (version Version, whole bool) {
	c.critical.Lock()
	defer c.critical.Unlock()
	whole = wholeLocked(c)
	return c.critical.narrow, whole
}

// sawLocked records a version that is stored.
func sawLocked(c *core, version Version) { c.critical.newest = max(c.critical.newest, version) }

// wholeLocked reports whether the objects of c have all of their fields by now,
// which they then keep, and remembers since when. An informer that has stored
// nothing may follow one that kept less.
func wholeLocked(c *core) bool {
	now := c.projection.current()
	switch {
	case c.critical.whole:
		return true
	case now.set != nil || len(c.projection.past) == 0 || c.critical.newest == 0:
		return false
	}
	for _, w := range c.critical.byID {
		if w != nil && !keptLocked(c, w, now.number) {
			return false
		}
	}
	c.critical.whole, c.critical.narrow = true, c.critical.newest
	return true
}

// passedLocked shows scopes to the handles that waited for more fields.
func passedLocked(c *core, passed []store.Passed) {
	for _, p := range passed {
		if w := c.critical.byID[p.Scope]; w != nil {
			w.past = max(w.past, p.Generation)
			if p.Listed {
				w.kept = max(w.kept, p.Generation)
			}
		}
	}
	if len(passed) > 0 {
		showWaitingLocked(c)
	}
}

// showWaitingLocked shows each handle the scopes that it need not wait for any
// more.
func showWaitingLocked(c *core) {
	for _, h := range c.critical.handles {
		shown := h.view.Load().scopes
		if h.wants.waits && slices.ContainsFunc(h.holds, func(w *watched) bool { return !shown.Has(w.id) && keptLocked(c, w, h.wants.since) }) {
			c.turnLocked(h, h.holds, h.view.Load().namespaces)
		}
	}
}

// keepsMetadataLocked reports whether the objects of w have all of their
// metadata.
func keepsMetadataLocked(c *core, w *watched) bool {
	g := c.projection.metadata()
	return g != nil && keptLocked(c, w, g.number)
}

// passing returns the function that records a begun list of a scope. Only the
// scope's Reflector calls it.
func passing(c *core, id base.ScopeID) (begin func()) {
	var passed uint32
	return func() {
		if now := c.projection.current().number; now > passed {
			passed = now
			c.fifo.Pass(id, now)
		}
	}
}
