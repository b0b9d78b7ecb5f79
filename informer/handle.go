// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"
	"sync/atomic"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// handle is a SharedInformer's part of the core. The core's critical section
// guards it, except for atomic fields.
type handle struct {
	core    *core
	asked   []Scope // nil: misuse, or released
	follows []*following
	open    bool // selected namespaces are not yet known
	holds   []*watched
	heard   int // so many of holds are known to be synced
	// clusterWide: the kind is known to be cluster-scoped and is watched whole.
	clusterWide bool
	replans     bool // because clusterWide has changed
	settled     bool // synced is closed
	synced      chan struct{}
	ended       chan struct{}
	released    bool
	deferred    bool // one of asked is Deferred
	wants       wanted
	view        atomic.Pointer[listerView]
	fed         atomic.Pointer[reflector.Reflector] // the last of holds; nil: none
	by          division                            // of holds
	retired     []*watched                          // the last of holds, until what replaces them has synced
	grows       bool                                // holds has scopes of gained shards, for which Synced does not wait
}

// handle returns a new handle over scopes; without any, over the namespaces of
// the options. misuse concerns the kind; the returned error is misuse too. A
// handle with misuse never syncs. The handle is nil if the last handle was
// released meanwhile.
func (c *core) handle(scopes []Scope, misuse error) (*handle, error) {
	h := &handle{core: c, synced: make(chan struct{}), ended: make(chan struct{})}
	h.view.Store(&listerView{scopes: store.ScopesOf(), namespaces: map[string]bool{}, synced: h.synced})
	if !h.admit() {
		return nil, misuse
	}
	if misuse == nil {
		misuse = h.cover(scopes)
	}
	c.settings.recordMisuse(misuse)
	return h, misuse
}

func (h *handle) admit() bool {
	h.core.critical.Lock()
	defer h.core.critical.Unlock()
	if h.core.critical.closed {
		return false
	}
	if h.core.critical.over {
		close(h.ended)
	}
	h.core.critical.handles = append(h.core.critical.handles, h)
	return true
}

// cover makes h cover exactly scopes. On an error nothing changes.
func (h *handle) cover(scopes []Scope) error {
	if len(scopes) == 0 || len(scopes) == 1 && scopes[0].anywhere() {
		s := Scope{}
		if len(scopes) == 1 {
			s = scopes[0]
		}
		s.Namespaces, s.LabelSelector = h.core.opts.Namespaces, h.core.opts.SelectByKind[h.core.kind.GroupKind()]
		scopes = []Scope{s}
	}
	if err := h.checkNamespaces(scopes); err != nil {
		return err
	}
	set, err := h.core.fieldsOf(scopes)
	if err != nil {
		return err
	}
	follows := h.followAll(scopes)
	plain, clusterWide, before, err := h.wantUnder(scopes, set, follows)
	if err != nil {
		unfollow(follows)
		return err
	}
	unfollow(before)
	planned := planOf(plain, clusterWide, h.core.divider.now())
	err = coverInParts(h.core, planned.watch, func() error {
		if h.released {
			return &kube.ReleasedError{Kind: h.core.kind}
		}
		if namespaced, known := h.core.namespaced(); known {
			h.clusterWide = !namespaced // known since the first of them asked
		}
		return h.coverLocked(scopes, planned)
	})
	h.core.callPassed()
	return err
}

// coverInParts opens scopes, in parts as endUnheld ends them, and then runs cover in the
// critical section, in which a handle takes them up.
func coverInParts(c *core, scopes []listwatch.Scope, cover func() error) error {
	var held []*watched
	if len(scopes) > scopesAtOnce { // else cover opens them
		for part := range slices.Chunk(scopes, scopesAtOnce) {
			some, err := c.openUnder(part)
			if err != nil {
				break // cover returns it
			}
			held = append(held, some...)
		}
	}
	c.critical.Lock()
	defer c.critical.Unlock()
	defer func() { c.critical.scopes.release(held) }()
	return cover()
}

// openUnder opens and holds scopes.
func (c *core) openUnder(scopes []listwatch.Scope) ([]*watched, error) {
	c.critical.Lock()
	defer c.critical.Unlock()
	some, err := c.opener.find(scopes)
	if err != nil {
		return nil, err
	}
	c.opener.hold(some)
	return some, nil
}

// wantUnder checks and records what h wants. It returns what to plan, and what h followed
// before. On an error nothing changes.
func (h *handle) wantUnder(scopes []Scope, set *fields.Set, follows []*following) (plain []Scope, clusterWide bool, before []*following, err error) {
	h.core.critical.Lock()
	defer h.core.critical.Unlock()
	if h.released {
		return nil, false, nil, &kube.ReleasedError{Kind: h.core.kind}
	}
	if namespaced, known := h.core.namespaced(); known {
		h.clusterWide = !namespaced
	}
	plain = slices.Clone(scopes)
	for i := range plain {
		plain[i].NamespaceSelector = "" // no namespaces are known yet
	}
	if _, err := h.core.opener.find(watchScopesOf(plain, true)); err != nil {
		return nil, false, nil, err
	}
	if err := h.wantLocked(set, scopes); err != nil {
		return nil, false, nil, err
	}
	h.grows = false
	before = h.takeOverLocked(follows)
	plain, _ = h.chosenOf(scopes)
	return plain, h.clusterWide, before, nil
}

// coverLocked makes h cover scopes, as planned unless that no longer holds.
func (h *handle) coverLocked(scopes []Scope, planned *plan) error {
	plain, open := h.chosenOf(scopes)
	if by := h.core.divider.now(); !planned.holds(plain, h.clusterWide, by) {
		planned = planOf(plain, h.clusterWide, by)
	}
	holds, err := h.core.opener.find(planned.watch)
	if err != nil {
		h.core.showLocked()
		return err
	}
	h.asked, h.open = slices.Clone(scopes), open || planned.by.undecided
	h.deferred = slices.ContainsFunc(scopes, func(s Scope) bool { return s.Deferred })
	h.retireLocked(holds, planned.by)
	h.turnLocked(slices.Concat(holds, h.retired), planned.namespaces)
	h.core.opener.bare = false
	if h.clusterWide && len(h.follows) > 0 {
		h.core.misuses.record()
	}
	return nil
}

// turnLocked makes h hold exactly these scopes, of these namespaces. The store changes first,
// then the handlers of h receive what appears and disappears.
func (h *handle) turnLocked(holds []*watched, namespaces map[string]bool) {
	h.core.opener.hold(holds)
	before := h.holds
	h.hold(holds)
	was, now := h.view.Load().scopes, &listerView{namespaces: namespaces, fields: h.wants.set}
	seen := make([]base.ScopeID, 0, len(holds))
	for _, w := range holds {
		if h.core.critical.scopes.keeps(w, h.wants.since) {
			seen = append(seen, w.id)
		}
	}
	now.scopes, h.wants.waits = store.ScopesOf(seen...), len(seen) < len(holds)
	if h.settled && !h.grows && !h.isSynced() {
		h.settled, h.synced = false, make(chan struct{})
	}
	now.synced = h.synced
	differently := h.core.indexer.SeenDifferently(was, now.scopes)
	h.view.Store(now)
	h.core.critical.scopes.release(before)
	h.core.showLocked()
	h.core.critical.handlers.look(h, now.scopes, differently)
	h.core.critical.notifySyncedLocked()
	showWaitingLocked(h.core)
}

func (h *handle) hold(scopes []*watched) {
	h.holds, h.heard = scopes, 0
	if len(scopes) == 0 {
		h.fed.Store(nil)
		return
	}
	h.fed.Store(scopes[len(scopes)-1].reflector)
}

// isSynced reports whether the first list of each scope is stored.
func (h *handle) isSynced() bool {
	for h.heard < len(h.holds) && h.holds[h.heard].synced.Load() {
		h.heard++
	}
	return h.asked != nil && !h.open && !h.wants.waits && h.heard == len(h.holds)
}

// callPassed ends the scopes that nothing holds any more, and runs the callbacks of
// WhenPassed, without any lock.
func (c *core) callPassed() {
	endUnheld(c)
	for _, do := range c.indexer.Passed() {
		do()
	}
}

// start watches the deferred scopes of h.
func (h *handle) start() error {
	scopes := h.deferredScopes()
	if scopes == nil {
		return nil
	}
	for i := range scopes {
		scopes[i].Deferred = false
	}
	return h.cover(scopes)
}

// deferredScopes returns the scopes of h, or nil if none is deferred.
func (h *handle) deferredScopes() []Scope {
	h.core.critical.Lock()
	defer h.core.critical.Unlock()
	if !h.deferred {
		return nil
	}
	return slices.Clone(h.asked)
}

// release drops what h holds. The core ends with its last handle.
func (h *handle) release() {
	left, follows, last := h.releaseUnder()
	for _, m := range left {
		m.end()
	}
	unfollow(follows)
	h.core.callPassed()
	if last {
		if begun := h.core.group.Stop(); !begun {
			h.core.finish()
		}
		h.core.forget()
	}
}

func (h *handle) releaseUnder() (left []*member, follows []*following, last bool) {
	h.core.critical.Lock()
	defer h.core.critical.Unlock()
	if h.released {
		return nil, nil, false
	}
	h.released = true
	h.view.Store(&listerView{scopes: store.ScopesOf(), gone: &kube.ReleasedError{Kind: h.core.kind}})
	h.core.critical.handlers.remove(func(m *member) bool {
		if m.of == h {
			left = append(left, m)
		}
		return m.of == h
	})
	for _, m := range left {
		m.Remove()
		h.core.membership.leave(m)
	}
	h.core.critical.handles = slices.DeleteFunc(h.core.critical.handles, func(other *handle) bool { return other == h })
	if !h.core.critical.over {
		close(h.ended)
	}
	h.core.critical.scopes.release(h.holds)
	h.retired = nil
	follows, h.follows = h.follows, nil
	h.hold(nil)
	h.asked = nil
	h.core.showLocked()
	h.core.critical.notifySyncedLocked()
	h.core.critical.closed = len(h.core.critical.handles) == 0
	return left, follows, h.core.critical.closed
}

func (h *handle) syncedNow() <-chan struct{} {
	h.core.critical.Lock()
	defer h.core.critical.Unlock()
	return h.synced
}

// wantLocked records what h wants, and makes the kind keep it.
func (h *handle) wantLocked(set *fields.Set, scopes []Scope) error {
	want := &h.wants
	switch {
	case want.known && !want.set.Contains(set):
		return h.core.errorf("set scopes: the handle was made for the fields %s, not for %s; make another handle for them", want.set, set)
	case !want.known && set != nil:
		if err := h.core.settings.dropFields(); err != nil {
			return err
		}
	}
	if !want.known {
		want.set, want.known = set, true
	}
	if !want.counts && slices.ContainsFunc(scopes, func(s Scope) bool { return !s.Deferred }) {
		want.since, want.counts = widenLocked(h.core, want.set), true
	}
	return nil
}

// keepAllFields makes h want everything.
func (h *handle) keepAllFields() {
	h.core.critical.Lock()
	defer h.core.critical.Unlock()
	if h.released || h.wants.set == nil {
		return
	}
	if h.wants.set = nil; h.wants.counts {
		h.wants.since = widenLocked(h.core, nil)
	}
	h.turnLocked(h.holds, h.view.Load().namespaces)
}

// isAwaited reports whether a wait for the whole informer waits for h.
func (h *handle) isAwaited() bool { return h.asked != nil && !h.settled && !h.deferred }

// divide makes h cover its parts in the present division.
func (h *handle) divide() {
	plain, clusterWide, ok := h.plainUnder()
	if !ok {
		return
	}
	planned := planOf(plain, clusterWide, h.core.divider.now())
	err := coverInParts(h.core, planned.watch, func() error {
		if h.asked == nil {
			return nil // released
		}
		return h.coverLocked(h.asked, planned)
	})
	if err != nil {
		h.core.log.Error(err, "Cannot watch the held shards")
	}
}

// plainUnder returns what to plan for h. ok: it has scopes.
func (h *handle) plainUnder() (plain []Scope, clusterWide, ok bool) {
	h.core.critical.Lock()
	defer h.core.critical.Unlock()
	plain, _ = h.chosenOf(h.asked)
	return plain, h.clusterWide, h.asked != nil
}

// retireLocked decides which synced scopes h keeps beside the next ones, until these have synced
// too, because another division replaces them: so h sees every event of the shards that it keeps.
func (h *handle) retireLocked(next []*watched, by division) {
	old := h.retired
	if h.by != by {
		old, h.grows = h.holds, h.grows || h.settled
	}
	h.by, h.retired = by, nil
	for _, w := range old {
		follows := func(n *watched) bool { return !n.synced.Load() && replaces(n.scope, w.scope) }
		if w.synced.Load() && !slices.Contains(next, w) && slices.ContainsFunc(next, follows) {
			h.retired = append(h.retired, w)
		}
	}
	h.core.opener.bare = len(h.retired) > 0
}

// dropRetired releases the scopes that others have replaced.
func (c *core) dropRetired() {
	c.dropRetiredUnder()
	c.callPassed()
}

func (c *core) dropRetiredUnder() {
	c.critical.Lock()
	defer c.critical.Unlock()
	for _, h := range c.critical.handles {
		if h.grows && h.isSynced() {
			h.grows = false
		}
		if len(h.retired) > 0 && h.isSynced() {
			rest := h.holds[:len(h.holds)-len(h.retired)]
			h.retired = nil
			h.turnLocked(slices.Clone(rest), h.view.Load().namespaces)
		}
	}
}

// divide makes next the division, and all handles cover their parts.
func (c *core) divide(next division) {
	for _, h := range c.setDivision(next) {
		h.divide()
	}
	c.callPassed()
	c.critical.notify()
}

// setDivision makes next the division, and returns the handles to turn.
func (c *core) setDivision(next division) []*handle {
	c.critical.Lock()
	defer c.critical.Unlock()
	c.divider.current.Store(&next)
	return slices.Clone(c.critical.handles)
}

// anyPart returns a scope that the server is asked for in a division.
func (c *critical) anyPart(by division) (scope listwatch.Scope, ok bool) {
	c.Lock()
	defer c.Unlock()
	for _, h := range c.handles {
		plain, _ := h.chosenOf(h.asked)
		for _, scope := range by.parts(watchScopesOf(plain, h.clusterWide), h.clusterWide) {
			if scope.ShardSelector != "" {
				return scope, true
			}
		}
	}
	return scope, false
}
