// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// probe observes each reconcile of a controller. The worker calls both methods while it has the
// key: begin before the reconcile, and end when the next run of the key has been decided. Time in
// them delays the worker.
type probe[K comparable] interface {
	begin(r *run[K])
	end(r *run[K], e ending)
}

// ending is how a reconcile ended.
type ending struct {
	action
	res  Result
	err  error
	took time.Duration
}

// setProbes sets the probes of c, in the order in which they begin. They end in reverse order.
func (c *Controller[K]) setProbes() {
	c.probes = append(c.probes, causing[K]{&c.causes}, queueing[K]{c})
	if c.recorder != nil {
		c.probes = append(c.probes, remembering[K]{c})
	}
	if c.windows != nil {
		c.probes = append(c.probes, replayable[K]{c.windows})
	}
	if c.witness != nil {
		c.probes = append(c.probes, witnessed[K]{c.witness})
	}
	if c.traces != nil {
		c.probes = append(c.probes, traced[K]{c.traces})
	}
	c.probes = append(c.probes, reporter[K]{c}, failed[K]{&c.failures}, counted[K]{c})
	if c.sim != nil {
		c.probes = append(c.probes, simulated[K]{c})
	}
}

// witnessed notifies a Witness.
type witnessed[K comparable] struct{ Witness }

func (w witnessed[K]) begin(r *run[K]) { r.witnessed = w.Begin(runName{r.controller.name, r.key}) }

func (witnessed[K]) end(r *run[K], _ ending) { r.witnessed() }

// counted counts reconciles, and their begin and end as progress.
type counted[K comparable] struct{ *Controller[K] }

func (c counted[K]) begin(r *run[K]) {
	c.counters.Moved()
	c.counters.recent.sample(c.queue, r.since)
}

func (c counted[K]) end(_ *run[K], e ending) {
	c.counters.Moved()
	c.counters.observe(e.outcome, e.took)
}

// failed keeps why a key is retried.
type failed[K comparable] struct{ *failures[K] }

func (failed[K]) begin(*run[K]) {}

func (f failed[K]) end(r *run[K], e ending) { f.record(r.key, e.action, e.err) }

// traced makes the span of a reconcile, which its context carries.
type traced[K comparable] struct{ *traces[K] }

func (t traced[K]) begin(r *run[K]) {
	r.Context, r.priority = t.traces.begin(r.Context, r.key, r.id(), r.since, r.controller.queue.NumRequeues(r.key)+1, r.whyItRuns())
}

func (t traced[K]) end(r *run[K], e ending) {
	t.traces.end(r.Context, r.key, r.priority, e.action, e.err)
}

// causing records why keys run, and run again.
type causing[K comparable] struct{ *causes[K] }

func (c causing[K]) begin(r *run[K]) { r.caused = c.take(r.key) }

func (c causing[K]) end(r *run[K], e ending) {
	defer c.release(&r.caused)
	if again, ok := r.controller.queue.(interface{ HeldDirty(K) bool }); ok && again.HeldDirty(r.key) {
		c.repeat(r.key, r.caused, r.since.Add(e.took))
		return // the next run decides again
	}
	if e.after == 0 && !e.backoff {
		return
	}
	cause := source.Cause{Source: source.Timer, Reason: e.res.Reason}
	if e.backoff {
		cause.Source = source.Retry
	}
	if e.err != nil {
		cause.Reason = errorText(e.err)
	}
	c.addAgain(r.key, cause, r.since.Add(e.took))
}

// remembering records runs, with what they send, and logs what they show.
type remembering[K comparable] struct{ *Controller[K] }

func (c remembering[K]) begin(r *run[K]) {
	if rec := c.recorder.begin(r.key); rec != nil {
		rec.id = r.number
		r.sending.begin(rec, r.since)
	}
}

func (c remembering[K]) end(r *run[K], e ending) {
	if rec, cache := r.sending.end(); rec != nil {
		rec.setCauses(r.whyItRuns(), r.since)
		rec.setEnd(e.action, e.res.Reason, errorText(e.err), e.took)
		var by rivals
		if rec.undoes() && !c.recorder.knowsRival(r.key) {
			by = rec.rivals(cache)
		}
		for _, f := range c.recorder.end(r.key, rec, by) {
			logFinding(c.own, keyText(r.key), f)
		}
	}
}

// replayable writes reconciles to the recording that is being made, if there is one.
type replayable[K comparable] struct{ *recording.Recorder }

func (p replayable[K]) begin(r *run[K]) {
	if w := p.Window(); w != nil {
		r.recording = w.Begin(r.controller.name, keyText(r.key), r.whyItRuns().String())
	}
}

func (replayable[K]) end(r *run[K], e ending) {
	if r.recording != nil {
		r.recording.End(string(e.outcome), e.after, errorText(e.err))
	}
}

// logFinding logs a finding that is new.
func logFinding(log logr.Logger, key string, f Finding) {
	if log = textlog.Throttled(log); f.Kind == NoEffect { // it costs, and does no harm
		log = log.V(1)
	}
	textlog.Warn(log, nil, "Reconciles need attention: "+string(f.Kind), "key", key, "finding", f.String())
}

// queueing looks for keys that starve, and logs each once.
type queueing[K comparable] struct{ *Controller[K] }

func (c queueing[K]) begin(r *run[K]) {
	c.starving.end(r.key)
	if !c.starving.isDue(r.since) {
		return
	}
	q, ok := c.queue.(interface {
		Oldest() (workqueue.KeyState[K], bool)
	})
	if !ok {
		return
	}
	var longest *workqueue.KeyState[K]
	if oldest, waits := q.Oldest(); waits {
		longest = &oldest
	}
	if f, isNew := c.starving.look(r.since, c.queue.Stats(), longest); isNew {
		logFinding(c.own, keyText(longest.Key), f)
	}
}

func (queueing[K]) end(*run[K], ending) {}
