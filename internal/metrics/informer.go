// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/informer/state"
)

// informerMetrics have no established names: client-go has an interface for them
// without an implementation.
type informerMetrics struct {
	objects, undecodable, waiting, synced *prometheus.Desc
	bytes, heap, packed                   *prometheus.Desc
	scopes, state, contact                *prometheus.Desc
	relists, watches                      *prometheus.Desc
	backlog, delivered, panics            *prometheus.Desc
	backlogBytes, merged                  *prometheus.Desc
	running, oldest, longest              *prometheus.Desc
	indexPanics, mutations, unreadable    *prometheus.Desc
	tombstones, forgotten                 *prometheus.Desc
	awaited, notOverlaid, anomalies       *prometheus.Desc
	fallbacks, audits, differences        *prometheus.Desc
	findings                              *prometheus.Desc
}

func newInformerMetrics() informerMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("flyball_informer_"+name, help, append([]string{"kind"}, labels...), nil)
	}
	return informerMetrics{
		objects:      desc("objects", "Objects that the informer holds."),
		bytes:        desc("object_bytes", "Bytes of the objects that the informer holds, as the server sent them without managed fields."),
		heap:         desc("object_heap_bytes", "Memory of the objects that the informer holds, in bytes, without what they share with others."),
		packed:       desc("packed_bytes", "Memory of the objects that are held packed, in bytes; 0 if the kind's objects are held decoded."),
		undecodable:  desc("undecodable_objects", "Objects held of which only the metadata could be decoded."),
		waiting:      desc("waiting_deltas", "Changes on their way into the store."),
		synced:       desc("synced", "1 if the first list of every scope is stored."),
		scopes:       desc("scopes", "Scopes, each a list and watch of the kind, by state.", "state"),
		state:        desc("state", "1 for the state of a scope in trouble, for the twenty that have been in trouble for the longest.", "scope", "state"),
		contact:      desc("last_contact_seconds", "Seconds since the server last sent anything to the scope that has waited for the longest."),
		relists:      desc("relists_total", "Lists after the first, by reason.", "reason"),
		watches:      desc("watches_total", "Watches opened."),
		backlog:      desc("handler_backlog", "Keys (or events) that wait for a handler.", "handler"),
		backlogBytes: desc("handler_backlog_bytes", "About how much the events that wait for a handler of every event take.", "handler"),
		merged:       desc("handler_merged_updates_total", "Updates that a handler of every event received merged, because its backlog or the store's had reached its bound.", "handler"),
		delivered:    desc("handler_events_total", "Events given to a handler.", "handler"),
		running:      desc("handler_running_seconds", "Seconds that the present call of a handler has been running.", "handler"),
		oldest:       desc("handler_oldest_event_seconds", "Seconds that the oldest event has waited for a handler.", "handler"),
		longest:      desc("handler_longest_call_seconds", "Seconds that the longest call of a handler took.", "handler"),
		panics:       desc("handler_panics_total", "Calls of a handler that panicked.", "handler"),
		indexPanics:  desc("index_panics_total", "Calls of an index function that panicked."),
		mutations:    desc("mutations_total", "Shared objects that were found modified."),
		unreadable:   desc("unreadable_objects", "Objects of which not even the names can be read; while a list has some, it deletes nothing."),
		tombstones:   desc("tombstones", "Deletions that are remembered until each watch has passed them."),
		forgotten:    desc("tombstones_forgotten_total", "Tombstones dropped because there were too many; a late watch may show such an object once more."),
		awaited:      desc("own_writes_awaited", "Keys with an own write that becomes visible when the watch delivers it."),
		notOverlaid:  desc("own_writes_not_overlaid_total", "Own writes that only the watch shows, since the server's versions cannot be compared."),
		fallbacks:    desc("stream_fallbacks_total", "Times that paged lists took over, because the server did not end a streaming list."),
		audits:       desc("audits_total", "Comparisons of a scope with the server, by result: done or abandoned.", "result"),
		differences:  desc("audit_differences_total", "Objects that an audit found to differ from the server's; a list repairs them."),
		findings:     desc("findings", "What is wrong with the use of the informer: that nothing reads it, or that a reconcile reads all of it.", "finding"),
		anomalies:    desc("anomalies_total", "What a correct server never sends: events that are doubled, late or disordered, and objects of another kind or out of scope.", "anomaly"),
	}
}

// informerCollector reads the informers at each scrape.
type informerCollector struct {
	informerMetrics
	read func() []state.Informer
	most int // Options.MetricsScopes
}

// Describe implements prometheus.Collector.
func (c informerCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.objects, c.bytes, c.heap, c.packed, c.undecodable, c.waiting, c.synced, c.scopes, c.state, c.contact, c.relists, c.watches,
		c.backlog, c.backlogBytes, c.merged, c.delivered, c.panics, c.running, c.oldest, c.longest,
		c.indexPanics, c.mutations, c.unreadable,
		c.tombstones, c.forgotten, c.awaited, c.notOverlaid, c.anomalies, c.fallbacks, c.audits, c.differences,
		c.findings,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c informerCollector) Collect(ch chan<- prometheus.Metric) {
	var s samples
	now := time.Now()
	unsynced := map[string]bool{}
	for _, i := range c.read() {
		kind := i.Kind.GroupKind().String()
		unsynced[kind] = unsynced[kind] || !i.Synced
		s.add(c.objects, prometheus.GaugeValue, float64(i.Objects), kind)
		s.add(c.bytes, prometheus.GaugeValue, float64(i.Bytes), kind)
		s.add(c.heap, prometheus.GaugeValue, float64(i.Heap), kind)
		s.add(c.packed, prometheus.GaugeValue, float64(i.Packed), kind)
		s.add(c.undecodable, prometheus.GaugeValue, float64(i.Undecodable), kind)
		s.add(c.indexPanics, prometheus.CounterValue, float64(i.IndexPanics), kind)
		s.add(c.waiting, prometheus.GaugeValue, float64(i.Waiting), kind)
		s.add(c.mutations, prometheus.CounterValue, float64(i.Mutations), kind)
		s.add(c.tombstones, prometheus.GaugeValue, float64(i.Tombstones), kind)
		s.add(c.forgotten, prometheus.CounterValue, float64(i.Forgotten), kind)
		s.add(c.awaited, prometheus.GaugeValue, float64(i.Awaiting), kind)
		s.add(c.notOverlaid, prometheus.CounterValue, float64(i.NotOverlaid), kind)
		for _, finding := range state.FindingKinds {
			s.add(c.findings, prometheus.GaugeValue, 0, kind, string(finding))
		}
		for _, f := range i.Findings(now) {
			s.add(c.findings, prometheus.GaugeValue, 1, kind, string(f.Kind))
		}
		c.scopesOf(&s, kind, i.Scopes, now)
		for _, h := range i.Handlers {
			s.add(c.backlog, prometheus.GaugeValue, float64(h.Backlog), kind, h.Name)
			s.add(c.backlogBytes, prometheus.GaugeValue, float64(h.BacklogBytes), kind, h.Name)
			s.add(c.merged, prometheus.CounterValue, float64(h.Merged), kind, h.Name)
			s.add(c.delivered, prometheus.CounterValue, float64(h.Delivered), kind, h.Name)
			s.peak(c.running, prometheus.GaugeValue, h.Running.Seconds(), kind, h.Name)
			s.peak(c.oldest, prometheus.GaugeValue, h.Oldest.Seconds(), kind, h.Name)
			s.peak(c.longest, prometheus.GaugeValue, h.Longest.Seconds(), kind, h.Name)
			s.add(c.panics, prometheus.CounterValue, float64(h.Panics), kind, h.Name)
		}
	}
	for kind, not := range unsynced {
		s.add(c.synced, prometheus.GaugeValue, oneIf(!not), kind)
	}
	s.send(ch)
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// NewInformers returns the collector of the metrics of informers, for a registry of
// another manager. read is called at each scrape. Informers of the same kind are added
// up.
func NewInformers(read func() []state.Informer) prometheus.Collector {
	return informerCollector{newInformerMetrics(), read, 0}
}
