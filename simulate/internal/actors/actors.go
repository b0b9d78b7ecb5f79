// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package actors is what works in a cluster besides the API server: the garbage
// collector, the keeper of namespaces, the controllers of workloads, the
// scheduler and the kubelets. They see the server through Cluster and know
// nothing of how it stores or serves. One goroutine takes all steps; when each
// is taken depends on the seed.
package actors

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/simhook"

	"github.com/flyball-dev/flyball/simulate/internal/keyed"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// Options say which actors work, and how fast: see Actors of package
// simulate.
type Options struct {
	GarbageCollector, Namespaces, Workloads bool
	Delay                                   time.Duration
}

const (
	usualDelay = 50 * time.Millisecond
	// longestRetry is how long an actor waits at most after a failure.
	longestRetry = 1000 * time.Second
)

// Reference names an object in the store.
type Reference struct {
	schema.GroupResource
	types.NamespacedName
}

// String is unique for each reference.
func (r Reference) String() string {
	return r.GroupResource.String() + " " + r.NamespacedName.String()
}

// actor does one kind of work. It is told of each change, and asked to look at
// what it has named then. Only the goroutine of RunActors calls it.
type actor interface {
	name() string
	// heed tells of a change. look names what to look at because of it.
	heed(c revisions.Change, look func(Reference))
	// act brings what depends on an object a step nearer to what is wanted. A
	// positive again asks for another look after so long.
	act(ctx context.Context, about Reference) (again time.Duration, err error)
}

// company are the actors of one run and what they share.
type company struct {
	cluster  Cluster
	seed     uint64
	hooks    simhook.Hooks // nil: outside of a simulation
	delay    time.Duration
	actors   map[string]actor
	order    []actor
	index    *objectIndex
	timeline timeline
	steps    map[errand]int // taken so far; decides what is drawn for the next
	failures map[errand]int // in a row
	readings map[Reference]reading
	news     []news // guarded by the lock under which the cluster's observers are called
}

// news is a change and when it was made.
type news struct {
	at time.Time
	revisions.Change
}

// Run has actors work on a cluster until ctx ends, in the caller's
// goroutine.
func Run(ctx context.Context, cluster Cluster, seed uint64, opts Options) error {
	if opts.Delay < 0 {
		return errors.New("run actors: Delay is negative; 0 is 50 ms")
	}
	c := newCompany(cluster, seed, opts)
	c.hooks = simhook.Of(ctx)
	defer c.enter()()
	for ctx.Err() == nil {
		for _, n := range c.await(ctx) {
			c.heed(n)
		}
		if e, due := c.timeline.take(time.Now()); due && ctx.Err() == nil {
			c.step(ctx, e)
		}
	}
	return nil
}

func newCompany(cluster Cluster, seed uint64, opts Options) *company {
	c := &company{
		cluster: cluster, seed: seed, delay: opts.Delay, actors: map[string]actor{}, index: newObjectIndex(),
		steps: map[errand]int{}, failures: map[errand]int{}, readings: map[Reference]reading{},
	}
	if c.delay == 0 {
		c.delay = usualDelay
	}
	if opts.GarbageCollector {
		c.order = append(c.order, collector{c})
	}
	if opts.Namespaces {
		c.order = append(c.order, namespaceKeeper{c})
	}
	if opts.Workloads {
		c.order = append(c.order, workloads(c)...)
	}
	for _, a := range c.order {
		c.actors[a.name()] = a
	}
	return c
}

// enter has the actors told of all that is there and of what changes from now
// on. leave ends that.
func (c *company) enter() (leave func()) {
	return c.cluster.Observe(func(change revisions.Change) { c.news = append(c.news, news{time.Now(), change}) })
}

// await blocks until something has changed, a step is due or ctx ends, and
// returns what has changed.
func (c *company) await(ctx context.Context) []news {
	next, planned := c.timeline.next()
	if !planned {
		next = time.Time{}
	}
	var heard []news
	c.cluster.Wait(ctx, next, func() bool {
		heard, c.news = c.news, nil
		return len(heard) > 0
	})
	return heard
}

// heed tells all actors of a change, and plans what they have to look at.
func (c *company) heed(n news) {
	c.index.note(n.Change)
	if n.After == nil {
		delete(c.readings, aboutOf(n.Change))
	}
	for _, a := range c.order {
		if e := (errand{a.name(), aboutOf(n.Change)}); n.After == nil && !c.timeline.has(e) {
			delete(c.steps, e)
			delete(c.failures, e)
		}
		a.heed(n.Change, func(about Reference) {
			c.plan(errand{a.name(), about}, n.at)
		})
	}
}

// look has an actor look at something soon.
func (c *company) look(a actor, about Reference) {
	c.plan(errand{a.name(), about}, time.Now())
}

// plan has an errand done as long after a time as its next step takes. In a
// simulation no other step has that instant.
func (c *company) plan(e errand, from time.Time) {
	at := from.Add(c.draw(e))
	if !c.timeline.sooner(e, at) {
		return
	}
	if c.hooks != nil {
		at = c.hooks.Instant(at)
	}
	c.timeline.plan(e, at)
}

// draw is how long the next step of an errand takes.
func (c *company) draw(e errand) time.Duration {
	return 1 + time.Duration(keyed.Random(c.seed, "actor "+e.actor, e.about.String(), c.steps[e]).Int64N(int64(c.delay)))
}

// step has an actor do its next step.
func (c *company) step(ctx context.Context, e errand) {
	c.steps[e]++
	again, err := c.actors[e.actor].act(ctx, e.about)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		again = min(c.delay<<min(c.failures[e], 20), longestRetry)
		c.failures[e]++
	default:
		delete(c.failures, e)
	}
	if again > 0 {
		c.plan(e, time.Now().Add(again))
	} else if c.get(e.about) == nil && !c.timeline.has(e) {
		delete(c.steps, e)
	}
}

// get is the object of a reference as it is now; nil: there is none.
func (c *company) get(about Reference) *object.Object {
	return c.cluster.Get(about)
}
