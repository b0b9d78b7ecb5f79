// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/mutation"
	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/schemas"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/sleep"
	"github.com/flyball-dev/flyball/internal/taskgroup"
	"github.com/flyball-dev/flyball/kube"
)

// opener begins and ends scopes: it makes the Reflector of each, and the DeltaFIFO and the Indexer
// know it. Its methods need the core's critical section.
type opener struct {
	*upstream
	opts       *Options
	log        logr.Logger
	table      *scopeTable
	fifo       *store.DeltaFIFO
	indexer    *store.Indexer
	group      *taskgroup.Group
	settings   *settings
	projection *projection
	packing    *packing
	membership *membership
	misuses    *misuses
	guard      *mutation.Guard // nil: off
	place      func(context.Context, listwatch.Scope) error
	redeliver  func(*watched)
	relieve    func(needs int64) bool // as in Reflector
	divider    *divider
	bare       bool // new scopes are lent nothing
}

// find returns the watched scopes, with new ones ready to be opened. On
// an error nothing changes.
func (o *opener) find(scopes []listwatch.Scope) ([]*watched, error) {
	out := make([]*watched, 0, len(scopes))
	for _, s := range scopes {
		w := o.table.byScope[s]
		if w == nil {
			m, err := reflector.NewMatcher(s)
			if err != nil {
				return nil, o.errorf("%w", err)
			}
			lw, err := o.newListerWatcher(s)
			if err != nil {
				return nil, o.errorf("watch %s: %w", s, err)
			}
			w = &watched{scope: s, matcher: m, lw: lw}
		}
		out = append(out, w)
	}
	return out, nil
}

func (o *opener) hold(scopes []*watched) {
	var opened []*watched
	for _, w := range scopes {
		if w.holders++; w.reflector == nil {
			opened = append(opened, w)
		}
	}
	o.open(opened)
}

// open watches new scopes. It looks at each object and each other scope once, however
// many there are.
func (o *opener) open(scopes []*watched) {
	if len(scopes) == 0 {
		return
	}
	o.settings.setOpened() // the transform cannot change after this
	o.table.reclaim(o.fifo)
	now := o.projection.current().number
	behind := o.table.behind(now)
	opened := make(map[string][]*watched)
	for _, w := range scopes {
		o.prepare(w)
		w.beginKept(now, behind)
		opened[w.scope.Namespace] = append(opened[w.scope.Namespace], w)
	}
	o.lend(opened)
	for _, w := range scopes {
		var err error
		if w.member, err = o.group.Spawn(w.reflector.Run); err != nil {
			w.reflector.Status.Stopped() // the run has ended already
		}
	}
}

// lend lends what is stored to new scopes, which are given by namespace.
func (o *opener) lend(opened map[string][]*watched) {
	if o.bare {
		return
	}
	changed := o.settings.transform() != nil // maybe the labels too
	o.indexer.Lend(func(key kube.Key, obj kube.Object) iter.Seq[base.ScopeID] {
		return func(yield func(base.ScopeID) bool) {
			for w := range inNamespace(opened, key.Namespace) {
				if w.surely(key, obj, changed) && !yield(w.id) {
					return
				}
			}
		}
	})
}

// prepare makes the Reflector of a new scope.
func (o *opener) prepare(w *watched) {
	w.id = o.table.takeID()
	o.startPacking(w.lw)
	w.decoding = o.membership.take(newTaskProbe("transform an object " + w.scope.String()))
	lw := reflector.ListerWatcher{
		From:      w.lw,
		Screen:    w.screen(o.upstream),
		Check:     func(ctx context.Context) error { return o.place(ctx, w.scope) },
		Begin:     o.divider.observed(w.scope, &w.synced, o.projection.passing(w.id, o.fifo)),
		Report:    o.settings.reportError,
		Transform: o.settings.transform,
		Probe:     w.decoding,
		Ignored:   o.divider.recordIgnored, ShardSelector: w.scope.ShardSelector,
		Pack: o.packing.items(o.indexer),
	}
	w.reflector = reflector.New(lw, w.scope, w.id, o.fifo, o.opts.reflectorOptions(w.lw))
	w.reflector.Objects = o.object.String()
	w.reflector.At(w.lw)
	w.reflector.Relieve = o.relieve
	w.reflector.Status.Misused = o.misuses.record
	w.reflector.Schema = o.schemaOf(w)
	if o.auditList != nil {
		w.reflector.Recall = o.auditList.recall
	}
	w.reflector.Borrow = o.borrower(w.scope, w.id, w.reflector.Schema)
	w.lw = nil
	o.table.add(w)
	o.fifo.Open(w.id)
	o.indexer.Open(w.id)
}

// schemaOf returns what observes the schema of a scope's objects, or nil.
func (o *opener) schemaOf(w *watched) *schemas.Scope {
	r := w.reflector
	gv := o.kind.GroupVersion()
	switch {
	case o.schemas == nil:
		return nil
	case restclient.OfMetadata(o.object):
		return o.schemas.BlindScope(gv, r.Name(), func() { o.redeliver(w) })
	}
	return o.schemas.Scope(gv, r.Name(), func() { r.Wants.Add(steps.Demand{Reason: steps.RelistSchema, Content: true}) })
}

// borrower returns the function with which a metadata scope obtains a tap, fed
// by an informer with the full objects at version from or later.
func (o *opener) borrower(scope listwatch.Scope, id base.ScopeID, schema *schemas.Scope) func(from kube.Version) *reflector.Tap {
	if o.borrow == nil || !restclient.OfMetadata(o.object) {
		return nil
	}
	return func(from kube.Version) *reflector.Tap {
		t := reflector.NewTap(scope, id, reflector.FIFOSink{DeltaFIFO: o.fifo}, o.settings.transform())
		t.Schema = schema
		if t.Managed = o.settings.keepsManagedFields(); o.borrow(t, from) {
			return t
		}
		return nil
	}
}

// startPacking makes the informer compact, if that is wanted. lw is that of its
// first scope.
func (o *opener) startPacking(lw listwatch.ListerWatcher[kube.Object]) {
	how := o.settings.compact()
	if how.Codec == nil || o.object.Kind() != reflect.Pointer || o.packing.Load() != nil || o.packing.isReady() {
		return
	}
	kind := compact.Kind{Object: o.object, Name: o.gvk, ManagedFields: o.settings.keepsManagedFields}
	if again := reflector.Again(lw); again != nil {
		kind.Decode = func(raw []byte) (kube.Object, error) {
			var item listwatch.Item[kube.Object]
			item.Raw = raw
			return again(item)
		}
		kind.Whole = o.settings.decodesAll
	}
	if o.guard != nil {
		kind.Shown = o.guard.Show
		kind.Hidden = o.guard.Hide
	}
	o.packing.setReady(func() (*compact.Packer, error) {
		p, err := compact.NewPacker(kind, how)
		if err != nil {
			o.log.Error(err, "Cannot pack objects; they are held decoded")
			return nil, err
		}
		o.fifo.Pack(p)
		return p, nil
	})
	if !how.WhenFull {
		_, _ = o.packing.begin("") // the error is logged
	}
}

// end ends scopes without holders: it stops their Reflectors, drops their waiting
// deltas, and removes what they alone held from the Indexer.
func (o *opener) end(scopes []*watched) {
	if len(scopes) == 0 {
		return
	}
	probes := make(map[*taskProbe]bool, len(scopes))
	for _, w := range scopes {
		if w.member != nil {
			w.member.Cancel()
		}
		w.reflector = nil
		probes[w.decoding] = true
	}
	ended := o.table.remove(scopes)
	o.membership.drop(probes)
	o.fifo.End(ended)
	o.indexer.End(ended, o.table.mayHold)
}

// screen returns what the objects of w must match.
func (w *watched) screen(u *upstream) reflector.Screen {
	s := reflector.Screen{Matcher: w.matcher, Selects: w.scope.LabelSelector+w.scope.FieldSelector != "", Namespaced: u.namespaced}
	if _, ok := w.lw.(reflector.Hosted); !ok && u.object == restclient.UnstructuredType {
		s.Kind = u.kind
	}
	return s
}

// redeliver gives the objects of a scope to its handlers again, as a resync does.
func redeliver(c *core, w *watched) {
	c.critical.Lock()
	members := slices.Clone(c.critical.handlers.members)
	c.critical.Unlock()
	for _, m := range members {
		if m.of.view.Load().scopes.Has(w.id) {
			c.fifo.Resync(w.id, m.ID, c.indexer.ObjectsIn(w.id))
		}
	}
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
	part, taken, more := c.critical.scopes.takeUnheld()
	had := c.simulatedIn(part)
	c.opener.end(part)
	c.reportGoneLocked(had)
	if taken && !more {
		c.showLocked()
		showWaitingLocked(c) // no handle waits for fields of what has ended
	}
	return taken
}

// place makes every handle cover what it requested, depending on whether
// discovery reports the kind as namespaced: a cluster-scoped kind is watched once,
// however many namespaces were requested. It runs before each list and watch of s,
// and returns ctx's error if this ends s, which is then superfluous.
func (c *core) place(ctx context.Context, s listwatch.Scope) error {
	if c.discover == nil || s.Namespace == "" && !c.critical.any(func(h *handle) bool { return h.clusterWide }) {
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
			s.Namespace == "" && namespaced && c.critical.any(func(h *handle) bool { return h.replans })
		if !superfluous || !sleep.For(ctx, placeAgain) {
			return ctx.Err()
		}
	}
}

// placeAgain is how long a superfluous scope waits for its end before it asks again whether it
// is one.
const placeAgain = time.Second

// replan makes the handles cover their scopes again if they assumed otherwise.
func (c *core) replan(clusterWide bool) {
	for h, plain := c.critical.assume(clusterWide); h != nil; h, plain = c.critical.assume(clusterWide) {
		planned := planOf(plain, clusterWide, c.divider.now())
		err := coverInParts(c, planned.watch, func() error {
			h.replans = false
			if h.asked == nil {
				return nil // released
			}
			return h.coverLocked(h.asked, planned)
		})
		if err != nil {
			c.log.Error(err, "Cannot watch the scopes of a handle")
		}
	}
	c.callPassed()
}

// lend feeds t from a scope of this informer that has all the objects of t's
// scope, unmodified. It returns false if there is none, or if it is behind
// version from, so that t's objects would go back.
func (c *core) lend(t *reflector.Tap, from kube.Version) bool {
	if restclient.OfMetadata(c.object) || t.Managed && !keptBy(c).ManagedFields {
		return false
	}
	r, scope := c.lender(t.Scope)
	if r == nil || from > kube.Version(r.Status.Version.Load()) {
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
func (c *core) lender(s listwatch.Scope) (*reflector.Reflector, listwatch.Scope) {
	whole := s
	whole.Namespace = ""
	c.critical.Lock()
	defer c.critical.Unlock()
	for _, scope := range []listwatch.Scope{s, whole} {
		if w := c.critical.scopes.byScope[scope]; w != nil && c.projection.keepsMetadata(&c.critical.scopes, w) && c.settings.mayLend() {
			return w.reflector, scope
		}
	}
	return nil, s
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
	for w := range c.critical.scopes.all() {
		w.reflector.Wants.Add(steps.Demand{Reason: steps.RelistFields, Content: true})
	}
	return g.number
}

// lastNarrow reports whether the objects of c have all of their fields by now,
// and of which version the last ones may have been that had not.
func lastNarrow(c *core) (version kube.Version, whole bool) {
	c.critical.Lock()
	defer c.critical.Unlock()
	whole = c.projection.widened(&c.critical.scopes)
	return c.projection.narrow, whole
}

// passedLocked shows scopes to the handles that waited for more fields.
func passedLocked(c *core, passed []store.Passed) {
	c.critical.scopes.pass(passed)
	if len(passed) > 0 {
		showWaitingLocked(c)
	}
}

// showWaitingLocked shows each handle the scopes that it need not wait for any
// more.
func showWaitingLocked(c *core) {
	for _, h := range c.critical.handles {
		shown := h.view.Load().scopes
		if h.wants.waits && slices.ContainsFunc(h.holds, func(w *watched) bool { return !shown.Has(w.id) && c.critical.scopes.keeps(w, h.wants.since) }) {
			h.turnLocked(h.holds, h.view.Load().namespaces)
		}
	}
}
