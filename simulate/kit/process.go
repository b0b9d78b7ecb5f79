// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate"
)

// process is one life of a program: a manager, what setup added to it, and the
// network between it and the server.
type process struct {
	w       *World
	program *program
	name    string
	network *simulate.Network
	end     context.CancelFunc
	ended   chan struct{} // closed when its manager has returned
	manager *manager.Manager
	mu      struct {
		sync.Mutex
		dead    bool          // it crashed: nothing that it does is seen
		until   time.Time     // it is held until then
		wrong   time.Duration // of its wall clock
		mishaps []mishap      // of the next reconciles
		busy    map[keyed]*attempt
		works   map[string]bool // controllers whose workers have begun
	}
}

// mishap is what happens to a reconcile before the user's code runs.
type mishap struct {
	panics bool
	hangs  time.Duration
}

// keyed is a key of a controller.
type keyed struct{ controller, key string }

// attempt is where a key stands.
type attempt struct {
	queued, running bool
	again           bool // with backoff, after a failure
}

func (a *attempt) idle() bool { return !a.queued && !a.running && !a.again }

// begin starts another life of the program.
func (p *program) begin() {
	w := p.w
	life := &process{w: w, program: p, network: simulate.NewNetwork(), ended: make(chan struct{})}
	life.mu.busy, life.mu.works = map[keyed]*attempt{}, map[string]bool{}
	p.mu.Lock()
	p.mu.lives = append(p.mu.lives, life)
	life.name = fmt.Sprintf("%s-%d", p.name, len(p.mu.lives))
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(simhook.With(w.ctx, life))
	life.end = cancel
	life.network.Pace(life.name, life.pace)
	w.note(Event{What: Started, Who: life.name})
	w.group.Go(func() {
		if err := w.server.Run(w.serving, life.network.Listener()); err != nil {
			w.fail("kit", fmt.Sprintf("serve %s: %v", life.name, err))
		}
	})
	w.group.Go(func() {
		defer cancel()
		lost := life.exited(life.run(ctx))
		close(life.ended)
		// Who has lost leadership ends, and the kubelet starts it anew.
		if lost && w.sleepUntil(w.ctx, w.instants.take(time.Now(), time.Now().Add(kubelets))) {
			p.restart()
		}
	})
}

// run is what main does.
func (p *process) run(ctx context.Context) error {
	opts := p.w.cfg.Manager
	opts.Scheme = p.w.scheme
	opts.Config = &rest.Config{Host: "http://simulated", Transport: &sender{p, p.transport()}, UserAgent: "simulated"}
	opts.MetricsAddress, opts.HealthAddress = "0", "0" // a bubble has no sockets
	opts.Logger = p.logger()
	opts.Informers.DetectMutations = informer.MutationDetection{Rate: 1, OnMutation: func(m informer.Mutation) {
		p.note(Event{What: Mutated, Kind: m.Kind.GroupKind().String(), Key: m.Key.String(), Text: m.String()})
	}}
	mgr, err := manager.New(opts)
	if err != nil {
		return err
	}
	if err := p.program.setup(mgr); err != nil {
		return fmt.Errorf("setup: %w", err)
	}
	p.mu.Lock()
	p.manager = mgr
	p.mu.Unlock()
	return mgr.Run(ctx)
}

// exited tells how the manager's Run ended, and whether that was for the loss of
// leadership, which excuses nothing that is left running.
func (p *process) exited(err error) (lost bool) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	p.w.note(Event{What: Exited, Who: p.name, Text: text})
	lost = errors.Is(err, manager.ErrLeadershipLost)
	p.mu.Lock()
	dead := p.mu.dead
	p.mu.dead = dead || lost
	p.mu.Unlock()
	if err != nil && !dead && (!lost || errors.Is(err, manager.ErrStillRunning)) {
		p.w.fail("V11", fmt.Sprintf("%s ended by itself: %v", p.name, err))
	}
	return lost && !dead
}

// kubelets take so long to start a process that has ended.
const kubelets = time.Second

// crash ends the process as a kill would: nothing that it does from now on is
// seen by anybody.
func (p *process) crash() {
	p.mu.Lock()
	p.mu.dead = true
	p.mu.Unlock()
	p.w.note(Event{What: Crashed, Who: p.name})
	p.network.Refuse(true)
	p.network.Cut()
	p.end()
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.dead
}

// refuse does nothing to a dead process: it is refused for ever.
func (p *process) refuse(refused bool) {
	if !p.isDead() {
		p.network.Refuse(refused)
	}
}

// hold has the process stand still for a time.
func (p *process) hold(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := p.w.within(d); until.After(p.mu.until) {
		p.mu.until = until
	}
}

// heal ends what goes wrong with the process.
func (p *process) heal() {
	p.mu.Lock()
	p.mu.until, p.mu.mishaps, p.mu.wrong = time.Time{}, nil, 0
	p.mu.Unlock()
	p.network.BlackHoleNew(false)
	p.network.Delay(0)
	p.refuse(false)
}

// heldUntil is until when it stands still; in the past: it does not. What has
// crashed does not: its connections break at once, and not after what it had sent.
func (p *process) heldUntil() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.dead {
		return time.Time{}
	}
	if world := p.w.heldUntil(); world.After(p.mu.until) {
		return world
	}
	return p.mu.until
}

func (p *process) misbehave(m mishap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.mishaps = append(p.mu.mishaps, m)
}

func (p *process) nextMishap() (m mishap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mu.mishaps) > 0 {
		m, p.mu.mishaps = p.mu.mishaps[0], p.mu.mishaps[1:]
	}
	return m
}

// logger writes what a person must know into the history.
func (p *process) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		p.note(Event{What: Logged, Text: prefix + args})
	}, funcr.Options{})
}

// note adds e to the history, unless the process is dead.
func (p *process) note(e Event) {
	if !p.isDead() {
		e.Who = p.name
		p.w.note(e)
	}
}
