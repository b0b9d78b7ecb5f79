// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/internal/simhook"
)

const (
	// divideSoon and divideLate are the shortest and the longest pause after a question to the
	// server that failed.
	divideSoon = time.Second
	divideLate = 30 * time.Second
)

// divider makes the scopes of a core those of the held shards.
//
//	HoldShards ─▶ ask: does the server select? ─▶ division ─▶ handles ─▶ scopes that begin and end
//	               ▲ a list begins, or the server is seen to ignore the selector
//
// It asks and turns the handles in one goroutine. The other methods are safe for concurrent use.
type divider struct {
	core    *core
	of      func() sharding // nil: never divided
	current atomic.Pointer[division]
	wake    chan struct{} // has a token if there is something to do
	mu      struct {
		sync.Mutex
		ignored, relisted bool // since the last step
		trouble           error
		since             time.Time // of trouble
	}
	begun atomic.Bool // the division is not that before the run

	// Used by run alone.
	by         shards.By
	decided    bool
	unverified bool // the server has not answered
	logged     state.Form
	pause      time.Duration // after the next question that fails
	retry      time.Time     // no question before
}

func (d *divider) begin(c *core) {
	d.core, d.wake = c, make(chan struct{}, 1)
	d.current.Store(&division{})
}

// now returns the present division. It changes in the core's critical section.
func (d *divider) now() division { return *d.current.Load() }

// poke makes run look again.
func (d *divider) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// recordIgnored records that the server has ignored the selector of a scope.
func (d *divider) recordIgnored() {
	d.mu.Lock()
	d.mu.ignored = true
	d.mu.Unlock()
	d.poke()
}

// observed returns begin, which is called before each list of w, and asks the server again when it
// is not the first.
func (d *divider) observed(w *watched, begin func()) func() {
	if w.scope.Division.Everything() {
		return begin
	}
	return func() {
		begin()
		if w.synced.Load() {
			d.mu.Lock()
			d.mu.relisted = true
			d.mu.Unlock()
			d.poke()
		}
	}
}

// state returns the division for users.
func (d *divider) state() (s state.Division) {
	if !d.divides() {
		return s
	}
	s = d.now().state()
	s.Foreign, s.ForeignBytes = d.core.foreign.Objects.Load(), d.core.foreign.Bytes.Load()
	return s
}

// undecided returns what the division waits for, if it does.
func (d *divider) undecided() []state.Scope {
	if !d.now().undecided {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return []state.Scope{{State: state.Waiting, Since: d.mu.since, Reason: base.TextOf(d.mu.trouble)}}
}

// divides reports whether the core is of a factory that divides its kinds.
func (d *divider) divides() bool { return d.of != nil && d.of().count != 0 }

// start decides before the core's scopes begin, as far as that needs no server.
func (d *divider) start() {
	if !d.divides() {
		return
	}
	if !d.decide() || d.by != "" {
		_ = d.core.group.Go(d.run) // the core has not begun
		d.turn(division{undecided: true})
	}
	d.begun.Store(true)
	d.core.critical.notify()
}

// decide reports whether it is known by what the kind is divided.
func (d *divider) decide() bool {
	kind, known := d.core.learned()
	if d.decided || !known {
		return d.decided
	}
	d.by, d.decided = d.of().by(kind.GroupKind()), true
	if kind.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) && restclient.OfMetadata(d.core.object) {
		d.by = "" // selectors of namespaces need all of them
	}
	if d.by == shards.Namespace {
		var namespaced bool
		if namespaced, d.decided = d.core.namespaced(); d.decided && !namespaced {
			d.by = ""
		}
	}
	return d.decided
}

// run keeps the scopes those of the held shards until ctx ends.
func (d *divider) run(ctx context.Context) error {
	for {
		turned := d.core.critical.whenTurned()
		d.step(ctx)
		var again <-chan time.Time
		if !d.retry.IsZero() {
			again = time.After(time.Until(d.retry))
		}
		select {
		case <-d.wake:
		case <-turned:
		case <-again:
		case <-ctx.Done():
			return nil
		}
	}
}

// answered records that a question to the server was answered, or has failed with err: then it is
// asked again after a pause that doubles.
func (d *divider) answered(ctx context.Context, err error) {
	d.mu.Lock()
	if d.mu.trouble = err; d.mu.since.IsZero() {
		d.mu.since = time.Now()
	}
	d.mu.Unlock()
	if d.retry = (time.Time{}); err == nil {
		d.pause = 0
		return
	}
	d.pause = min(max(2*d.pause, divideSoon), divideLate)
	d.retry = time.Now().Add(d.pause + simhook.Duration(simhook.Of(ctx), "divide", d.pause/2))
	d.core.log.V(1).Info("Cannot find out how to divide the kind into shards; trying again", "after", d.pause, "because", err.Error())
}

// mayAsk reports whether the pause after a question that failed is over.
func (d *divider) mayAsk() bool { return !time.Now().Before(d.retry) }

// step makes the scopes those of the held shards now.
func (d *divider) step(ctx context.Context) {
	if !d.discover(ctx) {
		return
	}
	before, next := d.now(), division{}
	if d.by != "" {
		next = d.next(ctx, before)
	}
	if ctx.Err() != nil {
		return
	}
	if next != before {
		d.report(next)
		d.turn(next)
	}
	d.core.dropRetired()
}

// discover asks the server what decide needs, and reports whether that is known.
func (d *divider) discover(ctx context.Context) (decided bool) {
	if d.decide() || !d.mayAsk() {
		return d.decided
	}
	step(ctx, "divide "+d.core.kind.Kind)
	_, err := d.core.discover(ctx)
	if err == nil && !d.decide() {
		err = fmt.Errorf("the server does not say what %s is", d.core.kind.Kind)
	}
	if ctx.Err() == nil {
		d.answered(ctx, err)
	}
	return d.decided
}

// next returns the division after before. It asks the server if that can have changed.
func (d *divider) next(ctx context.Context, before division) (next division) {
	of := d.of()
	next = division{Division: shards.Division{By: d.by, Count: of.count, Held: of.held}, form: before.form}
	d.mu.Lock()
	ignored, relisted := d.mu.ignored, d.mu.relisted
	d.mu.ignored, d.mu.relisted = false, false
	d.mu.Unlock()
	switch {
	case d.by == shards.Owner:
		next.form = state.FormWire
		return next
	case next.form == "":
		next.form, d.unverified = state.FormServer, true
	case ignored && next.form == state.FormServer:
		next.form, d.unverified = state.FormWire, false
		return next
	}
	if next.Held == "" || !d.mayAsk() || !d.unverified && !relisted && next.Held == before.Held {
		return next
	}
	if kept := both(before.Held, next.Held); !before.undecided && before.form == state.FormServer && kept != before.Held {
		lost := before
		lost.Held = kept
		d.turn(lost) // the others end without a question
	}
	selects, asked, err := d.ask(ctx, next)
	if ctx.Err() == nil && asked {
		d.answered(ctx, err)
	}
	if d.unverified = !asked || err != nil; d.unverified {
		return next
	}
	if next.form = state.FormWire; selects {
		next.form = state.FormServer
	}
	return next
}

// ask asks the server whether it selects by shards. asked: there was a scope to ask about.
func (d *divider) ask(ctx context.Context, next division) (selects, asked bool, err error) {
	next.form = state.FormServer
	scope, ok := d.core.critical.anyPart(next)
	if !ok {
		return false, false, nil
	}
	lw, err := d.core.newListerWatcher(scope)
	if err != nil {
		return false, true, err
	}
	step(ctx, fmt.Sprintf("divide %s %s %s", d.core.kind.Kind, d.core.object, scope))
	page, err := lw.List(ctx, listwatch.ListOptions{Limit: 1})
	return err == nil && page.ShardSelector == scope.ShardSelector && page.Foreign == 0, true, err
}

// step lets a simulation decide when a request is sent.
func step(ctx context.Context, name string) {
	if sim := simhook.Of(ctx); sim != nil {
		sim.Step(ctx, "ask", name)
	}
}

// report logs who selects from now on, if that has changed.
func (d *divider) report(next division) {
	was := d.logged
	if d.unverified || next.form == was || next.Held == "" {
		return
	}
	d.logged = next.form
	log := d.core.log.WithValues("by", string(next.By), "shards", next.Count)
	switch {
	case next.form == state.FormServer && was == "", next.By == shards.Owner:
		log.V(1).Info("Divides the kind into shards", "form", next.form)
	case next.form == state.FormServer:
		log.Info("The server selects the objects of the held shards again")
	default:
		log.Info("The server does not select by shards, so the objects of other shards are dropped as they arrive; enable ShardedListAndWatch on all API servers to save that traffic")
	}
}

// turn makes next the division, and all handles cover their parts.
func (d *divider) turn(next division) {
	c := d.core
	for _, h := range c.critical.setDivision(d, next) {
		h.divide()
	}
	c.callPassed()
}

// settled waits until the scopes are those of the shards held at the time of the call, or of a
// later time.
func (d *divider) settled(ctx context.Context) error {
	if !d.divides() {
		return nil
	}
	for want := d.of().held; ; want = d.of().held {
		turned := d.core.critical.whenTurned()
		if now := d.now(); d.begun.Load() && !now.undecided && (now.Everything() || now.Held == want) {
			return nil
		}
		select {
		case <-turned:
		case <-d.core.ended:
			return errRunEnded
		case <-ctx.Done():
			return fmt.Errorf("its scopes are not those of the shards %s yet: %w", want, context.Cause(ctx))
		}
	}
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

// setDivision makes next the division, and returns the handles to turn.
func (c *critical) setDivision(d *divider, next division) []*handle {
	c.Lock()
	defer c.Unlock()
	d.current.Store(&next)
	if len(c.handles) == 0 {
		c.notifySyncedLocked()
	}
	return slices.Clone(c.handles)
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
