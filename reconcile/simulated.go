// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"math/rand/v2"

	"github.com/flyball-dev/flyball/internal/ownevents"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

func (c *Controller[K]) draw(key K) uint64 {
	const top = 1 << 63
	if c.sim != nil {
		return top | uint64(c.sim.Random("reconcile "+c.name+" "+keyText(key))*top)
	}
	return top | rand.Uint64()
}

func (c *Controller[K]) random() float64 { return simhook.Float64(c.sim, "backoff "+c.name) }

// keyed returns limiter with its jitter drawn from random.
func keyed(limiter workqueue.RateLimiter, random func() float64) workqueue.RateLimiter {
	switch l := limiter.(type) {
	case workqueue.Exponential:
		if l.Rand == nil {
			l.Rand = random
		}
		return l
	case workqueue.MaxOf:
		out := make(workqueue.MaxOf, 0, len(l))
		for _, one := range l {
			out = append(out, keyed(one, random))
		}
		return out
	}
	return limiter
}

func (c *Controller[K]) reportAdded(key K, cause source.Cause) {
	if _, is := c.sim.(simhook.Replay); is {
		c.known.add(key)
	}
	c.sim.Note(simhook.Note{
		What: simhook.Enqueued, Kind: c.name, Key: keyText(key), Name: cause.Source,
		Quiet: cause.Resync || cause.Type == 0 && cause.Source != source.Cache,
	})
}

func reportCanceled[K comparable](c *Controller[K], key K, taken bool) {
	c.sim.Note(simhook.Note{What: simhook.Canceled, Kind: c.name, Key: keyText(key), Quiet: taken})
}

// simulated reports the begin and the end of each reconcile to a simulation.
type simulated[K comparable] struct{ *Controller[K] }

func (s simulated[K]) begin(r *run[K]) {
	why := r.whyItRuns()
	note := simhook.Note{What: simhook.Begun, Kind: s.name, Key: keyText(r.key), Count: why.Count}
	for _, c := range []source.Cause{why.First, why.Last} {
		if c.Kind.Kind != "" && len(note.Causes) < why.Count {
			note.Causes = append(note.Causes, simhook.Cause{
				Kind: c.Kind.String(), Key: keyText(c.Object), OldVersion: uint64(c.OldVersion), Version: uint64(c.Version),
			})
		}
	}
	s.sim.Note(note)
}

func (s simulated[K]) reportTaken(key K) {
	s.sim.Note(simhook.Note{What: simhook.Taken, Kind: s.name, Key: keyText(key)})
}

// reportIdle lets the simulation call for the key, as a resync would.
func (s simulated[K]) reportIdle(key K) {
	s.sim.Note(simhook.Note{What: simhook.Idle, Kind: s.name, Key: keyText(key), Wake: s.waker(key)})
}

func (s simulated[K]) waker(key K) func() {
	return func() { s.add(key, source.Cause{Source: "simulation", Resync: true}) }
}

func (s simulated[K]) reportUnfinished(key K, u *ownevents.Unfinished) {
	s.sim.Note(simhook.Note{
		What: simhook.Unfinished, Kind: s.name, Key: keyText(key), Name: u.Last.String(), Text: u.More.String(),
	})
}

func (s simulated[K]) end(r *run[K], e ending) {
	s.sim.Note(simhook.Note{
		What: simhook.Ended, Kind: s.name, Key: keyText(r.key), Name: string(e.outcome), After: e.after, Text: errorText(e.err), Wake: s.waker(r.key),
	})
}
