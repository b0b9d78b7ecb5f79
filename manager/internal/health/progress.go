// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/stacks"
	"github.com/flyball-dev/flyball/manager/internal/election"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/go-logr/logr"
)

// patience is how long a reconcile may go on after its context was cancelled at
// the hard deadline, before its worker counts as lost.
const patience = time.Minute

// The stacks that an answer shows, so that a kubelet's event has room for their heads.
const (
	mostStacks   = 4       // of one controller, and of all informers
	longestStack = 4 << 10 // bytes of each
)

const (
	DefaultStuckAfter = 2 * time.Minute

	longestTick  = 5 * time.Second
	shortestTick = 10 * time.Millisecond
)

// electionCheck is the check of /livez for the elector.
const electionCheck = "leader-election"

// fact is a standing with what it means for the probes.
type fact struct {
	standing
	check string        // of /livez
	bound time.Duration // from which on it counts as stuck; 0: never
	// inHand is how long what it has in hand has been there, by its own account; a
	// thing that does not say gives its bound.
	inHand time.Duration
	text   func(stood time.Duration) string
	where  func() string // it hangs: stacks; nil: nobody knows
	lost   *lostRun      // it is about one reconcile; nil: it is not
}

// lostRun is a reconcile of a controller that does not heed its hard deadline.
type lostRun struct {
	of  Controller
	at  reconcile.Snapshot
	run reconcile.Running
}

// Controller is a controller as the probes see it. One that has a method Stacks,
// as reconcile.Controller, shows where its reconciles are.
type Controller interface{ Snapshot() reconcile.Snapshot }

// Subjects are what must progress, asked at each look.
type Subjects struct {
	Controllers func() []Controller
	Informers   func() []informer.Progress
	Election    func() (election.Progress, bool) // false: there is none
	Running     func() bool                      // otherwise nothing counts as stuck
}

// Pulse looks at everything that must progress.
type Pulse struct {
	After time.Duration // that something may stand still; negative: for ever
	of    Subjects
	mu    struct {
		sync.Mutex
		still standstill
	}
}

// NewPulse asks the subjects nothing yet.
func NewPulse(after time.Duration, of Subjects) *Pulse {
	p := &Pulse{After: after, of: of}
	p.mu.still.tick = longestTick
	if after > 0 {
		p.mu.still.tick = min(max(after/24, shortestTick), longestTick)
	}
	return p
}

// saturatedAfter is from when on a controller counts as saturated.
func (p *Pulse) saturatedAfter() time.Duration {
	if p.After < 0 {
		return DefaultStuckAfter / 2
	}
	return p.After / 2
}

func (p *Pulse) tick() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.still.tick
}

func (p *Pulse) look(facts []fact) {
	all := make([]standing, len(facts))
	for i, f := range facts {
		all[i] = f.standing
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.still.look(now, all)
}

func (p *Pulse) skip() {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.still.skip(now)
}

func (p *Pulse) stands(t standing) time.Duration {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.still.stands(now, t)
}

// stuck is why f is; nil: it is not.
func (p *Pulse) stuck(f fact) error {
	stood := p.stands(f.standing)
	if f.bound <= 0 || stood < f.bound || f.inHand < f.bound {
		return nil
	}
	return stuckError{f, stood}
}

// stuckError takes stacks when it is read.
type stuckError struct {
	fact
	stood time.Duration
}

func (e stuckError) Error() string { return e.text(e.stood) + e.stacks() }

// stacks are where it hangs, to follow the text.
func (e stuckError) stacks() string {
	if e.where == nil {
		return ""
	}
	return e.where()
}

// report logs what has become stuck, and where it hangs. A simulation is not shown the
// latter: the numbers of goroutines and the addresses in stacks differ from run to run.
func report(ctx context.Context, log logr.Logger, sim simhook.Hooks, e stuckError) {
	values := []any{"check", e.check}
	if sim != nil {
		sim.Step(ctx, "stuck", e.name)
	} else if stacks := e.stacks(); stacks != "" {
		values = append(values, "stack", strings.TrimLeft(stacks, ":; \n"))
	}
	log.Error(errors.New(e.text(e.stood)), "Something has stopped making progress; /livez fails until it moves", values...)
}

// Watch looks every tick until ctx ends, and logs what has become stuck.
func (p *Pulse) Watch(ctx context.Context, log logr.Logger) {
	sim := simhook.Of(ctx)
	tick := p.tick()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	logged := map[string]bool{}
	for p.look(p.facts()); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if sim != nil && sim.Stands() {
			p.skip()
			continue
		}
		facts := p.facts()
		p.look(facts)
		for _, f := range facts {
			err := p.stuck(f)
			if stuck, is := errors.AsType[stuckError](err); is && !logged[f.name] {
				report(ctx, log, sim, stuck)
			}
			logged[f.name] = err != nil
		}
		for name, is := range logged {
			if !is {
				delete(logged, name)
			}
		}
	}
}

// facts are how all that must progress stands.
func (p *Pulse) facts() []fact {
	var all []fact
	for _, c := range p.of.Controllers() {
		s := c.Snapshot()
		all = append(all, p.workersFact(c, s))
		all = append(all, lostFacts(c, s)...)
	}
	where := &whereabouts{}
	count := map[string]int{}
	for _, i := range p.of.Informers() {
		name := informerCheck(i)
		count[name]++
		all = append(all, p.informerFacts(name, fmt.Sprintf("%s#%d", name, count[name]), i, where)...)
	}
	if e, ok := p.of.Election(); ok {
		for n, i := range e.Watch {
			all = append(all, p.informerFacts(electionCheck, fmt.Sprintf("%s#%d", electionCheck, n), i, where)...)
		}
		all = append(all, p.electionFact(e))
	}
	return all
}

func informerCheck(p informer.Progress) string { return "informer/" + p.Kind.GroupKind().String() }

// workersFact is how the workers of c stand, whose Snapshot is s. They move when any
// of them begins or ends a reconcile, or sends a request or has it answered.
func (p *Pulse) workersFact(c Controller, s reconcile.Snapshot) fact {
	bound := p.After
	if limit := s.HardDeadline + patience; s.HardDeadlineChosen && bound > 0 {
		bound = max(bound, limit)
	}
	if s.HardDeadline < 0 || bound < 0 {
		bound = 0
	}
	check := "controller/" + s.Name
	return fact{
		standing: standing{
			name: check, moves: s.Moves,
			waits: s.Synced && s.Workers > 0 && s.Queue.Ready > 0 && max(s.Active, s.Queue.Held) >= s.Workers,
		},
		check: check, bound: bound, inHand: bound,
		text:  func(stood time.Duration) string { return saturation(s, stood) },
		where: func() string { return longest(c, s) },
	}
}

// saturation says how the workers of s have stood still.
func saturation(s reconcile.Snapshot, stood time.Duration) string {
	return fmt.Sprintf("none of %d workers has ended a reconcile or made a request for %v, while %d keys wait",
		s.Workers, stood.Round(time.Second), s.Queue.Ready)
}

// longest names the reconciles of s that run the longest, with their stacks.
func longest(c Controller, s reconcile.Snapshot) string {
	if len(s.Running) == 0 {
		return ""
	}
	return "; the longest are " + describe(s.Running[:min(len(s.Running), mostStacks)], stacksOf(c, time.Now()))
}

// lostFacts are the reconciles of s that have not heeded their hard deadline yet.
func lostFacts(c Controller, s reconcile.Snapshot) []fact {
	var all []fact
	for _, r := range s.Running {
		if s.HardDeadline <= 0 || time.Since(r.Since) < s.HardDeadline {
			continue
		}
		all = append(all, fact{
			standing: standing{name: "controller/" + s.Name + "/" + r.ID, waits: true},
			check:    "controller/" + s.Name, bound: patience, inHand: patience,
			text:  func(time.Duration) string { return lostText(s, []reconcile.Running{r}, nil) },
			where: func() string { return cut(stacksOf(c, time.Now().Add(-s.HardDeadline))[r.ID]) },
			lost:  &lostRun{c, s, r},
		})
	}
	return all
}

// informerFacts are how the tasks and handlers of an informer stand.
func (p *Pulse) informerFacts(check, name string, i informer.Progress, where *whereabouts) []fact {
	bound := max(p.After, 0)
	var all []fact
	count := map[string]int{}
	add := func(what string, moves uint64, waits bool, inHand time.Duration, by uint64, text func(stood time.Duration) string) {
		count[what]++
		all = append(all, fact{
			standing: standing{name: fmt.Sprintf("%s/%s#%d", name, what, count[what]), moves: moves, waits: waits},
			check:    check, bound: bound, inHand: inHand, text: text,
			where: func() string { return where.of(by) },
		})
	}
	for _, t := range i.Tasks {
		add("task "+t.Name, t.Begun, t.Running > 0, t.Running, t.Goroutine, func(stood time.Duration) string {
			return fmt.Sprintf("it has not finished to %s for %v: a function of the program that it calls does not return", t.Name, stood.Round(time.Second))
		})
	}
	for _, h := range i.Handlers {
		waits := h.Running > 0 && (h.Backlog > 0 || !h.Synced)
		add("handler "+h.Name, h.Delivered, waits, h.Running, h.Goroutine, func(stood time.Duration) string {
			return fmt.Sprintf("handler %q, or a mapper or predicate that it calls, has not returned for %v, while %d events wait",
				h.Name, stood.Round(time.Second), h.Backlog)
		})
	}
	return all
}

// whereabouts says where goroutines of informers are, for one answer or log: the first
// few, out of one dump, since each dump halts the process.
type whereabouts struct {
	dump  stacks.Dump
	given atomic.Int32
}

// of is the stack of a goroutine, to follow a text.
func (w *whereabouts) of(goroutine uint64) string {
	if goroutine == 0 || w.given.Add(1) > mostStacks {
		return ""
	}
	return ":\n" + cut(w.dump.Of(stacks.ID(goroutine)))
}

// electionFact is how the elector stands: it asks for the lease or renews it.
func (p *Pulse) electionFact(e election.Progress) fact {
	bound := 0 * time.Second
	if p.After > 0 {
		bound = max(p.After, e.LeaseDuration)
	}
	return fact{
		standing: standing{name: electionCheck, moves: e.Tries, waits: e.Campaigning},
		check:    electionCheck, bound: bound, inHand: bound,
		text: func(stood time.Duration) string {
			return fmt.Sprintf("lease %s has neither been asked for nor renewed for %v", e.Lease, stood.Round(time.Second))
		},
	}
}

// Checks are those of /livez, one for each kind, controller and elector.
func (p *Pulse) Checks() []Check {
	running := p.of.Running()
	var names []string
	reasons, lost := map[string][]error{}, map[string][]lostRun{}
	for _, f := range p.facts() {
		if !slices.Contains(names, f.check) {
			names = append(names, f.check)
		}
		if !running {
			continue
		}
		if err := p.stuck(f); err != nil && f.lost != nil {
			lost[f.check] = append(lost[f.check], *f.lost)
		} else if err != nil {
			reasons[f.check] = append(reasons[f.check], err)
		}
	}
	var checks []Check
	for _, name := range names {
		checks = append(checks, Answered(name, errors.Join(append(reasons[name], lostError(lost[name]))...)))
	}
	return checks
}

// lostError is about all lost reconciles of a controller.
func lostError(lost []lostRun) error {
	if len(lost) == 0 {
		return nil
	}
	var runs []reconcile.Running
	for _, l := range lost {
		runs = append(runs, l.run)
	}
	first := lost[0]
	return errors.New(lostText(first.at, runs, stacksOf(first.of, time.Now().Add(-first.at.HardDeadline))))
}

// SaturationCheck is whether the workers of the controller at s keep up at all.
func (p *Pulse) SaturationCheck(c Controller, s reconcile.Snapshot) Check {
	var err error
	if stood := p.stands(p.workersFact(c, s).standing); stood >= p.saturatedAfter() {
		err = errors.New(saturation(s, stood))
	}
	return Answered("saturation:"+s.Name, err)
}
