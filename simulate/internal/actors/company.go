// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"cmp"
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/internal/simhook"

	"github.com/flyball-dev/flyball/simulate/internal/keyed"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

const (
	defaultDelay = 50 * time.Millisecond
	// longestRetry is the longest wait after a failure.
	longestRetry = 1000 * time.Second
)

// actor is a controller, or another program that changes a cluster. It observes each change,
// and names the objects that it then wants to look at. Only the goroutine of Run calls it.
type actor interface {
	name() string
	// heed observes a change. It calls look for each object to look at because of it.
	heed(c revisions.Change, look func(Reference))
	// act takes one step for an object, as a reconciler does. A positive again asks for
	// another step after that time.
	act(ctx context.Context, about Reference) (again time.Duration, err error)
}

// company is the actors of one run, and what they share.
type company struct {
	cluster  Cluster
	seed     uint64
	hooks    simhook.Hooks // nil: outside of a simulation
	delay    time.Duration
	actors   map[string]actor
	order    []actor
	index    *objectIndex
	timeline timeline
	steps    map[errand]int // taken so far; the delay of the next is drawn from it
	failures map[errand]int // in a row
	readings map[Reference]reading
	news     []news // guarded by the lock that the cluster holds when it calls observers
}

// reading is the last decoding of an object into its Go type. Most objects have not changed
// since the last step, and decoding costs a hundred times as much as a copy.
type reading struct {
	of    *object.Object
	typed runtime.Object
}

// news is a change and its time.
type news struct {
	at time.Time
	revisions.Change
}

func newCompany(cluster Cluster, seed uint64, delay time.Duration) *company {
	return &company{
		cluster: cluster, seed: seed, delay: cmp.Or(delay, defaultDelay), actors: map[string]actor{}, index: newObjectIndex(),
		steps: map[errand]int{}, failures: map[errand]int{}, readings: map[Reference]reading{},
	}
}

// add adds actors. They observe changes in the order in which they are added.
func (c *company) add(actors ...actor) {
	for _, a := range actors {
		c.order = append(c.order, a)
		c.actors[a.name()] = a
	}
}

// work lets the actors work until ctx ends.
func (c *company) work(ctx context.Context) {
	c.hooks = simhook.Of(ctx)
	defer c.observe()()
	for ctx.Err() == nil {
		for _, n := range c.await(ctx) {
			c.heed(n)
		}
		if e, due := c.timeline.take(time.Now()); due && ctx.Err() == nil {
			c.step(ctx, e)
		}
	}
}

// observe subscribes to the present objects and to all later changes.
func (c *company) observe() (leave func()) {
	return c.cluster.Observe(func(change revisions.Change) { c.news = append(c.news, news{time.Now(), change}) })
}

// await blocks until something has changed, a step is due or ctx ends. It returns the
// changes.
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

// heed passes a change to all actors, and plans the steps that they ask for.
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

// look plans a step of an actor for an object.
func (c *company) look(a actor, about Reference) {
	c.plan(errand{a.name(), about}, time.Now())
}

// plan plans the next step of an errand, after a delay that starts at a time. In a
// simulation no two steps happen at the same instant.
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

// draw returns the delay of the next step of an errand.
func (c *company) draw(e errand) time.Duration {
	return 1 + time.Duration(keyed.Random(c.seed, "actor "+e.actor, e.about.String(), c.steps[e]).Int64N(int64(c.delay)))
}

// step takes the next step of an errand.
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

// get returns the present object of a reference, or nil.
func (c *company) get(about Reference) *object.Object {
	return c.cluster.Get(about)
}
