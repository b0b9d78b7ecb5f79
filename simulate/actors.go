// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/simhook"
)

// Actors are what lives in a cluster besides the API server and does its part
// of the work. The zero value is none of them.
type Actors struct {
	// GarbageCollector deletes what has lost all its owners, and lets go what
	// is deleted with its dependents or without them.
	GarbageCollector bool
	// Namespaces empties a namespace that is deleted and lets it go. It gives
	// each other one its ServiceAccount "default" and its ConfigMap
	// "kube-root-ca.crt".
	Namespaces bool
	// Workloads makes Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs
	// run Pods, has Pods become ready, complete and end, and gives Services their
	// EndpointSlices.
	Workloads bool
	// Delay is the longest time that one step takes. How long each takes is
	// drawn from the server's seed. 0: 50 ms.
	Delay time.Duration
}

const (
	usualDelay = 50 * time.Millisecond
	// longestRetry is how long an actor waits at most after a failure.
	longestRetry = 1000 * time.Second
)

// reference names an object in the store.
type reference struct {
	schema.GroupResource
	types.NamespacedName
}

// String is unique for each reference.
func (r reference) String() string {
	return r.GroupResource.String() + " " + r.NamespacedName.String()
}

// actor does one kind of work. It is told of each change, and asked to look at
// what it has named then. Only the goroutine of RunActors calls it.
type actor interface {
	name() string
	// heed tells of a change. look names what to look at because of it.
	heed(c change, look func(reference))
	// act brings what depends on an object a step nearer to what is wanted. A
	// positive again asks for another look after so long.
	act(ctx context.Context, about reference) (again time.Duration, err error)
}

// company are the actors of one run and what they share.
type company struct {
	server   *Server
	hooks    simhook.Hooks // nil: outside of a simulation
	delay    time.Duration
	actors   map[string]actor
	order    []actor
	index    *objectIndex
	timeline timeline
	steps    map[errand]int // taken so far; decides what is drawn for the next
	failures map[errand]int // in a row
	readings map[reference]reading
	news     []news // guarded by the server's lock
}

// news is a change and when it was made.
type news struct {
	at time.Time
	change
}

// RunActors has actors work on the server's objects, until ctx ends. What they
// write goes through admission as the writes of others do, but not through the
// network: no fault of requests meets them. When a step is taken depends on
// what it is about, how many were taken for it and the server's seed. It
// returns an error only for options that cannot be.
func (s *Server) RunActors(ctx context.Context, opts Actors) error {
	if opts.Delay < 0 {
		return errors.New("run actors: Delay is negative; 0 is 50 ms")
	}
	c := newCompany(s, opts)
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

func newCompany(s *Server, opts Actors) *company {
	c := &company{
		server: s, delay: opts.Delay, actors: map[string]actor{}, index: newObjectIndex(),
		steps: map[errand]int{}, failures: map[errand]int{}, readings: map[reference]reading{},
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
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Now()
	for _, change := range s.mu.log.all() {
		c.news = append(c.news, news{at, change})
	}
	forgetLocked := s.observeLocked(func(change change) { c.news = append(c.news, news{time.Now(), change}) })
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		forgetLocked()
	}
}

// await blocks until something has changed, a step is due or ctx ends, and
// returns what has changed.
func (c *company) await(ctx context.Context) []news {
	s := c.server
	stop := context.AfterFunc(ctx, func() { s.wake(s.changed) })
	defer stop()
	next, planned := c.timeline.next()
	if planned {
		timer := time.AfterFunc(time.Until(next), func() { s.wake(s.changed) })
		defer timer.Stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(c.news) == 0 && ctx.Err() == nil && (!planned || time.Now().Before(next)) {
		s.changed.Wait()
	}
	heard := c.news
	c.news = nil
	return heard
}

// heed tells all actors of a change, and plans what they have to look at.
func (c *company) heed(n news) {
	c.index.note(n.change)
	if n.after == nil {
		delete(c.readings, n.about())
	}
	for _, a := range c.order {
		if e := (errand{a.name(), n.about()}); n.after == nil && !c.timeline.has(e) {
			delete(c.steps, e)
			delete(c.failures, e)
		}
		a.heed(n.change, func(about reference) {
			c.plan(errand{a.name(), about}, n.at)
		})
	}
}

// look has an actor look at something soon.
func (c *company) look(a actor, about reference) {
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
	return 1 + time.Duration(keyedRandom(c.server.seed, "actor "+e.actor, e.about.String(), c.steps[e]).Int64N(int64(c.delay)))
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
func (c *company) get(about reference) *object {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	return c.server.mu.log.get(about.GroupResource, about.NamespacedName)
}

// request is what a write of an actor comes with where requests are asked for.
func request(ctx context.Context) *http.Request {
	r := &http.Request{Method: http.MethodPost, Header: http.Header{}}
	return r.WithContext(ctx)
}
