// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/codec"
	"github.com/flyball-dev/flyball/internal/ownership"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/internal/writegate"
	"github.com/flyball-dev/flyball/kube"
)

// ErrLeadershipLost is wrapped by the error of Run when this process led and another
// may lead now.
var ErrLeadershipLost = errors.New("leadership lost")

// ErrAbandoned ends the contexts of stages when the grace period has passed: guarded
// work may continue, so the lease is not released.
var ErrAbandoned = ownership.ErrAbandoned

// Options of an Elector. All fields but Identity are set and valid.
type Options struct {
	// Lease by its namespace and name.
	Lease kube.Key
	// Identity of this process, to which a random suffix is added. Empty: the host
	// name.
	Identity string

	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	// Sign completes a Lease that is about to be written for holder. Nil: nothing to do.
	Sign func(l *coordinationv1.Lease, holder string, what LeaseWrite)
	// Shown is called with each Lease that this process reads, writes or is shown by its watch, in
	// any order and from several goroutines; with that by which it leads before Started. Nil:
	// nothing to do.
	Shown func(l *coordinationv1.Lease)
}

// trusted returns how long after a renewal was sent the lease is trusted. The rest
// allows for requests on their way, and for clock drift.
func (o Options) trusted() time.Duration { return o.LeaseDuration * 9 / 10 }

// State is an election as one process sees it. Lease is namespace/name; Identity is
// empty before the process takes part, Holder if none was seen.
type State struct {
	Lease    string
	Identity string
	Leading  bool
	Holder   string
	// Since is when the Holder took the lease, by its clock; zero: not known.
	Since time.Time
	// Refused is why the server refuses this process's requests for the Lease, since
	// RefusedSince. Nil: it does not.
	Refused      error
	RefusedSince time.Time
}

// Progress shows whether an elector makes progress.
type Progress struct {
	Lease       string
	Tries       uint64 // requests for the lease begun or ended
	Campaigning bool
	Watch       []informer.Progress // of the Lease

	LeaseDuration time.Duration
}

// Elector takes part in the election. It has started when this process leads, and
// releases the lease when its context ends.
type Elector struct {
	opts    Options
	lease   *lease
	watched *informer.SharedInformerFactory // only the Lease
	started chan struct{}
	once    sync.Once     // closes started
	sim     simhook.Hooks // set by Run; nil: none

	campaigning atomic.Bool
}

// New sends nothing. cfg must not be gated.
func New(opts Options, cfg *rest.Config, log logr.Logger) (*Elector, error) {
	e := &Elector{opts: opts, started: make(chan struct{})}
	renewing, reconnect := writegate.OwnConnection(cfg)
	renewing.UserAgent += "/leader-election"
	renewing.Timeout = max(opts.RenewDeadline/3, time.Second) // one request that hangs leaves time for another
	scheme, serializer, err := codec.For(coordinationv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	client, err := newSender(renewing, serializer, opts.Lease)
	if err != nil {
		return nil, err
	}
	e.lease = &lease{
		client:    client,
		reconnect: reconnect,
		key:       opts.Lease,
		gate:      writegate.New(opts.trusted()),
		sign:      opts.Sign,
		shown:     opts.Shown,
	}
	e.watched, err = informer.NewSharedInformerFactory(cfg, scheme, informer.Options{Logger: log.V(1)})
	if err != nil {
		return nil, err
	}
	found := informer.For[*coordinationv1.Lease](e.watched, informer.Scope{
		Namespaces: []string{opts.Lease.Namespace}, FieldSelector: "metadata.name=" + opts.Lease.Name,
	})
	_, err = found.AddHandler(e.observeLease, informer.HandlerOptions{Name: "elector"})
	return e, err
}

// observeLease handles an event of the Lease's watch.
func (e *Elector) observeLease(event kube.Event[*coordinationv1.Lease]) {
	if event.Type == kube.Deleted {
		e.lease.gone(event.Old)
		return
	}
	e.lease.learn(event.New, false)
}

func (e *Elector) Name() string { return "leader election" }

// Given returns cfg for users: a client whose configuration has lost the gate gets no
// connection.
func (e *Elector) Given(cfg *rest.Config) *rest.Config { return e.lease.gate.Given(cfg) }

// Gated returns a copy of cfg whose writes pass the gate.
func (e *Elector) Gated(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(e.lease.gate.Wrap)
	return cfg
}

// State returns the election as this process sees it.
func (e *Elector) State() State { return e.lease.state() }

// Refused returns how many writes were refused or aborted because the lease was not
// trusted.
func (e *Elector) Refused() uint64 { return e.lease.gate.Refused() }

// Progress returns the progress of the elector and its watch of the Lease.
func (e *Elector) Progress() Progress {
	return Progress{
		Lease: e.lease.key.String(), Tries: e.lease.tries.Load(), Campaigning: e.campaigning.Load(),
		Watch: e.watched.Progress(), LeaseDuration: e.opts.LeaseDuration,
	}
}

// Predecessor returns the Lease as it was when this process took it over, once it leads;
// nil: there was none.
func (e *Elector) Predecessor() *coordinationv1.Lease { return e.lease.predecessor() }

// Started is closed when this process leads.
func (e *Elector) Started() <-chan struct{} { return e.started }

// Run takes part in the election until ctx ends, then releases the lease if it holds
// it. It returns ErrLeadershipLost as soon as the lease is lost.
func (e *Elector) Run(ctx context.Context) error {
	log := textlog.Throttled(logr.FromContextOrDiscard(ctx)).WithValues("lease", e.lease.key.String())
	e.prepare(simhook.Of(ctx))
	me := &candidate{lease: e.lease, opts: e.opts, changed: func(leader string) { log.Info("Leader elected", "leader", leader) }}
	me.refused = func(err error) {
		textlog.Warn(log, err, "The server refuses the requests for the lease; this process cannot lead")
	}
	log.Info("Waiting to become the leader", "identity", e.lease.Identity())
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		if err := e.watched.Run(watching); err != nil {
			log.Error(err, "Cannot watch the lease; a failover takes some seconds longer")
		}
	})
	defer watch.Wait()
	defer stop()
	if err := e.campaign(logr.NewContext(ctx, log.V(1)), me); err != nil {
		return err
	}
	return e.retire(ctx, log)
}

// prepare sets the identity of this process, and the clock of the gate.
func (e *Elector) prepare(sim simhook.Hooks) {
	e.sim = sim
	name, chance := e.opts.Identity, ""
	if sim != nil {
		chance = fmt.Sprintf("%08x", uint32(sim.Random("leader election")*(1<<32)))
		e.lease.gate.SetWall(sim.Wall)
	} else {
		chance = strings.ToLower(rand.Text()[:10])
		if host, err := os.Hostname(); name == "" && err == nil {
			name = host
		}
	}
	name = cmp.Or(name, "replica")
	e.lease.setIdentity(name + "_" + chance)
}

// campaign competes for the lease, anew when the watch has woken it, and keeps it, until
// ctx ends or the lease is lost.
func (e *Elector) campaign(ctx context.Context, me *candidate) error {
	e.campaigning.Store(true)
	defer e.campaigning.Store(false)
	for {
		round, end := context.WithCancelCause(ctx)
		e.lease.begin(end)
		e.alarm(round)
		if me.acquire(round) {
			e.once.Do(func() { close(e.started) })
			me.renew(round)
		}
		cause := context.Cause(round)
		end(nil)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(cause, errWoken):
			continue
		case cause == nil:
			cause = fmt.Errorf("it could not be renewed for %v", e.opts.RenewDeadline)
		}
		e.lease.drop("leadership was lost: " + cause.Error())
		return fmt.Errorf("%w: lease %s: %w", ErrLeadershipLost, e.lease.key, cause)
	}
}

// alarm lets a simulation decide when a standby tries again in this round. It does not
// interrupt a claim in flight, which may fail later. It is earlier than the random time of
// the candidate.
func (e *Elector) alarm(round context.Context) {
	if e.sim == nil {
		return
	}
	half := e.opts.RetryPeriod / 2
	time.AfterFunc(half+simhook.Duration(e.sim, "leader election retry", half), func() {
		if round.Err() == nil {
			e.lease.wake()
		}
		if round.Err() == nil {
			e.alarm(round)
		}
	})
}

// retire releases the lease after the last write in flight has been answered, and not
// if guarded work may continue or the outcome of a write is unknown.
func (e *Elector) retire(ctx context.Context, log logr.Logger) error {
	if !e.lease.drop("this process has stopped leading") {
		return nil
	}
	if errors.Is(context.Cause(ctx), ErrAbandoned) {
		textlog.Warn(log, nil, "Keeping the lease until it expires, because guarded work has not ended")
		return nil
	}
	if !e.lease.gate.Drain(e.opts.LeaseDuration) {
		textlog.Warn(log, nil, "Keeping the lease until it expires, because a write was cut off shortly before and may still arrive")
		return nil
	}
	if err := e.lease.release(context.WithoutCancel(ctx)); err != nil {
		textlog.Warn(log, err, "Cannot release the lease; it will expire")
		return nil
	}
	log.Info("Released the lease")
	return nil
}
