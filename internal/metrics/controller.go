// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/internal/histogram"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// controllerMetrics have the names that client-go's and controller-runtime's dashboards
// read.
type controllerMetrics struct {
	depth, adds, retries, unfinished, longest, latency, work *prometheus.Desc

	total, errors, terminal, panics, timeouts, conflicts, outcomes *prometheus.Desc
	overdue, findings, took, answered, workers, active             *prometheus.Desc
	paused, pausedKeys, woken                                      *prometheus.Desc

	sourceEvents, sourceKeys, sourcePanics, sourceWaiting *prometheus.Desc
}

func newControllerMetrics() controllerMetrics {
	queue := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("workqueue_"+name, help, append([]string{"name", "controller"}, labels...), nil)
	}
	reconciles := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("controller_runtime_"+name, help, append([]string{"controller"}, labels...), nil)
	}
	own := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("flyball_"+name, help, append([]string{"controller"}, labels...), nil)
	}
	return controllerMetrics{
		depth:      queue("depth", "Keys that wait for a worker, or for the end of the reconcile that holds them.", "priority"),
		adds:       queue("adds_total", "Times a key was added that was not waiting already."),
		retries:    queue("retries_total", "Times a key was added with a delay or with backoff."),
		latency:    queue("queue_duration_seconds", "How long keys waited for a worker."),
		work:       queue("work_duration_seconds", "How long workers held keys."),
		unfinished: queue("unfinished_work_seconds", "Seconds that workers have held their current keys, summed over the keys."),
		longest:    queue("longest_running_processor_seconds", "Seconds that a worker has held its current key, for the longest-held key."),

		total:      reconciles("reconcile_total", "Reconciles that ended, by result.", "result"),
		errors:     reconciles("reconcile_errors_total", "Reconciles that ended with an error, terminal ones, panics and timeouts among them."),
		terminal:   reconciles("terminal_reconcile_errors_total", "Reconciles that ended with a terminal error, which is not retried."),
		panics:     reconciles("reconcile_panics_total", "Reconciles that panicked."),
		timeouts:   reconciles("reconcile_timeouts_total", "Reconciles that ended after the hard deadline."),
		took:       reconciles("reconcile_time_seconds", "How long reconciles took."),
		workers:    reconciles("max_concurrent_reconciles", "Workers of the controller."),
		active:     reconciles("active_workers", "Workers that reconcile now."),
		conflicts:  own("reconcile_conflicts_total", "Reconciles that wrote from an old version and wait for the cache; no errors."),
		outcomes:   own("reconcile_outcomes_total", "Reconciles that ended, by outcome: each is counted under one.", "outcome"),
		overdue:    own("reconcile_overdue_total", "Reconciles that passed the soft deadline."),
		findings:   own("reconcile_findings", "Keys whose recorded reconciles show that something is wrong.", "finding"),
		paused:     own("reconcile_paused", "1 if the controller is paused, and 0 if not."),
		pausedKeys: own("reconcile_paused_keys", "Keys that are paused by themselves."),
		woken:      own("reconcile_paused_waiting_keys", "Paused keys that run when they are resumed."),
		answered:   own("event_to_reconciled_seconds", "Time from a source's add of a key to the end of the first reconcile that began after it. Retries are not among them, but for those that the cache brings forward after a conflict. On a replica that has stood by, the time since the adding counts too."),

		sourceEvents:  own("source_events_total", "Events that arrived at a source.", "source"),
		sourceKeys:    own("source_keys_total", "Keys that a source added.", "source"),
		sourcePanics:  own("source_panics_total", "Panics of a source's predicates and mappers.", "source"),
		sourceWaiting: own("source_waiting_keys", "Keys that a debounced source delays.", "source"),
	}
}

// controllerCollector reads the controllers at each scrape.
type controllerCollector struct {
	controllerMetrics
	read func() []reconcile.Snapshot
}

// Describe implements prometheus.Collector.
func (c controllerCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.depth, c.adds, c.retries, c.latency, c.work, c.unfinished, c.longest,
		c.total, c.errors, c.terminal, c.panics, c.timeouts, c.took, c.workers, c.active,
		c.conflicts, c.outcomes, c.overdue, c.findings, c.paused, c.pausedKeys, c.woken, c.answered, c.sourceEvents, c.sourceKeys, c.sourcePanics, c.sourceWaiting,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c controllerCollector) Collect(ch chan<- prometheus.Metric) {
	var s samples
	for _, x := range c.read() {
		c.queue(&s, x.Name, x.Queue)
		c.reconciles(&s, x)
		for _, src := range x.Sources {
			s.add(c.sourceEvents, prometheus.CounterValue, float64(src.Events), x.Name, src.Source)
			s.add(c.sourceKeys, prometheus.CounterValue, float64(src.Keys), x.Name, src.Source)
			s.add(c.sourcePanics, prometheus.CounterValue, float64(src.Panics), x.Name, src.Source)
			s.add(c.sourceWaiting, prometheus.GaugeValue, float64(src.Waiting), x.Name, src.Source)
		}
		sendHistogram(ch, c.latency, x.Queue.Latency, x.Name, x.Name)
		sendHistogram(ch, c.work, x.Queue.Work, x.Name, x.Name)
		sendHistogram(ch, c.answered, x.Queue.Answered, x.Name)
		sendHistogram(ch, c.took, x.ReconcileTime, x.Name)
	}
	s.send(ch)
}

func (c controllerCollector) queue(s *samples, name string, q workqueue.Stats) {
	if len(q.Priorities) == 0 {
		s.add(c.depth, prometheus.GaugeValue, float64(q.Depth()), name, name, "")
	}
	for _, p := range q.Priorities {
		s.add(c.depth, prometheus.GaugeValue, float64(p.Depth()), name, name, strconv.Itoa(p.Priority))
	}
	s.add(c.adds, prometheus.CounterValue, float64(q.Adds), name, name)
	s.add(c.retries, prometheus.CounterValue, float64(q.Retries), name, name)
	s.add(c.unfinished, prometheus.GaugeValue, q.Unfinished.Seconds(), name, name)
	s.add(c.longest, prometheus.GaugeValue, q.OldestHeld.Seconds(), name, name)
}

func (c controllerCollector) reconciles(s *samples, x reconcile.Snapshot) {
	count := func(desc *prometheus.Desc, outcomes ...reconcile.Outcome) {
		n := 0.0
		for _, o := range outcomes {
			n += float64(x.Outcomes[o])
		}
		s.add(desc, prometheus.CounterValue, n, x.Name)
	}
	for outcome, n := range x.Outcomes {
		s.add(c.total, prometheus.CounterValue, float64(n), x.Name, resultOf(outcome))
		s.add(c.outcomes, prometheus.CounterValue, float64(n), x.Name, string(outcome))
	}
	count(c.errors, reconcile.OutcomeError, reconcile.OutcomeTerminal, reconcile.OutcomePanic, reconcile.OutcomeTimeout)
	count(c.terminal, reconcile.OutcomeTerminal)
	count(c.panics, reconcile.OutcomePanic)
	count(c.timeouts, reconcile.OutcomeTimeout)
	count(c.conflicts, reconcile.OutcomeConflict)
	s.add(c.overdue, prometheus.CounterValue, float64(x.Overdue), x.Name)
	for kind, keys := range x.Findings {
		s.add(c.findings, prometheus.GaugeValue, float64(keys), x.Name, string(kind))
	}
	paused := 0.0
	if x.Pauses.All != nil {
		paused = 1
	}
	s.add(c.paused, prometheus.GaugeValue, paused, x.Name)
	s.add(c.pausedKeys, prometheus.GaugeValue, float64(len(x.Pauses.Keys)), x.Name)
	s.add(c.woken, prometheus.GaugeValue, float64(x.Woken), x.Name)
	s.add(c.workers, prometheus.GaugeValue, float64(x.Workers), x.Name)
	s.add(c.active, prometheus.GaugeValue, float64(x.Active), x.Name)
}

// results are the names of outcomes in dashboards, where they are not an error. A conflict is a
// requeue, because it is not an error here.
var results = map[reconcile.Outcome]string{
	reconcile.OutcomeDone: "success", reconcile.OutcomeAfter: "requeue_after",
	reconcile.OutcomeRetry: "requeue", reconcile.OutcomeConflict: "requeue",
	reconcile.OutcomeStopped: "stopped",
}

func resultOf(o reconcile.Outcome) string { return cmp.Or(results[o], "error") }

// sendHistogram sends a histogram that was counted elsewhere.
func sendHistogram(ch chan<- prometheus.Metric, desc *prometheus.Desc, h histogram.Histogram, labels ...string) {
	upTo := map[float64]uint64{}
	for bound, n := range h.Buckets() {
		upTo[bound.Seconds()] = n
	}
	send(ch, desc, func() (prometheus.Metric, error) {
		return prometheus.NewConstHistogram(desc, h.Count, h.Sum.Seconds(), upTo, clean(labels)...)
	})
}
