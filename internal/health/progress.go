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
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/go-logr/logr"
)

// patience is how long a reconcile may continue after its context was cancelled at the
// hard deadline, before its worker counts as lost.
const patience = time.Minute

// Limits of the stacks in an answer, so that a kubelet's Event has room for their first
// lines.
const (
	mostStacks   = 4       // of one controller, and of all informers
	longestStack = 4 << 10 // bytes of each
)

const (
	DefaultStuckAfter = 2 * time.Minute

	longestTick  = 5 * time.Second
	shortestTick = 10 * time.Millisecond
)

const electionCheck = "leader-election"

// fact is a standing with its meaning for the probes.
type fact struct {
	standing
	check string        // of /livez
	bound time.Duration // after which it counts as stuck; 0: never
	// inHand is for how long it has had its current work, by its own account, else
	// bound.
	inHand time.Duration
	text   func(stood time.Duration) string
	where  func() string // stacks of where it hangs; nil: unknown
	lost   *lostRun      // the reconcile that it is about; nil: none
}

// lostRun is a reconcile that ignores its hard deadline.
type lostRun struct {
	of  Controller
	at  reconcile.Snapshot
	run reconcile.Running
}

// Controller is a controller from the view of the probes.
type Controller interface {
	Snapshot() reconcile.Snapshot
	Stacks(before time.Time) map[string]string
}

// Subjects are the parts that must make progress. The functions are called at each
// look.
type Subjects struct {
	Controllers func() []Controller
	Informers   func() []informer.Progress
	Election    func() (Election, bool) // false: there is none
	Running     func() bool             // otherwise nothing counts as stuck
}

// Election shows whether an elector makes progress.
type Election struct {
	Lease       string
	Tries       uint64 // requests for the lease begun or ended
	Campaigning bool
	Watch       []informer.Progress // of the Lease

	LeaseDuration time.Duration
}

// Pulse monitors the progress of all parts.
type Pulse struct {
	After time.Duration // limit without progress; negative: none
	of    Subjects
	mu    struct {
		sync.Mutex
		still standstill
	}
}

// NewPulse returns a Pulse. It does not call the subjects yet.
func NewPulse(after time.Duration, of Subjects) *Pulse {
	p := &Pulse{After: after, of: of}
	p.mu.still.tick = longestTick
	if after > 0 {
		p.mu.still.tick = min(max(after/24, shortestTick), longestTick)
	}
	return p
}

// saturatedAfter returns the time after which a controller counts as saturated.
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

func (p *Pulse) stuck(f fact) error {
	stood := p.stands(f.standing)
	if f.bound <= 0 || stood < f.bound || f.inHand < f.bound {
		return nil
	}
	return stuckError{f, stood}
}

// stuckError takes stacks when its text is needed.
type stuckError struct {
	fact
	stood time.Duration
}

func (e stuckError) Error() string { return e.text(e.stood) + e.stacks() }

// stacks returns where it hangs, as a suffix of the text.
func (e stuckError) stacks() string {
	if e.where == nil {
		return ""
	}
	return e.where()
}

// report logs a stuck part and its stacks. In a simulation it omits stacks, because
// goroutine numbers and addresses differ from run to run.
func report(ctx context.Context, log logr.Logger, sim simhook.Hooks, e stuckError) {
	values := []any{"check", e.check}
	if sim != nil {
		sim.Step(ctx, "stuck", e.name)
	} else if stacks := e.stacks(); stacks != "" {
		values = append(values, "stack", strings.TrimLeft(stacks, ":; \n"))
	}
	log.Error(errors.New(e.text(e.stood)), "Something has stopped making progress; /livez fails until it moves", values...)
}

// Watch looks every tick until ctx ends, and logs stuck parts.
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

// workersFact returns the state of the workers of c, whose Snapshot is s. They progress
// when any of them begins or ends a reconcile, or sends a request or receives an
// answer.
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

func saturation(s reconcile.Snapshot, stood time.Duration) string {
	return fmt.Sprintf("none of %d workers has ended a reconcile or made a request for %v, while %d keys wait",
		s.Workers, stood.Round(time.Second), s.Queue.Ready)
}

// longest names the longest-running reconciles of s, with their stacks.
func longest(c Controller, s reconcile.Snapshot) string {
	if len(s.Running) == 0 {
		return ""
	}
	return "; the longest are " + describe(s.Running[:min(len(s.Running), mostStacks)], c.Stacks(time.Now()))
}

// lostFacts returns the reconciles of s that have ignored their hard deadline so far.
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
			where: func() string { return cut(c.Stacks(time.Now().Add(-s.HardDeadline))[r.ID]) },
			lost:  &lostRun{c, s, r},
		})
	}
	return all
}

// informerFacts returns the state of the tasks and handlers of an informer.
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

// whereabouts returns stacks of informers' goroutines for one answer or log line: the
// first few, from one dump, because each dump stops the process.
type whereabouts struct {
	dump  stacks.Dump
	given atomic.Int32
}

// of returns the stack of a goroutine, as a suffix of a text.
func (w *whereabouts) of(goroutine uint64) string {
	if goroutine == 0 || w.given.Add(1) > mostStacks {
		return ""
	}
	return ":\n" + cut(w.dump.Of(stacks.ID(goroutine)))
}

// electionFact returns the state of the elector: whether it requests or renews the
// lease.
func (p *Pulse) electionFact(e Election) fact {
	bound := 0 * time.Second
	if p.After > 0 {
		bound = max(p.After, e.LeaseDuration)
	}
	return fact{
		standing: standing{name: electionCheck, moves: e.Tries, waits: e.Campaigning},
		check:    electionCheck, bound: bound, inHand: bound,
		text: func(stood time.Duration) string {
			return fmt.Sprintf("lease %s has been neither requested nor renewed for %v", e.Lease, stood.Round(time.Second))
		},
	}
}

// Checks returns the checks of /livez, one for each kind, controller and elector.
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

func lostError(lost []lostRun) error {
	if len(lost) == 0 {
		return nil
	}
	var runs []reconcile.Running
	for _, l := range lost {
		runs = append(runs, l.run)
	}
	first := lost[0]
	return errors.New(lostText(first.at, runs, first.of.Stacks(time.Now().Add(-first.at.HardDeadline))))
}

// SaturationCheck returns the check of whether the workers of the controller make any
// progress.
func (p *Pulse) SaturationCheck(c Controller, s reconcile.Snapshot) Check {
	var err error
	if stood := p.stands(p.workersFact(c, s).standing); stood >= p.saturatedAfter() {
		err = errors.New(saturation(s, stood))
	}
	return Answered("saturation:"+s.Name, err)
}
