// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/codec"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/internal/writegate"
)

// ErrAbandoned as the cause of the end of Run's context means that work on shards may go on: their
// Leases are not given away, and expire.
var ErrAbandoned = errors.New("the grace period has passed, and work on shards may go on")

// catchUpWithin bounds the wait for informers. Then the keys of a shard are reconciled with a warning.
const catchUpWithin = 15 * time.Second

// leaveWithin bounds the requests by which a process leaves at its end.
const leaveWithin = 5 * time.Second

// atOnce is how many requests are under way at most.
const atOnce = 16

// Agent takes part in the division of shards. Make it with New.
type Agent struct {
	*Options
	guard     *Guard
	gate      *writegate.Gate
	sender    *sender
	reconnect func()
	watched   *informer.SharedInformerFactory // the Leases
	joined    chan struct{}
	first     chan struct{} // closed when a shard is held for the first time
	signal    chan struct{}
	turns     chan struct{}
	log       logr.Logger
	sim       simhook.Hooks
	work      sync.WaitGroup

	mu struct {
		sync.Mutex
		book
	}
}

// New sends nothing. cfg must not be gated.
func New(opts Options, cfg *rest.Config, log logr.Logger) (*Agent, error) {
	gate := writegate.New(opts.trusted())
	a := &Agent{
		Options: &opts, gate: gate, guard: newGuard(opts.By, opts.Count, gate, opts.LeaseDuration),
		joined: make(chan struct{}), first: make(chan struct{}), signal: make(chan struct{}, 1), turns: make(chan struct{}, atOnce),
	}
	a.mu.book = newBook(&opts, a.guard, a.joined, a.wake)
	own, reconnect := writegate.OwnConnection(cfg)
	a.reconnect = reconnect
	own.UserAgent += "/shards"
	scheme, serializer, err := codec.For(coordinationv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	if a.sender, err = newSender(own, serializer, opts.Namespace); err != nil {
		return nil, err
	}
	if a.watched, err = informer.NewSharedInformerFactory(cfg, scheme, informer.Options{Logger: log.V(1)}); err != nil {
		return nil, err
	}
	found := informer.For[*coordinationv1.Lease](a.watched, informer.Scope{
		Namespaces: []string{opts.Namespace}, LabelSelector: Label + "=" + labelValue(opts.ID),
	})
	a.mu.leases = found.Lister()
	_, err = found.AddHandler(a.observeEvent, informer.HandlerOptions{Name: "shards"})
	return a, err
}

func (a *Agent) Name() string { return "shards" }

// Guard returns what admits the work on shards.
func (a *Agent) Guard() *Guard { return a.guard }

// Started is closed when this process has joined.
func (a *Agent) Started() <-chan struct{} { return a.joined }

// FirstHeld is closed when this process holds a shard for the first time.
func (a *Agent) FirstHeld() <-chan struct{} { return a.first }

// Leave gives all shards away as soon as their reconciles have ended, and takes no more. It does not
// block. The end of Run's context does it too.
func (a *Agent) Leave() {
	a.mu.Lock()
	defer a.unlock()
	if !a.mu.me.leaving {
		a.mu.me.leaving, a.mu.me.renewAt = true, time.Now()
		a.wake()
	}
}

// unlock releases the lock of mu, and then tells others what has changed for them.
func (a *Agent) unlock() {
	a.mu.Unlock()
	a.guard.tell()
}

func (a *Agent) wake() {
	select {
	case a.signal <- struct{}{}:
	default:
	}
}

// Run takes part until ctx ends, and then gives the shards away and leaves. Reconciles must have ended
// by then, unless ErrAbandoned is the cause.
func (a *Agent) Run(ctx context.Context) error {
	a.log = textlog.Throttled(logr.FromContextOrDiscard(ctx)).WithValues("shards", a.ID)
	a.sim = simhook.Of(ctx)
	a.mu.Lock()
	a.mu.log, a.mu.sim = a.log, a.sim
	a.mu.me.identity, a.mu.running, a.mu.begun = a.mu.newIdentity(), true, time.Now()
	a.log.Info("Taking part in the division of shards", "identity", a.mu.me.identity, "plan", a.plan().String())
	a.mu.Unlock()
	defer a.stopped()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer a.work.Wait()
	defer stop()
	var cutOff func(uint64, func())
	if a.sim != nil {
		a.gate.SetWall(a.sim.Wall)
		cutOff = func(number uint64, cancel func()) {
			a.work.Go(func() {
				a.instant(running, fmt.Sprint("cut off ", number))
				cancel()
			})
		}
	}
	a.guard.observe(a.wake, cutOff)
	a.work.Go(func() {
		if err := a.watched.Run(running); err != nil {
			a.log.Error(err, "Cannot watch the Leases of the shards")
		}
	})
	a.work.Go(func() { a.awaitList(running) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	ended, late := ctx.Done(), (<-chan time.Time)(nil)
	for !a.step(running, timer) {
		select {
		case <-late:
			why := a.unsettled()
			a.loseAll("this process has stopped")
			a.renewLast(running)
			textlog.Warn(a.log, nil, "Cannot give all shards away; the Lease of this replica will expire", "within", leaveWithin, "reason", why)
			return nil
		case <-ended:
			ended, late = nil, time.After(leaveWithin)
			if errors.Is(context.Cause(ctx), ErrAbandoned) {
				a.loseAll("this process has stopped")
				a.renewLast(running)
				textlog.Warn(a.log, nil, "Keeping the Leases of the shards until they expire, because work on them has not ended")
				return nil
			}
			a.Leave()
		case <-a.signal:
		case <-timer.C:
		}
	}
	return nil
}

// unsettled returns why some shards have not been given away.
func (a *Agent) unsettled() string {
	a.mu.Lock()
	defer a.unlock()
	for s, at := range a.mu.me.shards {
		if at == emptied && time.Now().Before(a.mu.me.arrives[s]) {
			return "a write was cut off shortly before, and may still arrive"
		}
	}
	return "requests for their Leases were not answered, or reconciles have not ended"
}

func (a *Agent) stopped() {
	a.mu.Lock()
	defer a.unlock()
	a.mu.running = false
}

// awaitList records that the watch has shown all Leases.
func (a *Agent) awaitList(ctx context.Context) {
	if _, err := a.watched.WaitForSync(ctx); err != nil {
		return
	}
	a.mu.Lock()
	defer a.unlock()
	a.mu.learnListed() // handlers may be told later
	a.mu.world.synced = true
	a.wake()
}

// step does what follows from what was seen. It reports whether this process has left.
func (a *Agent) step(ctx context.Context, timer *time.Timer) (left bool) {
	a.instant(ctx, "look")
	now := time.Now()
	a.mu.Lock()
	a.mu.me.idle = a.guard.idle()
	a.mu.me.arrives, a.mu.me.quiet = a.guard.arriving(now)
	_, a.mu.me.barred = a.mu.forbidden["update"]
	a.mu.reportForeign(now)
	d := a.decide(&a.mu.world, &a.mu.me, now)
	a.mu.report(d)
	a.mu.owners = d.owners
	for _, do := range d.actions {
		if until := a.mu.pausedUntil(do); now.Before(until) {
			d.after(until)
			continue
		}
		if do.do == quit && a.mu.me.lease == nil {
			continue
		}
		a.begin(ctx, do, now)
	}
	need := a.mu.needed(d.coming)
	left = a.mu.me.leaving && a.mu.me.lease == nil && len(a.mu.me.busy) == 0 && a.mu.world.synced
	asks := fmt.Sprint(need) != a.mu.asked
	a.mu.asked = fmt.Sprint(need)
	a.guard.expect(d.coming)
	a.unlock()
	if asks {
		if err := a.Informers.HoldShards(need...); err != nil {
			a.log.Error(err, "Cannot make the informers hold the objects of shards", "need", fmt.Sprint(need))
		}
	}
	a.mu.Lock()
	a.catchUpLocked(ctx) // after the informers know of the shards
	a.unlock()
	timer.Stop()
	if !d.wake.IsZero() {
		timer.Reset(time.Until(d.wake))
	}
	return left
}

// instant waits for an instant of its own, in a simulation.
func (a *Agent) instant(ctx context.Context, what string) {
	if a.sim != nil {
		a.sim.Step(ctx, "shards", what)
	}
}

// begin begins an action. Requests are sent in goroutines of their own.
func (a *Agent) begin(ctx context.Context, do action, now time.Time) {
	me := &a.mu.me
	switch do.do {
	case rejoin:
		a.mu.rejoin("its Lease was last renewed too long ago")
		return
	case adopt:
		a.mu.take(do.shard)
		return
	case empty:
		a.emptyLocked(do.shard)
		return
	case release:
		if !a.releasesLocked(do) {
			return
		}
	}
	me.busy[do.name] = true
	sent := a.gate.Now()
	identity := me.identity
	next := a.mu.next(do, now)
	within := max(a.LeaseDuration/5, time.Second)
	if do.do == renew && me.trusted(now) {
		within = a.renewalTime(me.trust.Sub(now), me.took)
	}
	a.work.Go(func() {
		a.instant(ctx, string(do.do)+" "+do.name)
		if do.do != join && do.do != renew { // they wait for nothing
			a.turns <- struct{}{}
			defer func() { <-a.turns }()
		}
		got, err := a.send(ctx, do, next, within)
		a.mu.Lock()
		defer a.unlock()
		defer a.wake()
		delete(a.mu.me.busy, do.name)
		a.mu.requests[string(do.do)]++
		if identity != a.mu.me.identity && do.do != collect && do.do != fence && do.do != fenceAbsent {
			return // of a life before
		}
		a.applyLocked(ctx, do, got, err, renewal{sent: sent, at: now})
	})
}

// send sends the request of an action.
func (a *Agent) send(ctx context.Context, do action, next *coordinationv1.Lease, within time.Duration) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var got *coordinationv1.Lease
	var err error
	if do.do == quit || do.do == collect {
		err = a.sender.remove(ctx, next)
	} else {
		got, err = a.sender.write(ctx, next)
	}
	if err != nil && !isAnswer(err) {
		a.reconnect()
	}
	return got, err
}

// loseAll shuts all shards.
func (a *Agent) loseAll(why string) {
	a.mu.Lock()
	defer a.unlock()
	a.mu.loseAll(why)
}

// renewLast renews this process's Lease when all shards are shut, if a write may arrive later than a
// lease duration after the last renewal: then the others end this process.
func (a *Agent) renewLast(ctx context.Context) {
	a.instant(ctx, "renew last")
	a.mu.Lock()
	now := time.Now()
	_, until := a.guard.arriving(now)
	name, joined := a.mu.me.identity, a.mu.me.lease != nil
	ends := a.mu.me.trust.Add(a.LeaseDuration - a.trusted())
	a.mu.Unlock()
	if !joined || !until.After(now) || !until.After(ends) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	get := func(ctx context.Context) (*coordinationv1.Lease, error) { return a.sender.get(ctx, name) }
	err := ChangeLease(ctx, a.Namespace+"/"+name, get, a.sender.write, func(*coordinationv1.Lease) {}, func(l *coordinationv1.Lease) (bool, error) {
		if ptr.Deref(l.Spec.HolderIdentity, "") != name {
			return false, nil
		}
		hold(l, name, a.LeaseDuration, simhook.Wall(a.sim))
		a.set(l, map[string]string{stateAnnotation: stateLeaving})
		return true, nil
	})
	if err != nil {
		a.log.Info("Cannot renew the Lease of this replica at its end, although a write may still arrive", "lease", a.Namespace+"/"+name, "reason", err.Error())
	}
}

// emptyLocked makes a shard empty: its reconciles end, and no more begin.
func (a *Agent) emptyLocked(s int) {
	me := &a.mu.me
	delete(a.mu.taken, s)
	me.worked[s], me.shards[s] = me.shards[s] == working, emptying
	done, identity := a.guard.drain(s), me.identity
	a.work.Go(func() {
		<-done
		a.mu.Lock()
		defer a.unlock()
		if a.mu.me.shards[s] == emptying && a.mu.me.identity == identity {
			a.mu.me.shards[s] = emptied
			a.wake()
		}
	})
}

// releasesLocked shuts a shard, which is empty. It reports whether its Lease is still to be freed.
func (a *Agent) releasesLocked(do action) bool {
	me := &a.mu.me
	a.guard.lose([]int{do.shard}, "it is given to another replica")
	if now := time.Now(); do.base.holder() == me.identity && me.shards[do.shard] == emptied {
		if now.Before(a.guard.arrives(do.shard, now)) { // one has begun since
			a.wake()
			return false
		}
	}
	if do.base == nil || do.base.holder() != me.identity {
		me.shards[do.shard] = elsewhere
		return false
	}
	me.shards[do.shard] = releasing
	return true
}

// catchUpLocked makes the informers catch up with the shards that were taken, and then holds them.
func (a *Agent) catchUpLocked(ctx context.Context) {
	if a.mu.catching || len(a.mu.taken) == 0 {
		return
	}
	a.mu.catching = true
	batch := slices.SortedFunc(maps.Values(a.mu.taken), func(x, y Taken) int { return cmp.Compare(x.Shard, y.Shard) })
	identity := a.mu.me.identity
	clear(a.mu.taken)
	a.work.Go(func() {
		begun := time.Now()
		batch, err := a.catchUp(ctx, batch)
		a.instant(ctx, "hold")
		a.mu.Lock()
		defer a.unlock()
		a.mu.catching = false
		a.wake()
		if identity != a.mu.me.identity || ctx.Err() != nil {
			return
		}
		if err != nil {
			textlog.Warn(a.log, err, "Reconciling the keys of shards although informers may be older than what their previous owners wrote last", "taken", len(batch))
		}
		a.holdLocked(batch, time.Since(begun))
	})
}

// catchUp waits until the informers have the shards of a batch, and what was written to them. It returns
// those that are still this process's.
func (a *Agent) catchUp(ctx context.Context, batch []Taken) (still []Taken, err error) {
	ctx, cancel := context.WithTimeout(ctx, catchUpWithin)
	defer cancel()
	for {
		batch = a.stillClaimed(batch)
		some := make([]int, len(batch))
		for i, t := range batch {
			some[i] = t.Shard
		}
		// If one of them is lost meanwhile, the others are waited for again.
		if err = a.Informers.AwaitShards(ctx, some...); err == nil || ctx.Err() != nil || len(a.stillClaimed(batch)) == len(batch) {
			break
		}
	}
	return batch, errors.Join(err, a.CatchUp(ctx, batch))
}

// stillClaimed returns those of a batch that this process has claimed, and has not lost and claimed again.
func (a *Agent) stillClaimed(batch []Taken) (still []Taken) {
	a.mu.Lock()
	defer a.unlock()
	for _, t := range batch {
		if _, again := a.mu.taken[t.Shard]; !again && a.mu.me.shards[t.Shard] == claimed {
			still = append(still, t)
		}
	}
	return still
}

// holdLocked opens the shards of a batch that are still this process's.
func (a *Agent) holdLocked(batch []Taken, took time.Duration) {
	if a.mu.me.leaving {
		return
	}
	var open []int
	for _, t := range batch {
		if _, again := a.mu.taken[t.Shard]; !again && a.mu.me.shards[t.Shard] == claimed {
			a.mu.me.shards[t.Shard] = working
			open = append(open, t.Shard)
			a.mu.recordMove(Move{Shard: t.Shard, From: t.Previous, To: a.mu.me.identity, Planned: t.Released, Took: took})
		}
	}
	if len(open) == 0 {
		return
	}
	a.guard.hold(open)
	a.log.Info("Holding shards", "shards", fmt.Sprint(open), "caughtUpWithin", took.String())
	select {
	case <-a.first:
	default:
		close(a.first)
	}
}
