// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate"
)

// rates are the faults that were asked for.
type rates struct {
	latency                  time.Duration
	errors, throttle, losses float64
	cuts, restarts           time.Duration
	seed                     uint64
}

func (r *rates) flags(set *flag.FlagSet) {
	set.DurationVar(&r.latency, "latency", 0, "delay each request by this `duration`, such as 50ms")
	set.Float64Var(&r.errors, "errors", 0, "answer this `share` of the requests, between 0 and 1, with 500")
	set.Float64Var(&r.throttle, "throttle", 0, "answer this `share` of the requests, between 0 and 1, with 429 and Retry-After of one second")
	set.Float64Var(&r.losses, "lost-responses", 0, "carry out this `share` of the writes, between 0 and 1, but break the connection instead of answering")
	set.DurationVar(&r.cuts, "watch-cuts", 0, "end all watches again and again, after this `duration` on average")
	set.DurationVar(&r.restarts, "cache-restarts", 0, "end all watches and forget older versions, so that clients must list again, after this `duration` on average")
	set.Uint64Var(&r.seed, "seed", 0, "the `number` that the faults are drawn from: the same number and order of requests give the same faults; 0: drawn, and printed")
}

// valid returns what is wrong with the rates.
func (r *rates) valid() error {
	for name, share := range map[string]float64{"errors": r.errors, "throttle": r.throttle, "lost-responses": r.losses} {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("-%s=%v: write a share between 0, no request, and 1, every request", name, share)
		}
	}
	if r.errors+r.throttle > 1 {
		return fmt.Errorf("-errors=%v and -throttle=%v are more than all requests; together they must be at most 1", r.errors, r.throttle)
	}
	for name, d := range map[string]time.Duration{"latency": r.latency, "watch-cuts": r.cuts, "cache-restarts": r.restarts} {
		if d < 0 {
			return fmt.Errorf("-%s=%v: write a positive duration, such as 30s", name, d)
		}
	}
	return nil
}

// any reports whether there is a fault.
func (r *rates) any() bool {
	return r.latency > 0 || r.errors > 0 || r.throttle > 0 || r.losses > 0 || r.cuts > 0 || r.restarts > 0
}

// chance causes faults in a server, and writes its audit log. It causes none before begin.
type chance struct {
	rates
	audit *audit
	under atomic.Pointer[simulate.Server] // nil before begin
	mu    struct {
		sync.Mutex
		watched map[schema.GroupResource]bool // resources that have been watched
	}
}

func newChance(r rates, a *audit) *chance {
	c := &chance{rates: r, audit: a}
	c.mu.watched = map[schema.GroupResource]bool{}
	return c
}

// begin lets faults happen.
func (c *chance) begin(s *simulate.Server) { c.under.Store(s) }

// Asked delays and refuses requests. Probes are spared: they tell whether the server is there.
func (c *chance) Asked(r simulate.Request) {
	if r.Verb == "watch" {
		c.mu.Lock()
		c.mu.watched[r.Resource] = true
		c.mu.Unlock()
	}
	server := c.under.Load()
	if server == nil || r.Path == "/healthz" || r.Path == "/livez" || r.Path == "/readyz" {
		return
	}
	if c.latency > 0 {
		time.Sleep(c.latency)
	}
	draw := c.draw(uint64(r.Number))
	refused, lost := draw.Float64(), draw.Float64()
	switch {
	case refused < c.errors:
		server.RefuseRequest(r, http.StatusInternalServerError, 0)
	case refused < c.errors+c.throttle:
		server.RefuseRequest(r, http.StatusTooManyRequests, 1)
	case r.Writes() && lost < c.losses:
		server.LoseResponseTo(r)
	}
}

// draw returns the random numbers of one purpose.
func (c *chance) draw(of uint64) *rand.Rand { return rand.New(rand.NewPCG(c.seed, of)) }

// Answered writes the audit log.
func (c *chance) Answered(r simulate.Request, code int) { c.audit.answered(r, code) }

// The other methods of a Tracer.

func (c *chance) Stored(simulate.Change)                   {}
func (c *chance) Answering(simulate.Request)               {}
func (c *chance) Panicked(simulate.Request, any, []byte)   {}
func (c *chance) Sending(simulate.Request, simulate.Event) {}

// disturb ends watches until ctx ends.
func (c *chance) disturb(ctx context.Context, s *simulate.Server) {
	var both sync.WaitGroup
	both.Go(func() { c.again(ctx, c.cuts, 1<<62, func() { c.cut(s) }) })
	both.Go(func() { c.again(ctx, c.restarts, 1<<62+1, s.RestartCache) })
	both.Wait()
}

// again calls fault after random times with a mean. 0: never.
func (c *chance) again(ctx context.Context, mean time.Duration, of uint64, fault func()) {
	if mean == 0 {
		return
	}
	draw := c.draw(of)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(draw.ExpFloat64() * float64(mean))):
			fault()
		}
	}
}

// cut ends the present watches.
func (c *chance) cut(s *simulate.Server) {
	c.mu.Lock()
	watched := slices.Collect(maps.Keys(c.mu.watched))
	c.mu.Unlock()
	for _, r := range watched {
		s.CloseWatches(r)
	}
}

var errNoFault = errors.New("-seed without a fault; add -latency, -errors, -throttle, -lost-responses, -watch-cuts or -cache-restarts")
