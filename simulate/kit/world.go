// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/aim"
	"github.com/flyball-dev/flyball/simulate/internal/seededrand"
)

// World is one run: a server, the programs under test, and virtual time. The scenario
// uses it in its own goroutine; checks run in others. All methods are safe for
// concurrent use, and those that change something block for a moment of virtual time.
type World struct {
	t       interface{ Error(args ...any) }
	cfg     Config
	seed    uint64
	server  *simulate.Server
	history *History

	clock    *clock
	record   *record
	programs *programs
	faults   *faults
	checks   *checks
	fields   *fields
	user     *user
	packs    bool          // the programs' informers are compact
	widens   time.Duration // after it informers of some fields keep all; 0: they do not

	mu struct {
		sync.Mutex
		gaveUp bool // a check of Never has failed, or there are too many events
		over   bool
	}
}

func newWorld(t *testing.T, cfg Config, h *History) *World {
	seed, _ := ofVariation(h.Seed)
	w := &World{t: t, cfg: cfg, seed: seed, history: h, programs: &programs{}, clock: newClock(t.Context(), seed, cfg.FaultPhase)}
	w.record = newRecord(h, w.clock.start, cfg.MaxEvents)
	w.checks = newChecks(w.record)
	w.server = simulate.New(simulate.Options{
		Kinds: cfg.Kinds, Namespaces: cfg.Namespaces, Seed: seed, Tracer: tracer{w}, DialWebhook: service{w.programs, w.clock.draws}.dial,
	})
	w.fields = newFields(w.server)
	w.packs = seededrand.Drawn(seed, "compact informers", 0)&1 == 1
	if seededrand.Drawn(seed, "wider informers", 0)&1 == 1 {
		w.widens = time.Second + time.Duration(seededrand.Drawn(seed, "wider informers", 1)%uint64(cfg.FaultPhase))
	}
	w.faults = newFaults(cfg, h.Plan, w.server, w.clock, w.record, w.programs)
	w.user = &user{server: w.server, clock: w.clock, patience: cfg.Quiesce}
	return w
}

// open prepares the cluster, and starts its actors.
func (w *World) open(t *testing.T) (err error) {
	w.cfg.definitions, w.cfg.webhooks = copies(w.cfg.definitions), copies(w.cfg.webhooks)
	if err := w.cfg.certify(w.clock.start, t); err != nil {
		return err
	}
	if w.user.client, err = client.New(&rest.Config{Host: "http://simulated", Transport: w.server.Direct("user")}, w.cfg.Scheme, client.Options{}); err != nil {
		return err
	}
	for _, own := range []struct{ kind, resource string }{{"Namespace", "namespaces"}, {"Service", "services"}} { // from before the Tracer was set
		for _, obj := range w.server.Objects(schema.GroupResource{Resource: own.resource}) {
			v, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
			w.record.add(Event{What: Changed, Who: "cluster", Kind: own.kind, Name: "created", Key: aim.KeyText(kube.KeyOf(obj)), UID: string(obj.GetUID()), Version: v})
		}
	}
	if err := w.user.installDefinitions(w.cfg.definitions); err != nil {
		return err
	}
	for _, obj := range w.cfg.Objects {
		if err := w.user.client.Create(w.clock.ctx, clone(obj)); err != nil {
			return fmt.Errorf("create an object of Config.Objects: %w%s", err, hint(err))
		}
	}
	if err := w.user.installWebhooks(w.cfg.webhooks); err != nil {
		return err
	}
	if w.cfg.Actors != (simulate.Actors{}) {
		w.clock.group.Go(func() {
			cluster := &process{w: w, name: "cluster"}
			if err := w.server.RunActors(simhook.With(w.clock.acting, cluster), w.cfg.Actors); err != nil {
				w.record.fail("misuse", err.Error())
			}
		})
	}
	return nil
}

// heal ends all faults for good. What was lost stays lost: connections in a black hole
// stay silent. Processes with state that they cannot detect as stale are restarted, as
// the documentation of a restore requires.
func (w *World) heal() {
	if !w.faults.heal() {
		return
	}
	for _, p := range w.programs.all() {
		life := p.alive()
		if life != nil && w.faults.misled() {
			w.clock.pause()
			life.crash()
			w.clock.pause() // gives its end an instant before the next one starts
			life = nil
		}
		if life != nil {
			life.heal()
		} else {
			p.restart()
		}
	}
	w.record.add(Event{What: Healed})
}

// giveUp ends all processes and actors for good after a check of Never has failed, or
// when there are too many events: the rest of the run adds nothing and may be long.
func (w *World) giveUp() {
	w.mu.Lock()
	again := w.mu.gaveUp
	w.mu.gaveUp = true
	w.mu.Unlock()
	if again {
		return
	}
	w.programs.close()
	w.clock.endActors()
	w.clock.pause()
	for _, p := range w.programs.running() {
		p.crash()
	}
}

func (w *World) gaveUp() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.gaveUp
}

// ended reports that the run is over, and fails the test if so.
func (w *World) ended() bool {
	w.mu.Lock()
	over := w.mu.over
	w.mu.Unlock()
	if over {
		w.t.Error("kit: a World is used after its run; use it in the scenario that it was given to, and in its checks")
	}
	return over
}

// Server returns the world's server, for its fault methods and for reading what is
// stored.
func (w *World) Server() *simulate.Server { return w.server }

// Client returns the user's client, which no fault affects. It reads the current state.
func (w *World) Client() *client.Client { return w.user.client }

// Seed returns the seed of the run, without the number of a variation: draws are the
// same in each variation.
func (w *World) Seed() uint64 { return w.seed }

// Draw returns a number in [0, n), by name and by how often that name was drawn. Draws
// of one name do not affect those of another. It is 0 if n is below 1.
func (w *World) Draw(name string, n int) int {
	return int(w.clock.draws.Next("scenario "+name) % uint64(max(n, 1)))
}

// Sleep lets virtual time pass.
func (w *World) Sleep(d time.Duration) {
	if !w.ended() {
		w.clock.rest("user", d)
	}
}

// Wait lets everything happen that is due now.
func (w *World) Wait() { synctest.Wait() }
