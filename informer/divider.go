// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
// It asks and turns the handles in the goroutine of Run. The other methods are safe for concurrent
// use.
type divider struct {
	*upstream
	log     logr.Logger
	foreign restclient.Foreign
	of      *sharding // nil: never divided
	ended   <-chan struct{}
	// turned returns what is closed when scopes are turned or synced, part a scope that has a
	// selector in a division. turn makes a division the present one, and all handles cover their
	// parts. dropped drops scopes that others have replaced.
	turned  func() <-chan struct{}
	part    func(division) (s listwatch.Scope, some bool)
	turn    func(division)
	dropped func()
	current atomic.Pointer[division]
	wake    chan struct{} // has a token if there is something to do
	mu      struct {
		sync.Mutex
		ignored, relisted bool // since the last step
		trouble           error
		since             time.Time // of trouble
	}
	begun atomic.Bool // the division is not that before the run

	// Used by Run alone.
	by         shards.By
	decided    bool
	misuse     error // of what by returns
	unverified bool  // the server has not answered
	logged     state.Form
	pause      time.Duration // after the next question that fails
	retry      time.Time     // no question before
}

func (d *divider) begin() {
	d.wake = make(chan struct{}, 1)
	d.current.Store(&division{})
}

// now returns the present division. It changes in the core's critical section.
func (d *divider) now() division { return *d.current.Load() }

// poke makes Run look again.
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

// observed returns begin, which is called before each list of a scope, and asks the server again
// when it is not the first.
func (d *divider) observed(scope listwatch.Scope, synced *atomic.Bool, begin func()) func() {
	if scope.Division.Everything() {
		return begin
	}
	return func() {
		begin()
		if synced.Load() {
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
	s.Foreign, s.ForeignBytes = d.foreign.Objects.Load(), d.foreign.Bytes.Load()
	return s
}

// undecided returns what the division waits for, if it does.
func (d *divider) undecided() []state.Scope {
	if !d.now().undecided {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return []state.Scope{{
		State: state.Waiting, Since: d.mu.since, Reason: base.TextOf(d.mu.trouble),
	}}
}

// divides reports whether the core is of a factory that divides its kinds.
func (d *divider) divides() bool { return d.of != nil && d.of.now().count != 0 }

// start decides before the scopes begin, as far as that needs no server. runs: Run has work, which
// may be to return misuse.
func (d *divider) start() (runs bool) {
	if !d.divides() {
		return false
	}
	if runs = !d.decide() || d.by != ""; runs {
		d.turn(division{undecided: true})
	}
	d.begun.Store(true)
	return runs
}

// decide reports whether it is known by what the kind is divided.
func (d *divider) decide() bool {
	kind, known := d.learned()
	if d.decided || !known {
		return d.decided
	}
	d.by, d.decided = d.of.now().by(kind.GroupKind()), true
	if !slices.Contains([]shards.By{"", shards.Namespace, shards.UID, shards.Owner}, d.by) {
		d.misuse = d.errorf("divide it by %q: the function given to Divide must return namespace, "+
			"uid or owner, or nothing for a kind that is held whole", d.by)
	}
	namespaces := schema.GroupKind{Kind: "Namespace"}
	if kind.GroupKind() == namespaces && restclient.OfMetadata(d.object) {
		d.by = "" // selectors of namespaces need all of them
	}
	if d.by == shards.Namespace {
		var namespaced bool
		if namespaced, d.decided = d.namespaced(); d.decided && !namespaced {
			d.by = ""
		}
	}
	return d.decided
}

// Run keeps the scopes those of the held shards until ctx ends.
func (d *divider) Run(ctx context.Context) error {
	for {
		turned, due := d.turned(), time.Time{}
		if d.mayAsk() {
			due = d.retry
		}
		if d.step(ctx); d.misuse != nil {
			return d.misuse
		}
		if d.retry.Equal(due) {
			d.retry = time.Time{} // nothing was left to ask
		}
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
	d.log.V(1).Info("Cannot find out how to divide the kind into shards; trying again",
		"after", d.pause, "because", err.Error())
}

// mayAsk reports whether the pause after a question that failed is over.
func (d *divider) mayAsk() bool { return !time.Now().Before(d.retry) }

// step makes the scopes those of the held shards now.
func (d *divider) step(ctx context.Context) {
	if !d.learn(ctx) || d.misuse != nil {
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
		step(ctx, fmt.Sprintf("turn %s %s", d.kind.Kind, d.object))
		d.turn(next)
	}
	d.dropped()
}

// learn asks the server what decide needs, and reports whether that is known.
func (d *divider) learn(ctx context.Context) (decided bool) {
	if d.decide() || !d.mayAsk() {
		return d.decided
	}
	step(ctx, "divide "+d.kind.Kind)
	_, err := d.discover(ctx)
	if err == nil && !d.decide() {
		err = fmt.Errorf("the server does not say what %s is", d.kind.Kind)
	}
	if ctx.Err() == nil {
		d.answered(ctx, err)
	}
	return d.decided
}

// next returns the division after before. It asks the server if that can have changed.
func (d *divider) next(ctx context.Context, before division) (next division) {
	of := d.of.now()
	next.Division, next.form = shards.Division{By: d.by, Count: of.count, Held: of.held}, before.form
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
	// Where the server was seen to select, the lists of new scopes show whether it still does.
	same := next.form == state.FormServer || next.Held == before.Held
	if next.Held == "" || !d.mayAsk() || !d.unverified && !relisted && same {
		return next
	}
	d.endLost(ctx, before, next)
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

// endLost ends what the server selects and next does not have, without a question.
func (d *divider) endLost(ctx context.Context, before, next division) {
	kept := before
	kept.Held = both(before.Held, next.Held)
	if before.form == state.FormServer && kept != before {
		step(ctx, fmt.Sprintf("end lost %s %s", d.kind.Kind, d.object))
		d.turn(kept)
	}
}

// ask asks the server whether it selects by shards. asked: there was a scope to ask about.
func (d *divider) ask(ctx context.Context, next division) (selects, asked bool, err error) {
	next.form = state.FormServer
	scope, ok := d.part(next)
	if !ok {
		return false, false, nil
	}
	lw, err := d.newListerWatcher(scope)
	if err != nil {
		return false, true, err
	}
	step(ctx, fmt.Sprintf("divide %s %s %s", d.kind.Kind, d.object, scope))
	page, err := lw.List(ctx, listwatch.ListOptions{Limit: 1})
	if apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) {
		return false, true, nil // a server of its own rules
	}
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
	log := d.log.WithValues("by", string(next.By), "shards", next.Count)
	switch {
	case next.form == state.FormServer && was == "", next.By == shards.Owner:
		log.V(1).Info("Divides the kind into shards", "form", next.form)
	case next.form == state.FormServer:
		log.Info("The server selects the objects of the held shards again")
	default:
		log.Info("The server does not select by shards, so the objects of other shards are dropped as they arrive; " +
			"enable ShardedListAndWatch on all API servers to save that traffic")
	}
}

// settled waits until the scopes are those of the shards held at the time of the call, or of a
// later time.
func (d *divider) settled(ctx context.Context) error {
	if !d.divides() {
		return nil
	}
	for want := d.of.now().held; ; want = d.of.now().held {
		turned := d.turned()
		now := d.now()
		if d.begun.Load() && !now.undecided && (now.Everything() || now.Held == want) {
			return nil
		}
		select {
		case <-turned:
		case <-d.ended:
			return errRunEnded
		case <-ctx.Done():
			err := context.Cause(ctx)
			return fmt.Errorf("its scopes are not those of the shards %s yet: %w", want, err)
		}
	}
}

// sharding is how a factory divides its kinds. The zero sharding: it does not. Safe for concurrent
// use.
type sharding struct {
	mu struct {
		sync.Mutex
		shardingNow
		begun bool // the factory runs
	}
}

type shardingNow struct {
	by    func(schema.GroupKind) shards.By
	count int
	held  shards.Set
}

func (s *sharding) now() shardingNow {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.shardingNow
}

// begin records that the factory runs.
func (s *sharding) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.begun = true
}

func (s *sharding) hold(held shards.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.held = held
}

// divide divides the kinds into count shards.
func (s *sharding) divide(count int, by func(schema.GroupKind) string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case by == nil:
		return errors.New("divide informers: the function is nil; " +
			"give one that returns by what a kind is divided")
	case count < 1 || count > shards.Most:
		return fmt.Errorf("divide informers into %d shards: give a number from 1 to %d",
			count, shards.Most)
	case s.mu.count != 0:
		return errors.New("divide informers: they are divided already; call Divide once")
	case s.mu.begun:
		return errors.New("divide informers: they run already; call Divide before Run")
	}
	s.mu.count = count
	s.mu.by = func(kind schema.GroupKind) shards.By { return shards.By(by(kind)) }
	return nil
}

// setOf returns the set of some shards.
func (s *sharding) setOf(what string, some []int) (shards.Set, error) {
	count := s.now().count
	if count == 0 {
		return "", fmt.Errorf("%s shards %v: the informers are not divided; call Divide before Run",
			what, some)
	}
	for _, shard := range some {
		if shard < 0 || shard >= count {
			return "", fmt.Errorf("%s shards %v: there is no shard %d; the informers have %d, from 0",
				what, some, shard, count)
		}
	}
	return shards.SetOf(some...), nil
}
