// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/embedded"
	"github.com/flyball-dev/flyball/simulate/internal/aim"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// children runs a program as a process of this machine, against a simulated server on loopback, in real time.
type children struct {
	programs   [][]string // the program and its arguments; others that run beside it
	env        []string
	crds       []*unstructured.Unstructured
	namespaces []string // that exist at the start
	hooks      hooks
	statuses   *simulate.Statuses
	restWithin time.Duration
	scratch    string       // a directory for kubeconfigs and the output of the program
	turns      sync.RWMutex // held by a run that is alone on this machine; others share it
	mu         struct {
		sync.Mutex
		number  int           // of runs
		alone   bool          // the program has a port that no two processes can share
		watched []string      // kinds that the program watches at the start
		learned bool          // a run without faults has ended
		gap     time.Duration // the longest without movement in a step that then went on
		polls   int           // requests of a program without faults that rests, within a second
	}
}

// play runs a walk with a plan. like is a run without faults; nil: this is the first one. A program whose port is in
// use gets another try, without other processes of it.
func (c *children) play(ctx context.Context, w walk, p plan, seed uint64, like *trial) (*trial, error) {
	leave, alone := c.enter()
	out, l, err := c.run(ctx, w, p, seed, like)
	leave()
	if alone || !l.portTaken() || ctx.Err() != nil {
		return out, err
	}
	c.mu.Lock()
	c.mu.alone = true
	c.mu.Unlock()
	return c.play(ctx, w, p, seed, like)
}

// enter waits until a run may begin.
func (c *children) enter() (leave func(), alone bool) {
	c.mu.Lock()
	alone = c.mu.alone
	c.mu.Unlock()
	if alone {
		c.turns.Lock()
		return c.turns.Unlock, true
	}
	c.turns.RLock()
	return c.turns.RUnlock, false
}

// run is one run: a server, the processes, and what the user does.
func (c *children) run(ctx context.Context, w walk, p plan, seed uint64, like *trial) (*trial, *life, error) {
	out := &trial{plan: p, seed: seed, peaks: map[ref]int64{}, requests: map[string]int{}}
	record := newRecorder(out, time.Now)
	l := c.newLife(record)
	control := aim.New(record, l, func(f aim.Fault) { record.happen(ofFaults, f.String()) })
	defer control.Close()
	opts := embedded.Options{Kubeconfig: filepath.Join(l.dir, "kubeconfig"), NoActors: true}
	var crds []*unstructured.Unstructured
	for _, crd := range c.crds {
		crds = append(crds, crd.DeepCopy())
		opts.CRDs = append(opts.CRDs, crds[len(crds)-1])
	}
	webhooks, err := c.hooks.serve(l.dir, crds)
	if err != nil {
		return out, l, err
	}
	opts.Manifests, opts.WebhookAddress, l.places = webhooks.manifests, webhooks.address, webhooks.places
	opts.Listen.Namespaces, opts.Listen.Seed, opts.Listen.Tracer = c.namespaces, seed, control
	err = embedded.Run(ctx, opts, func(ctx context.Context, cluster embedded.Cluster) error {
		user, err := client.New(&rest.Config{Host: "http://simulated", Transport: cluster.Server.Direct(user)}, clientscheme.Scheme, client.Options{})
		if err != nil {
			return err
		}
		record.begin(cluster.Server)
		out.begin(cluster.Server)
		cluster.Server.RefuseStreams(p.travels())
		l.server, l.kubeconfig = cluster.Server, cluster.Kubeconfig
		control.Begin(cluster.Server)
		var acting sync.WaitGroup
		defer acting.Wait()
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		acting.Go(func() {
			// Its options are valid.
			_ = cluster.Server.RunActors(ctx, simulate.Actors{GarbageCollector: true, Namespaces: true, Workloads: true, Delay: actorDelay, Statuses: c.statuses})
		})
		l.start()
		defer l.end()
		on := &inRealTime{ctx: ctx, in: c, life: l, control: control, record: record, user: user, plan: p}
		return out.live(ctx, w, on, like)
	})
	record.end()
	for _, text := range l.output.complaints() {
		out.addWrong(text)
	}
	out.write = l.output.keep
	return out, l, err
}

// actorDelay is the longest delay of a step of the cluster's controllers: nobody waits for Pods.
const actorDelay = 5 * time.Millisecond

// live plays a walk in real time, with the faults of the plan.
func (t *trial) live(ctx context.Context, w walk, on *inRealTime, like *trial) error {
	if moves := on.rest(func() bool { return like != nil }); moves != "" {
		if err := on.life.failed(mostEarlyExits); err != nil {
			return err
		}
		t.restless(moves, on.in.restWithin)
		return nil
	}
	on.in.learnWatched(on.record)
	now, later := aimed(t.plan)
	if err := on.control.Arm(now...); err != nil {
		return err
	}
	t.play(ctx, w, on, like)
	if t.refused != "" || ctx.Err() != nil {
		return ctx.Err()
	}
	last := len(w.steps) - 1
	expected := func() bool { return like.expects(last, t.content(on.server())) }
	if len(later) > 0 && t.ends[last] != nil {
		for i := range later {
			later[i].Amount = on.record.revisions(later[i].Amount)
		}
		if err := on.control.Arm(later...); err != nil {
			return err
		}
		on.rest(expected)
	}
	on.heal()
	if moves := on.rest(expected); moves != "" {
		t.restless(moves, on.in.restWithin)
		return nil
	}
	t.last = t.content(on.server())
	if len(t.plan.Faults) == 0 {
		on.in.learnGap(on.record) // before polls, which waits
	}
	t.polls = on.polls()
	return nil
}

func (t *trial) restless(moves string, within time.Duration) {
	t.addWrong(wrong{neverRests, fmt.Sprintf("the program does not come to rest within %s: %s", within, moves)})
}

// aimed returns the faults of a plan: those that wait for a write, or that follow another one, and those that happen
// when the program rests after the last step.
func aimed(p plan) (now, atRest []aim.Fault) {
	for _, op := range p.Faults {
		f := aim.Fault{
			Fault: string(op.Verb), Kind: op.Kind, For: aim.Duration(op.For), Amount: op.Amount, Code: op.Code,
			Before: op.When.Before, After: op.When.After, Nth: op.When.Nth, User: op.When.User, At: aim.Duration(op.When.At),
		}
		switch {
		case f.Before+f.After != "":
			now = append(now, f)
		case len(now) > 0:
			first := now[0]
			f.Before, f.After, f.Nth, f.User = first.Before, first.After, first.Nth, first.User
			now = append(now, f)
		default:
			f.At = 0
			atRest = append(atRest, f)
		}
	}
	return now, atRest
}

func (c *children) learnWatched(record *recorder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.watched == nil {
		c.mu.watched = record.watching()
	}
}

// learnGap learns how long a program without faults does nothing before it goes on.
func (c *children) learnGap(record *recorder) {
	_, gap := record.still()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.learned, c.mu.gap = true, max(c.mu.gap, gap)
}

// morePolls reports whether these are many requests within a second, and more than in runs without faults before.
func (c *children) morePolls(polls map[string]int, p plan) (more bool) {
	const few = 2
	n := 0
	for _, times := range polls {
		n += times
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	more = n > 2*c.mu.polls+few
	if more && len(p.Faults) == 0 {
		c.mu.polls = n
	}
	return more
}

// How long nothing must move at rest. These bound what follows from the longest pause of runs without faults.
const (
	// leastCalm is enough where the objects are those of a run without faults.
	leastCalm = 300 * time.Millisecond
	// unsureCalm is for runs without faults where they are not, and firstCalm for the first one.
	unsureCalm, firstCalm = 2 * time.Second, 4 * time.Second
	// patience is for runs with faults where they are not: the program may wait before it tries again.
	patience = 6 * time.Second
	// mostCalm bounds what is learned.
	mostCalm = 15 * time.Second
)

// calms returns how long nothing must move if the objects are as expected, and if they are not.
func (c *children) calms(p plan, own time.Duration) (expected, not time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gap, least := c.mu.gap, unsureCalm
	switch {
	case !c.mu.learned:
		gap, least = own, firstCalm
	case p.patient:
		least = c.restWithin * 3 / 4
	case len(p.Faults) > 0:
		least = patience
	}
	gap = min(gap*3/2, mostCalm)
	return max(gap, leastCalm), max(gap, least)
}

// inRealTime is a stage of processes.
type inRealTime struct {
	ctx     context.Context
	in      *children
	life    *life
	control *aim.Control
	record  *recorder
	user    *client.Client
	plan    plan
}

func (r *inRealTime) server() *simulate.Server { return r.life.server }
func (r *inRealTime) client() *client.Client   { return r.user }
func (r *inRealTime) begin(step int)           { r.record.next(step) }

func (r *inRealTime) pause(d time.Duration) { sleep(r.ctx, d) }

// hurry waits until what the plan has for this time happens.
func (r *inRealTime) hurry(time.Duration) {
	const most, then = 3 * time.Second, 200 * time.Millisecond
	for deadline := time.Now().Add(most); len(r.control.Happened()) == 0 && time.Now().Before(deadline) && r.ctx.Err() == nil; {
		sleep(r.ctx, looking)
	}
	sleep(r.ctx, then)
}

// heal ends the faults. What the program could not see meanwhile moves it again.
func (r *inRealTime) heal() {
	if r.control.Close(); r.plan.hides() {
		r.record.touch()
	}
}

// hides reports whether faults of the plan keep changes from the program.
func (p plan) hides() bool {
	return slices.ContainsFunc(p.Faults, func(op kit.Op) bool {
		return slices.Contains([]string{aim.Slow, aim.Coalesce, aim.TimeTravel}, string(op.Verb))
	})
}

const (
	looking = 20 * time.Millisecond
	// soon is how near steps of the cluster's controllers are that count as work. They try again, ever later,
	// what fails for good.
	soon = 5 * time.Second
	// watchesWithin is how long the program may take until it watches what it does without faults. It may not want to.
	watchesWithin = 5 * time.Second
)

// rest implements stage.
func (r *inRealTime) rest(expected func() bool) (moves string) {
	is, of := false, int64(-1) // the state that expected was asked about
	for begun := time.Now(); r.ctx.Err() == nil; sleep(r.ctx, looking) {
		why := r.works()
		silent, gap := r.record.still()
		quick, slow := r.in.calms(r.plan, gap)
		if why == "" && silent >= min(quick, slow) {
			if now := r.server().Revision(); now != of {
				is, of = expected(), now
			}
			if is || silent >= slow {
				return ""
			}
		}
		late := time.Since(begun) > r.in.restWithin
		if late && why == "" && silent >= unsureCalm {
			return ""
		}
		if err := r.life.failed(mostExits); err != nil {
			return err.Error()
		}
		if late {
			return cmp.Or(why, r.record.busiest())
		}
	}
	return searchEnded
}

// polls returns how often the program asks for the same at rest; nil: not more often than without faults.
func (r *inRealTime) polls() map[string]int {
	const lately = 250 * time.Millisecond
	if _, last := r.record.polls(); last > lately {
		return nil
	}
	r.record.touch()
	sleep(r.ctx, time.Second)
	polls, _ := r.record.polls()
	if !r.in.morePolls(polls, r.plan) {
		return nil
	}
	r.record.touch()
	sleep(r.ctx, window)
	polls, _ = r.record.polls()
	return mostPolls(polls)
}

// works says what is certainly not at rest; empty: nothing.
func (r *inRealTime) works() string {
	running, since := r.life.runs()
	due := r.server().ActorsDue()
	switch {
	case !running:
		return "the program is stopped or starts again"
	case r.record.asking():
		return "the program waits for the answer to a write"
	case r.control.Timed():
		return "a fault is to come"
	case !due.IsZero() && time.Until(due) < soon:
		return "the cluster's controllers have work: " + r.record.busiest()
	case since < watchesWithin && !r.in.watchesAll(r.record):
		return "the program does not watch all kinds yet"
	}
	return ""
}

func (c *children) watchesAll(record *recorder) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return record.watches(c.mu.watched)
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
