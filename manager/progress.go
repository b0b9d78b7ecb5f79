// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

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
)

const (
	defaultStuckAfter = 2 * time.Minute

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
	of  controller
	at  reconcile.Snapshot
	run reconcile.Running
}

// pulse looks at everything that must progress.
type pulse struct {
	after time.Duration // that something may stand still; negative: for ever
	mu    struct {
		sync.Mutex
		still standstill
	}
}

func newPulse(after time.Duration) *pulse {
	p := &pulse{after: after}
	p.mu.still.tick = longestTick
	if after > 0 {
		p.mu.still.tick = min(max(after/24, shortestTick), longestTick)
	}
	return p
}

// saturatedAfter is from when on a controller counts as saturated.
func (p *pulse) saturatedAfter() time.Duration {
	if p.after < 0 {
		return defaultStuckAfter / 2
	}
	return p.after / 2
}

func (p *pulse) tick() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.still.tick
}

func (p *pulse) look(facts []fact) {
	all := make([]standing, len(facts))
	for i, f := range facts {
		all[i] = f.standing
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.still.look(now, all)
}

func (p *pulse) skip() {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.still.skip(now)
}

func (p *pulse) stands(t standing) time.Duration {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.still.stands(now, t)
}

// stuck is why f is; nil: it is not.
func (p *pulse) stuck(f fact) error {
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
func (m *Manager) report(ctx context.Context, sim simhook.Hooks, e stuckError) {
	values := []any{"check", e.check}
	if sim != nil {
		sim.Step(ctx, "stuck", e.name)
	} else if stacks := e.stacks(); stacks != "" {
		values = append(values, "stack", strings.TrimLeft(stacks, ":; \n"))
	}
	m.log.Error(errors.New(e.text(e.stood)), "Something has stopped making progress; /livez fails until it moves", values...)
}

// watchProgress looks every tick until ctx ends, and logs what has become stuck.
func (m *Manager) watchProgress(ctx context.Context) {
	sim := simhook.Of(ctx)
	tick := m.pulse.tick()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	logged := map[string]bool{}
	for m.pulse.look(m.facts()); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if sim != nil && sim.Stands() {
			m.pulse.skip()
			continue
		}
		facts := m.facts()
		m.pulse.look(facts)
		for _, f := range facts {
			err := m.pulse.stuck(f)
			if stuck, is := errors.AsType[stuckError](err); is && !logged[f.name] {
				m.report(ctx, sim, stuck)
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
func (m *Manager) facts() []fact {
	var all []fact
	for _, r := range m.members() {
		if c, ok := r.runnable.(controller); ok {
			s := c.Snapshot()
			all = append(all, m.workersFact(c, s))
			all = append(all, lostFacts(c, s)...)
		}
	}
	where := &whereabouts{}
	count := map[string]int{}
	for _, p := range m.allProgress() {
		name := informerCheck(p)
		count[name]++
		all = append(all, m.informerFacts(name, fmt.Sprintf("%s#%d", name, count[name]), p, where)...)
	}
	if m.elector != nil {
		for i, p := range m.elector.watched.Progress() {
			all = append(all, m.informerFacts(electionCheck, fmt.Sprintf("%s#%d", electionCheck, i), p, where)...)
		}
		all = append(all, m.electionFact())
	}
	return all
}

func informerCheck(p informer.Progress) string { return "informer/" + p.Kind.GroupKind().String() }

// allProgress is that of the factory's informers and of those that were added.
func (m *Manager) allProgress() []informer.Progress {
	out := m.informers.Progress()
	for _, r := range m.members() {
		if i, ok := r.runnable.(progressing); ok {
			out = append(out, i.Progress())
		}
	}
	return out
}

// workersFact is how the workers of c stand, whose Snapshot is s. They move when any
// of them begins or ends a reconcile, or sends a request or has it answered.
func (m *Manager) workersFact(c controller, s reconcile.Snapshot) fact {
	bound := m.pulse.after
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
func longest(c controller, s reconcile.Snapshot) string {
	if len(s.Running) == 0 {
		return ""
	}
	return "; the longest are " + describe(s.Running[:min(len(s.Running), mostStacks)], stacksOf(c, time.Now()))
}

// lostFacts are the reconciles of s that have not heeded their hard deadline yet.
func lostFacts(c controller, s reconcile.Snapshot) []fact {
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
func (m *Manager) informerFacts(check, name string, p informer.Progress, where *whereabouts) []fact {
	bound := max(m.pulse.after, 0)
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
	for _, t := range p.Tasks {
		add("task "+t.Name, t.Begun, t.Running > 0, t.Running, t.Goroutine, func(stood time.Duration) string {
			return fmt.Sprintf("it has not finished to %s for %v: a function of the program that it calls does not return", t.Name, stood.Round(time.Second))
		})
	}
	for _, h := range p.Handlers {
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
func (m *Manager) electionFact() fact {
	l := m.elector.lease
	bound := 0 * time.Second
	if m.pulse.after > 0 {
		bound = max(m.pulse.after, m.elector.opts.LeaseDuration)
	}
	return fact{
		standing: standing{name: electionCheck, moves: l.tries.Load(), waits: m.elector.campaigning.Load()},
		check:    electionCheck, bound: bound, inHand: bound,
		text: func(stood time.Duration) string {
			return fmt.Sprintf("lease %s has neither been asked for nor renewed for %v", l.key, stood.Round(time.Second))
		},
	}
}

// progressChecks are the checks of /livez, one for each kind, controller and elector.
func (m *Manager) progressChecks() []check {
	phase, _ := m.phase()
	var names []string
	reasons, lost := map[string][]error{}, map[string][]lostRun{}
	for _, f := range m.facts() {
		if !slices.Contains(names, f.check) {
			names = append(names, f.check)
		}
		if phase != PhaseRunning {
			continue
		}
		if err := m.pulse.stuck(f); err != nil && f.lost != nil {
			lost[f.check] = append(lost[f.check], *f.lost)
		} else if err != nil {
			reasons[f.check] = append(reasons[f.check], err)
		}
	}
	var checks []check
	for _, name := range names {
		checks = append(checks, answered(name, errors.Join(append(reasons[name], lostError(lost[name]))...)))
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

// saturationCheck is whether the workers of the controller at s keep up at all.
func (m *Manager) saturationCheck(c controller, s reconcile.Snapshot) check {
	var err error
	if stood := m.pulse.stands(m.workersFact(c, s).standing); stood >= m.pulse.saturatedAfter() {
		err = errors.New(saturation(s, stood))
	}
	out := answered("saturation:"+s.Name, err)
	if m.readyWhenSaturated {
		out.passing = "Options.ReadyWhenSaturated"
	}
	return out
}
