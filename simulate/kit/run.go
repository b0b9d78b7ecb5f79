// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/internal/stacks"
)

// run makes one run in its own bubble. A bubble that cannot end is a violation too: a
// goroutine in it waits forever.
func run(t *testing.T, cfg Config, seed uint64, scenario func(*World)) *History {
	t.Helper()
	seed, nth := ofVariation(seed)
	var found probed
	if nth != 0 || cfg.Faults.hasWriteTrigger(seed) {
		var stuck *History
		if found, stuck = probe(t, cfg, seed, scenario); stuck != nil {
			return stuck
		}
	}
	plan := cfg.Faults.drawn(seed, found)
	if nth > 0 {
		plan = cfg.Faults.varied(plan, seed, nth, found)
	}
	h := play(t, cfg, newHistory(t, cfg, variation(seed, nth), plan), func(w *World) { w.play(scenario) })
	if !h.abandoned {
		h.checkInvariants()
	}
	return h
}

// probe returns the probe of a seed, or a history if the run did not end.
func probe(t *testing.T, cfg Config, seed uint64, scenario func(*World)) (probed, *History) {
	if found, known := cfg.probes.get(seed); known {
		return found, nil
	}
	h := play(t, cfg, newHistory(t, cfg, seed, Plan{}), func(w *World) { w.probe(scenario) })
	if h.abandoned {
		return probed{}, h
	}
	found := h.found(cfg.FaultPhase)
	cfg.probes.put(seed, found)
	return found, nil
}

// probe runs the world without faults to find its writes: it ends when the scenario's
// changes have been reconciled.
func (w *World) probe(scenario func(*World)) {
	done := make(chan struct{})
	w.clock.group.Go(func() {
		defer close(done)
		scenario(w)
	})
	<-done
	for !w.record.failed() && time.Now().Before(w.clock.healing) && w.restless() != "" {
		w.clock.rest("poll", polling)
	}
}

// play runs a world in its own bubble, and returns its history: h, or another if the
// bubble was abandoned.
func play(t *testing.T, cfg Config, h *History, life func(*World)) *History {
	var counter atomic.Uint64
	begun, ended := make(chan string, 1), make(chan string, 1)
	var name string // of the bubble, in stacks
	var bubble sync.WaitGroup
	bubble.Go(func() {
		reason := "the bubble could not end: its test has ended the goroutine"
		defer func() {
			if v := recover(); v != nil {
				reason = fmt.Sprintf("the bubble could not end: %v\n%s", v, leftInBubble(name))
			}
			ended <- reason
		}()
		synctest.Test(t, func(t *testing.T) {
			name = stacks.Bubble()
			begun <- name
			live(t, cfg, h, &counter, life)
		})
		reason = ""
	})
	reason := guardBubble(counter.Load, cfg.patience, begun, ended)
	if reason.Abandoned {
		h = newHistory(t, cfg, h.Seed, h.Plan) // the other may still be written to
		h.abandoned = true
	} else {
		bubble.Wait()
	}
	if reason.Text != "" {
		h.violate("V12", reason.Text, -1)
	}
	return h
}

func live(t *testing.T, cfg Config, h *History, moved *atomic.Uint64, life func(*World)) {
	w := newWorld(t, cfg, h)
	w.clock.instants.Count = moved
	defer w.leave()
	if err := w.open(t); err != nil {
		w.record.fail("kit", err.Error())
		w.stop()
		return
	}
	w.clock.group.Go(w.watchBound)
	life(w)
	w.stop()
}

// watchBound ends what goes on when the run has too many events. The scenario ends with
// its next action.
func (w *World) watchBound() {
	select {
	case <-w.record.full:
	case <-w.clock.ctx.Done():
		return
	}
	w.clock.pause()
	w.record.add(Event{What: Endless, Count: w.cfg.MaxEvents, Text: w.record.repeated()})
	w.giveUp()
}

// play runs a world: the scenario during the fault phase, then healing, coming to rest,
// and a period of time alone.
func (w *World) play(scenario func(*World)) {
	known := slices.Concat(w.server.Kinds(), w.faults.services.kinds())
	healing := w.clock.instants.Place(w.clock.start, w.clock.healing, "heal")
	for _, op := range w.history.Plan {
		w.faults.schedule(op)
	}
	done := make(chan struct{})
	w.clock.group.Go(func() {
		defer close(done)
		scenario(w)
	})
	w.clock.group.Go(func() { w.checks.watch(w.clock.ctx, w.giveUp) })
	w.clock.instants.SleepAs(w.clock.ctx, healing)
	w.heal()
	<-done
	if w.record.failed() {
		return
	}
	if len(w.programs.all()) == 0 {
		w.record.fail("misuse", "the scenario runs no program; call w.Run(setup) with the function that main calls")
		return
	}
	if text := w.cfg.Faults.strayed(w.programs.names(), slices.Concat(known, w.server.Kinds(), w.faults.services.kinds())); text != "" {
		w.record.fail("misuse", text)
		return
	}
	if w.gaveUp() {
		return
	}
	if w.comeToRest() {
		w.clock.rest("stay", w.cfg.Stay)
		w.checks.settled(true)
		w.record.add(Event{What: Finished})
	}
	w.programs.count()
}

// comeToRest waits until nothing moves any more and all checks of the scenario hold,
// within the bound.
func (w *World) comeToRest() bool {
	deadline := time.Now().Add(w.cfg.Quiesce)
	last, looks := w.clock.start, 0
	for wait := polling; ; wait = min(2*wait, rarely) {
		if w.gaveUp() {
			return false
		}
		why, settled := w.restless(), false
		if why == "" && looks < mostLooks && w.look() {
			looks++
			why = "keys were called for"
		}
		if why == "" {
			why, settled = w.checks.settled(false), true
			if why == "" {
				w.record.add(Event{What: Rest})
				return true
			}
		}
		if time.Now().After(deadline) {
			if !settled { // else the failing checks report it
				w.record.add(Event{What: Restless, Text: why + w.programs.unsettled(w.record)})
			}
			w.checks.settled(true)
			return false
		}
		if moved := w.record.lastMove(); moved.After(last) {
			wait, last = polling, moved
		}
		w.clock.rest("poll", wait)
	}
}

const (
	polling = 500 * time.Millisecond
	// still is how long nothing must have moved at rest.
	still = 3 * time.Second
)

// mostLooks is how often keys are called for: what is called again has written again.
const mostLooks = 5

// look calls for keys whose reconciles should find nothing to do. It reports whether there are
// any.
func (w *World) look() (any bool) {
	for _, life := range w.programs.running() {
		life.mu.Lock()
		keys := toLook(life.mu.busy)
		life.mu.Unlock()
		for _, one := range keys {
			any = true
			w.record.add(Event{What: Called, Who: life.name, Kind: one.controller, Key: strings.TrimPrefix(one.key, "/")})
			one.wake()
			w.clock.rest("look", stepping)
		}
	}
	return any
}

// AwaitRest blocks until nothing moves: no request is in flight, and no key waits for a worker.
// It returns empty then, and after most, in virtual time, what still moves.
func (w *World) AwaitRest(most time.Duration) (moves string) {
	for deadline := time.Now().Add(most); !w.ended() && !w.record.isFull(); {
		if moves = w.restless(); moves == "" || time.Now().After(deadline) {
			return moves
		}
		w.clock.rest("user", polling)
	}
	return "the run has ended"
}

// restless describes what moves; empty: nothing.
func (w *World) restless() string {
	least := still
	if w.record.drifts() {
		least = calm
	}
	if since := w.record.sinceMove(); since < least {
		return fmt.Sprintf("something happened %v ago", since)
	}
	for _, program := range w.programs.all() {
		if why := program.restless(); why != "" {
			return why
		}
	}
	return w.leaderless()
}

func (p *program) restless() string {
	life := p.alive()
	if life == nil {
		return "no process of " + p.name + " runs"
	}
	if life.stops() {
		return life.name + " is stopping"
	}
	if busy, one := life.standing(); busy > 0 {
		return fmt.Sprintf("%d keys of %s are in queues or with workers, such as %s", busy, life.name, one)
	}
	if p.isMain() {
		return p.w.record.behind(life.name)
	}
	s, ok := life.snapshot()
	if waiting := heldBack(s); waiting > 0 {
		return fmt.Sprintf("%d keys of %s are held back by sources that debounce", waiting, life.name)
	}
	if ok && controllersSynced(s) {
		return p.w.record.behind(life.name)
	}
	return "a controller's sources are not synced in " + life.name
}

// stop ends the processes, then the server, and waits for all.
func (w *World) stop() {
	w.heal()
	w.programs.close()
	w.record.add(Event{What: Stopping})
	for _, p := range w.programs.lives() {
		p.end()
		<-p.ended
		if open := p.network.Open() + p.inbound.Open(); !p.isDead() && open > 0 {
			w.record.add(Event{What: Leftover, Who: p.name, Name: "connections", Count: open})
		}
	}
	if w.record.drifts() {
		w.clock.rest("outlive", outlives)
	}
	synctest.Wait()
}

// leave ends everything else, after which the bubble can end.
func (w *World) leave() {
	w.mu.Lock()
	w.mu.over = true
	w.mu.Unlock()
	w.clock.end()
	w.clock.endServing()
	w.clock.group.Wait()
	w.record.close()
}

// newHistory returns the history of a run that has not begun.
func newHistory(t *testing.T, cfg Config, seed uint64, plan Plan) *History {
	h := &History{Test: t.Name(), Seed: seed, Go: runtime.Version(), Plan: plan, Bound: cfg.Quiesce, Audit: cfg.Manager.Informers.Audit, Lease: cfg.lease(), Sharing: cfg.sharing(), Unguarded: cfg.unguarded(), Timed: cfg.Timed, Converted: cfg.converted(), Inexact: cfg.inexact()}
	if info, ok := debug.ReadBuildInfo(); ok {
		h.Module = info.Main.Path + " " + info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				h.Commit = s.Value
			}
		}
	}
	return h
}

// Run makes one run of a seed. Failures are in the History and do not fail t. cfg is
// that of Test. Misuse of cfg is a violation.
func Run(t *testing.T, cfg Config, seed uint64, scenario func(*World)) *History {
	t.Helper()
	if !cfg.completed {
		cfg.Seeds = max(cfg.Seeds, 1)
		if _, _, err := cfg.complete(scenario == nil); err != nil {
			return &History{Test: t.Name(), Seed: seed, Violations: []Violation{{Invariant: "misuse", Text: err.Error(), Event: -1}}}
		}
	}
	return run(t, cfg, seed, scenario)
}
