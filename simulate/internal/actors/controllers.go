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

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/seededrand"
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
	// observe observes a change. It calls look for each object to look at because of it.
	observe(c revisions.Change, look func(Reference))
	// act takes one step for an object, as a reconciler does. A positive again asks for
	// another step after that time.
	act(ctx context.Context, about Reference) (again time.Duration, err error)
}

// controllers is the actors of one run, and what they share.
type controllers struct {
	cluster  Cluster
	seed     uint64
	hooks    simhook.Hooks // nil: outside of a simulation
	delay    time.Duration
	actors   map[string]actor
	order    []actor
	index    *objectIndex
	timeline timeline
	steps    map[task]int // taken so far; the delay of the next is drawn from it
	failures map[task]int // in a row
	readings map[Reference]reading
	changes  []timedChange // guarded by the lock that the cluster holds when it calls observers
}

// reading is the last decoding of an object into its Go type. Most objects have not changed
// since the last step, and decoding costs a hundred times as much as a copy.
type reading struct {
	of    *object.Object
	typed runtime.Object
}

// timedChange is a change and its time.
type timedChange struct {
	at time.Time
	revisions.Change
}

func newControllers(cluster Cluster, seed uint64, delay time.Duration) *controllers {
	return &controllers{
		cluster: cluster, seed: seed, delay: cmp.Or(delay, defaultDelay), actors: map[string]actor{}, index: newObjectIndex(),
		steps: map[task]int{}, failures: map[task]int{}, readings: map[Reference]reading{},
	}
}

// add adds actors. They observe changes in the order in which they are added.
func (c *controllers) add(actors ...actor) {
	for _, a := range actors {
		c.order = append(c.order, a)
		c.actors[a.name()] = a
	}
}

// work lets the actors work until ctx ends.
func (c *controllers) work(ctx context.Context) {
	c.hooks = simhook.Of(ctx)
	defer c.subscribe()()
	for ctx.Err() == nil {
		for _, n := range c.await(ctx) {
			c.pass(n)
		}
		if e, due := c.timeline.take(time.Now()); due && ctx.Err() == nil {
			c.step(ctx, e)
		}
	}
}

// subscribe subscribes to the present objects and to all later changes.
func (c *controllers) subscribe() (leave func()) {
	return c.cluster.Observe(func(change revisions.Change) {
		now := time.Now()
		c.changes = append(c.changes, timedChange{now, change})
		c.cluster.Due(now)
	})
}

// await blocks until something has changed, a step is due or ctx ends. It returns the
// changes.
func (c *controllers) await(ctx context.Context) []timedChange {
	next, planned := c.timeline.next()
	if !planned {
		next = time.Time{}
	}
	var heard []timedChange
	c.cluster.Wait(ctx, next, func() bool {
		heard, c.changes = c.changes, nil
		if len(heard) == 0 {
			c.cluster.Due(next)
		}
		return len(heard) > 0
	})
	return heard
}

// pass passes a change to all actors, and plans the steps that they ask for.
func (c *controllers) pass(n timedChange) {
	c.index.apply(n.Change)
	if n.After == nil {
		delete(c.readings, aboutOf(n.Change))
	}
	for _, a := range c.order {
		if e := (task{a.name(), aboutOf(n.Change)}); n.After == nil && !c.timeline.has(e) {
			delete(c.steps, e)
			delete(c.failures, e)
		}
		a.observe(n.Change, func(about Reference) {
			c.plan(task{a.name(), about}, n.at)
		})
	}
}

// look plans a step of an actor for an object.
func (c *controllers) look(a actor, about Reference) {
	c.plan(task{a.name(), about}, time.Now())
}

// plan plans the next step of an task, after a delay that starts at a time. In a
// simulation no two steps happen at the same instant.
func (c *controllers) plan(e task, from time.Time) {
	at := from.Add(c.draw(e))
	if !c.timeline.sooner(e, at) {
		return
	}
	if c.hooks != nil {
		at = c.hooks.Instant(at)
	}
	c.timeline.plan(e, at)
}

// draw returns the delay of the next step of an task.
func (c *controllers) draw(e task) time.Duration {
	return 1 + time.Duration(seededrand.Random(c.seed, "actor "+e.actor, e.about.String(), c.steps[e]).Int64N(int64(c.delay)))
}

// step takes the next step of an task.
func (c *controllers) step(ctx context.Context, e task) {
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
func (c *controllers) get(about Reference) *object.Object {
	return c.cluster.Get(about)
}
