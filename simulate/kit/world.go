// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/kit/internal/chance"
)

// World is one run: a server, the programs under test, and virtual time. The scenario
// uses it in its own goroutine; checks run in others. All methods are safe for
// concurrent use, and those that change something block for a moment of virtual time.
type World struct {
	t        interface{ Error(args ...any) }
	cfg      Config
	seed     uint64
	start    time.Time
	draws    *chance.Draws
	instants *chance.Instants
	scheme   *runtime.Scheme
	server   *simulate.Server
	client   *client.Client // the user's

	ctx, serving, faulty, acting          context.Context // of the run, of the server, of the faults, of the actors
	end, endServing, endFaults, endActors context.CancelFunc
	group                                 sync.WaitGroup
	changed                               chan struct{} // holds one token: the server has changed

	mu struct {
		sync.Mutex
		programs []*program
		did      map[string]int // counts of Do, by verb
		stopping bool           // no process starts any more
		over     bool
		until    time.Time // everything is held until then
		stood    time.Time // end of the last hold
		settled  []check
		never    []check
		neverWas bool // a check of Never has failed, or there are too many events
		slow     map[string]*slowness
	}
	history *History
	record  record
}

func newWorld(t *testing.T, cfg Config, h *History) *World {
	seed, _ := ofVariation(h.Seed)
	w := &World{
		t: t, cfg: cfg, seed: seed, start: time.Now(), draws: chance.NewDraws(seed), instants: chance.NewInstants(),
		scheme: cfg.Scheme, changed: make(chan struct{}, 1), history: h,
	}
	w.mu.did, w.mu.slow = map[string]int{}, map[string]*slowness{}
	w.record.begin()
	w.ctx, w.end = context.WithCancel(t.Context())
	w.serving, w.endServing = context.WithCancel(t.Context())
	w.faulty, w.endFaults = context.WithCancel(w.ctx)
	w.acting, w.endActors = context.WithCancel(w.ctx)
	return w
}

func (w *World) open(t *testing.T) error {
	w.server = simulate.New(simulate.Options{
		Kinds: w.cfg.Kinds, Namespaces: w.cfg.Namespaces, Seed: w.seed, Tracer: tracer{w}, DialWebhook: w.dialWebhook,
	})
	w.cfg.definitions, w.cfg.webhooks = copies(w.cfg.definitions), copies(w.cfg.webhooks)
	err := w.certify(t)
	if err != nil {
		return err
	}
	if w.client, err = client.New(&rest.Config{Host: "http://simulated", Transport: w.server.Direct("user")}, w.scheme, client.Options{}); err != nil {
		return err
	}
	for _, obj := range w.server.Objects(schema.GroupResource{Resource: "services"}) { // the cluster's own, from before the Tracer was set
		v, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
		w.note(Event{What: Changed, Who: "cluster", Kind: "Service", Name: "created", Key: keyText(obj.GetNamespace(), obj.GetName()), UID: string(obj.GetUID()), Version: v})
	}
	for _, crd := range w.cfg.definitions {
		text, err := crd.MarshalJSON()
		if err == nil {
			err = w.install("the CRD "+crd.GetName(), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", text)
		}
		if err != nil {
			return err
		}
	}
	for _, obj := range w.cfg.Objects {
		if err := w.client.Create(w.ctx, clone(obj)); err != nil {
			return fmt.Errorf("create an object of Config.Objects: %w%s", err, hint(err))
		}
	}
	if err := w.installWebhooks(); err != nil {
		return err
	}
	if w.cfg.Actors != (simulate.Actors{}) {
		w.group.Go(func() {
			cluster := &process{w: w, name: "cluster"}
			if err := w.server.RunActors(simhook.With(w.acting, cluster), w.cfg.Actors); err != nil {
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
	if !w.record.heal() {
		return
	}
	w.endFaults()
	w.mu.Lock()
	w.mu.until = time.Time{}
	w.mu.Unlock()
	w.server.Heal()
	for _, p := range w.programs() {
		life := p.alive()
		if life != nil && w.record.misled() {
			w.pause()
			life.crash()
			w.pause() // gives its end an instant before the next one starts
			life = nil
		}
		if life != nil {
			life.heal()
		} else {
			p.restart()
		}
	}
	w.note(Event{What: Healed})
}

// pause waits the shortest time, in which everything that can run does.
func (w *World) pause() {
	w.instants.Rest(w.ctx, "pause", 0)
}

func (w *World) hold(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.until = w.within(d)
	w.mu.stood = w.mu.until
}

func (w *World) stood() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.stood
}

// within returns d from now, or the end of the faults if that is earlier.
func (w *World) within(d time.Duration) time.Time {
	if end := w.start.Add(w.cfg.FaultPhase); time.Until(end) < d {
		return end
	}
	return time.Now().Add(d)
}

func (w *World) heldUntil() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.until
}

// stops reports whether the run ends, so that no process must start.
func (w *World) stops() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.stopping
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

func (w *World) kindOf(r schema.GroupResource) string { return w.server.KindOf(r).String() }

// Server returns the world's server, for its fault methods and for reading what is
// stored.
func (w *World) Server() *simulate.Server { return w.server }

// Client returns the user's client, which no fault affects. It reads the current state.
func (w *World) Client() *client.Client { return w.client }

// Seed returns the seed of the run, without the number of a variation: draws are the
// same in each variation.
func (w *World) Seed() uint64 { return w.seed }

// Draw returns a number in [0, n), by name and by how often that name was drawn. Draws
// of one name do not affect those of another. It is 0 if n is below 1.
func (w *World) Draw(name string, n int) int {
	return int(w.draws.Next("scenario "+name) % uint64(max(n, 1)))
}

// Sleep lets virtual time pass.
func (w *World) Sleep(d time.Duration) {
	if !w.ended() {
		w.instants.Rest(w.ctx, "user", d)
	}
}

// Wait lets everything happen that is due now.
func (w *World) Wait() { synctest.Wait() }

type slowness struct {
	resource schema.GroupResource
	by       time.Duration
	faults   int   // active
	known    int64 // revision
}

func (w *World) slow(r schema.GroupResource, by time.Duration) (over func()) {
	kind, now := w.kindOf(r), w.server.Revision()
	w.mu.Lock()
	s := w.mu.slow[kind]
	if s == nil {
		s = &slowness{resource: r, known: now}
		w.mu.slow[kind] = s
	}
	s.faults++
	s.by = by
	known := s.known
	w.mu.Unlock()
	w.server.LagKindTo(r, known)
	return func() { w.quickAgain(kind) }
}

// quickAgain ends one slow fault of a kind, and the slowness with the last of them.
func (w *World) quickAgain(kind string) {
	w.mu.Lock()
	s := w.mu.slow[kind]
	s.faults--
	last := s.faults == 0
	if last {
		delete(w.mu.slow, kind)
	}
	w.mu.Unlock()
	if last {
		w.server.CatchUpKind(s.resource)
	}
}

// slowly delays a change if its kind is slow. It does not block.
func (w *World) slowly(c simulate.Change) {
	kind := c.Kind.String()
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.mu.slow[kind]
	if s == nil {
		return
	}
	by := s.by
	w.group.Go(func() {
		if w.instants.Rest(w.faulty, fmt.Sprintf("slow %s %d", kind, c.Revision), by) {
			w.catchUp(kind, s, c.Revision)
		}
	})
}

// catchUp publishes a revision of a slow kind, unless it is no longer slow.
func (w *World) catchUp(kind string, s *slowness, revision int64) {
	w.mu.Lock()
	slow := w.mu.slow[kind] == s
	s.known = max(s.known, revision)
	known := s.known
	w.mu.Unlock()
	if slow {
		w.server.LagKindTo(s.resource, known)
	}
}
