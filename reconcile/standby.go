// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/textlog"
)

// part is a part of a controller that has begun; parts are bits.
type part uint8

const (
	sourcing part = 1 << iota // the sources run: in Standby, or in Run
	standing                  // Standby has been called
	working                   // Run has been called
)

// Standby runs the sources and fills the queue, until ctx ends or a source ends with an
// error, which it returns. It reconciles nothing. Run may begin at any time, finds the
// sources synced and the queue filled, and must have ended when ctx ends. If Run has
// begun before, Run has the sources and Standby only waits. Standby runs once.
func (c *Controller[K]) Standby(ctx context.Context) error {
	first, err := c.begin(ctx, standing)
	if err != nil {
		return err
	}
	if !first {
		<-ctx.Done()
		return nil
	}
	defer c.queue.ShutDown()
	return c.runGroup(logr.NewContext(ctx, c.log), c.awaitSync)
}

// begin begins p, unless there was misuse. It reports whether the caller must run the
// sources.
func (c *Controller[K]) begin(ctx context.Context, p part) (first bool, err error) {
	if err := c.Err(); err != nil {
		return false, err
	}
	first, again := c.take(p)
	if again {
		said := "run: it is running or has already run"
		if p == standing {
			said = "stand by: it does or has done so already"
		}
		return false, fmt.Errorf("controller %q: %s; make a new one", c.name, said)
	}
	c.prepared.Do(func() { c.prepare(ctx) })
	return first, c.Err()
}

// take records that p begins, and also its sources if they have not begun.
func (c *Controller[K]) take(p part) (first, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	again = c.mu.began&p != 0
	first = c.mu.began&sourcing == 0
	c.mu.began |= p | sourcing
	return first, again
}

// prepare sets what the first context carries.
func (c *Controller[K]) prepare(ctx context.Context) {
	given := contextvalues.InstrumentsOf(ctx)
	c.witness = cmp.Or(c.witness, given.Witness)
	provider, _ := given.TracerProvider.(trace.TracerProvider)
	c.provider = cmp.Or(c.provider, provider)
	c.cutOff = given.CutOff
	if c.provider != nil {
		c.traces = newTraces[K](c.name, c.provider)
	}
	log := c.log
	if log.IsZero() {
		log = logr.FromContextOrDiscard(ctx)
	}
	c.log = textlog.Unthrottled(log).WithValues("controller", c.name)
	c.own = textlog.Throttled(c.log)
	c.sim, c.windows = simhook.Of(ctx), recording.Of(ctx)
	c.setProbes()
	if given.Shards != nil {
		if err := c.sharded.set(given.Shards, c.singleton, c.shardBy, c.uid); err != nil {
			c.misused(err)
			return
		}
		c.sharded.repeatable = c.sim != nil
		c.sharded.dropped = func(key K, later bool) {
			switch {
			case !later:
				forgetCanceled(c, key, true)
				c.recorder.forget(key)
			case c.sim != nil:
				reportCanceled(c, key, true)
			}
		}
		c.sharded.follow(c.add)
	}
}
