// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/internal/writegate"
	"github.com/flyball-dev/flyball/reconcile"
)

// phase is what this process does with a shard.
type phase uint8

const (
	foreign  phase = iota // another one's, or nobody's
	coming                // assigned to this process, and not held yet
	held                  // keys are picked
	draining              // no key is picked; reconciles in flight go on
)

// Guard admits reconciles of the keys of held shards, and their requests. Its methods are safe for
// concurrent use and do not block. Those that change it call nothing that Changed was given: tell does.
type Guard struct {
	by    shards.By
	count int
	gate  *writegate.Gate
	lasts time.Duration // for how long the server may carry out a write that was cut off
	mu    struct {
		sync.Mutex
		shards  []guarded
		changed []*func()
		untold  bool // what changed has, since something did
		entered uint64
		lost    int    // reconciles in flight whose shard was lost
		ended   func() // called when there is none any more, and when a write ends whose shard is not held
		// cutOff calls cancel, which ends the context of a reconcile, at an instant of its own. Nil: there
		// is no simulation.
		cutOff func(number uint64, cancel func())
	}
}

// guarded is one shard.
type guarded struct {
	phase   phase
	term    uint64
	inside  map[*entry]struct{}
	emptied chan struct{}  // closed when inside is empty; nil: nobody waits
	why     string         // it is foreign
	drains  time.Time      // since when it is draining
	writes  map[uint64]int // in flight, by term
	unsure  time.Time      // until when a write of unknown outcome may arrive
}

// entry is a reconcile in flight.
type entry struct {
	cancel context.CancelCauseFunc
	number uint64
	lost   bool // its shard was lost
}

// newGuard returns a guard that holds no shard. lasts is for how long the server may carry out a write
// that was cut off.
func newGuard(by shards.By, count int, gate *writegate.Gate, lasts time.Duration) *Guard {
	g := &Guard{by: by, count: count, gate: gate, lasts: lasts}
	g.mu.shards = make([]guarded, count)
	gate.Also(g.allows)
	gate.Follow(g.writeBegun, g.writeEnded)
	return g
}

// By implements contextvalues.Shards.
func (g *Guard) By() (shards.By, int) { return g.by, g.count }

// Enter implements contextvalues.Shards.
func (g *Guard) Enter(ctx context.Context, shard int) (in context.Context, leave func(), later bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if shard < 0 || shard >= len(g.mu.shards) {
		return nil, nil, false
	}
	s := &g.mu.shards[shard]
	switch s.phase {
	case coming:
		return nil, nil, true
	case foreign, draining:
		return nil, nil, false
	}
	if s.inside == nil {
		s.inside = map[*entry]struct{}{}
	}
	g.mu.entered++
	e := &entry{number: g.mu.entered}
	in = contextvalues.WithShard(ctx, g, contextvalues.Shard{Number: shard, Term: s.term})
	in, e.cancel = context.WithCancelCause(in)
	s.inside[e] = struct{}{}
	return in, func() { g.leave(shard, e) }, false
}

func (g *Guard) leave(shard int, e *entry) {
	e.cancel(nil)
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &g.mu.shards[shard]
	if delete(s.inside, e); len(s.inside) == 0 && s.emptied != nil {
		close(s.emptied)
		s.emptied = nil
	}
	if len(s.inside) == 0 && s.phase != held {
		g.mu.untold = true // who waits for emptied, or ended, tells
	}
	if !e.lost {
		return
	}
	if g.mu.lost--; g.mu.lost == 0 && g.mu.ended != nil {
		g.mu.ended()
	}
}

// idle reports whether no reconcile is in flight whose shard was lost.
func (g *Guard) idle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.lost == 0
}

// writeBegun records that a write is in flight.
func (g *Guard) writeBegun(ctx context.Context) {
	shard, ok := contextvalues.ShardOf(ctx, g)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &g.mu.shards[shard.Number]
	if s.writes == nil {
		s.writes = map[uint64]int{}
	}
	s.writes[shard.Term]++
}

// writeEnded records that a write is not in flight any more. The server may still carry out one of
// unknown outcome.
func (g *Guard) writeEnded(ctx context.Context, outcome effects.Outcome) {
	shard, ok := contextvalues.ShardOf(ctx, g)
	if !ok {
		return
	}
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &g.mu.shards[shard.Number]
	if s.writes[shard.Term]--; s.writes[shard.Term] == 0 {
		delete(s.writes, shard.Term)
	}
	if outcome == effects.Unknown {
		s.unsure = now.Add(g.lasts)
	}
	if s.phase != held && g.mu.ended != nil {
		g.mu.ended()
	}
}

// arriving returns until when writes may still arrive at the server: of each shard, and of those that were
// lost. A time that has passed: none may. One in flight could be cut off now.
func (g *Guard) arriving(now time.Time) (of []time.Time, lost time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of = make([]time.Time, len(g.mu.shards))
	for shard := range g.mu.shards {
		s := &g.mu.shards[shard]
		of[shard] = g.arrivesLocked(s, now)
		if s.unsure.After(lost) {
			lost = s.unsure
		}
		for term := range s.writes {
			if term != s.term || s.phase != held && s.phase != draining {
				lost = of[shard]
			}
		}
	}
	return of, lost
}

// arrives is arriving of one shard.
func (g *Guard) arrives(shard int, now time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.arrivesLocked(&g.mu.shards[shard], now)
}

func (g *Guard) arrivesLocked(s *guarded, now time.Time) time.Time {
	if len(s.writes) > 0 {
		return now.Add(g.lasts)
	}
	return s.unsure
}

// Changed implements contextvalues.Shards.
func (g *Guard) Changed(f func()) (stop func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.changed = append(g.mu.changed, &f)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.mu.changed = slices.DeleteFunc(g.mu.changed, func(other *func()) bool { return other == &f })
	}
}

// Held returns the shards that this process holds, also those that it drains.
func (g *Guard) Held() []int {
	return g.in(func(p phase) bool { return p == held || p == draining })
}

// Works reports whether this process holds the shard and does not drain it.
func (g *Guard) Works(shard int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.shards[shard].phase == held
}

// Busy reports whether a reconcile of any shard may begin or is in flight. What Changed was given is
// called when that ends.
func (g *Guard) Busy() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.mu.shards, func(s guarded) bool {
		return s.phase == held || len(s.inside) > 0
	})
}

// drainsSince returns when the process began to drain a shard.
func (g *Guard) drainsSince(shard int) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.shards[shard].drains
}

// Open reports whether a write of a reconcile of a key of the shard would be allowed now.
func (g *Guard) Open(shard int) bool {
	g.mu.Lock()
	at := g.mu.shards[shard].phase
	g.mu.Unlock()
	_, err := g.gate.Ask()
	return err == nil && (at == held || at == draining)
}

func (g *Guard) in(is func(phase) bool) []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []int
	for shard, s := range g.mu.shards {
		if is(s.phase) {
			all = append(all, shard)
		}
	}
	return all
}

// expect makes exactly these shards, of those that are not held, about to be held.
func (g *Guard) expect(some []int) {
	g.set(func(shard int, s *guarded) (changed bool) {
		switch {
		case s.phase == foreign && slices.Contains(some, shard):
			s.phase = coming
		case s.phase == coming && !slices.Contains(some, shard):
			s.phase, s.why = foreign, "it is another replica's"
			return true
		}
		return false
	})
}

// hold opens shards.
func (g *Guard) hold(some []int) {
	g.set(func(shard int, s *guarded) bool {
		if !slices.Contains(some, shard) || s.phase == held {
			return false
		}
		s.phase = held
		s.term++
		return true
	})
}

// drain makes the guard admit no reconcile of a shard any more. done is closed when the last one has
// ended.
func (g *Guard) drain(shard int) (done <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &g.mu.shards[shard]
	if s.phase == held {
		s.phase, s.drains = draining, time.Now()
		g.mu.untold = true
	}
	if len(s.inside) == 0 {
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	if s.emptied == nil {
		s.emptied = make(chan struct{})
	}
	return s.emptied
}

// lose shuts shards, and ends the contexts of their reconciles.
func (g *Guard) lose(some []int, why string) {
	var late []*entry
	g.set(func(shard int, s *guarded) bool {
		if s.phase == foreign || !slices.Contains(some, shard) {
			return false
		}
		s.phase, s.why = foreign, why
		for e := range s.inside {
			if !e.lost {
				e.lost = true
				g.mu.lost++
			}
			late = append(late, e)
		}
		return true
	})
	g.mu.Lock()
	apart := g.mu.cutOff
	g.mu.Unlock()
	for _, e := range late {
		end := func() {
			e.cancel(fmt.Errorf("%w: this replica has lost the shard of the key: %s", reconcile.ErrNotLeading, why))
		}
		if apart == nil {
			end()
		} else {
			apart(e.number, end)
		}
	}
}

// observe sets what is called when no reconcile is in flight any more whose shard was lost. It does not
// block. cutOff is as in the field.
func (g *Guard) observe(ended func(), cutOff func(number uint64, cancel func())) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.ended, g.mu.cutOff = ended, cutOff
}

// set calls f for each shard. True: the shard has changed, and tell is to be called.
func (g *Guard) set(f func(shard int, s *guarded) (changed bool)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for shard := range g.mu.shards {
		g.mu.untold = f(shard, &g.mu.shards[shard]) || g.mu.untold
	}
}

// tell calls what Changed was given, if something has changed since. No lock may be held: these functions
// belong to others.
func (g *Guard) tell() {
	g.mu.Lock()
	var all []*func()
	if g.mu.untold {
		all = slices.Clone(g.mu.changed)
	}
	g.mu.untold = false
	g.mu.Unlock()
	for _, f := range all {
		(*f)()
	}
}

// allows returns why a write in ctx is not allowed. One that is not of a reconcile needs no shard.
// Nor does one of a reconcile of another manager in this process, whose shards are not those of g:
// a client of g's configuration asks g alone, as one of another cluster asks nobody. What stops
// such a write is that the context of the reconcile ends when its shard is lost.
func (g *Guard) allows(ctx context.Context) error {
	shard, ok := contextvalues.ShardOf(ctx, g)
	if !ok {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.mu.shards[shard.Number]
	if shard.Term == s.term && (s.phase == held || s.phase == draining) {
		return nil
	}
	return fmt.Errorf("%w: this replica has lost shard %d: %s", reconcile.ErrNotLeading, shard.Number, s.why)
}

// Refused returns how many writes were refused or aborted.
func (g *Guard) Refused() uint64 { return g.gate.Refused() }

// Given returns cfg for users: a client whose configuration has lost the gate gets no connection.
func (g *Guard) Given(cfg *rest.Config) *rest.Config { return g.gate.Given(cfg) }

// Gated returns a copy of cfg whose writes pass the gate.
func (g *Guard) Gated(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return g.gate.Wrap(next) })
	return cfg
}
