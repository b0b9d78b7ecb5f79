// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/informer/state"
)

const defaultMetricsScopes = 20

// scopesOf aggregates the scopes of one informer, and adds series for those in trouble,
// up to a limit: users who create namespaces must not determine the number of series.
func (c informerCollector) scopesOf(s *samples, kind string, scopes []state.Scope, now time.Time) {
	var sum state.Scope
	states, relists, anomalies := map[state.State]int{}, map[string]int{}, &sum.Anomalies
	var contact time.Time // the oldest
	for _, x := range scopes {
		states[x.State]++
		if x.NamespaceSelector != "" {
			continue // the rest is counted with the kind Namespace
		}
		sum.StreamFallbacks += x.StreamFallbacks
		sum.Audits.Done += x.Audits.Done
		sum.Audits.Abandoned += x.Audits.Abandoned
		sum.Audits.Differences += x.Audits.Differences
		sum.Unreadable += x.Unreadable
		sum.Watches += x.Watches
		anomalies.Doubled += x.Anomalies.Doubled
		anomalies.Late += x.Anomalies.Late
		anomalies.Disordered += x.Anomalies.Disordered
		anomalies.OtherKind += x.Anomalies.OtherKind
		anomalies.OutOfScope += x.Anomalies.OutOfScope
		for reason, n := range x.Relists {
			relists[reason] += n
		}
		if at := x.LastContact; !at.IsZero() && (contact.IsZero() || at.Before(contact)) {
			contact = at
		}
	}
	for _, current := range state.All() {
		s.add(c.scopes, prometheus.GaugeValue, float64(states[current]), kind, string(current))
	}
	for _, x := range c.shown(scopes) {
		s.peak(c.state, prometheus.GaugeValue, 1, kind, scopeLabel(x), string(x.State))
	}
	s.add(c.fallbacks, prometheus.CounterValue, float64(sum.StreamFallbacks), kind)
	s.add(c.audits, prometheus.CounterValue, float64(sum.Audits.Done), kind, "done")
	s.add(c.audits, prometheus.CounterValue, float64(sum.Audits.Abandoned), kind, "abandoned")
	s.add(c.differences, prometheus.CounterValue, float64(sum.Audits.Differences), kind)
	s.add(c.unreadable, prometheus.GaugeValue, float64(sum.Unreadable), kind)
	s.add(c.anomalies, prometheus.CounterValue, float64(anomalies.Doubled), kind, "doubled")
	s.add(c.anomalies, prometheus.CounterValue, float64(anomalies.Late), kind, "late")
	s.add(c.anomalies, prometheus.CounterValue, float64(anomalies.Disordered), kind, "disordered")
	s.add(c.anomalies, prometheus.CounterValue, float64(anomalies.OtherKind), kind, "other_kind")
	s.add(c.anomalies, prometheus.CounterValue, float64(anomalies.OutOfScope), kind, "out_of_scope")
	s.add(c.watches, prometheus.CounterValue, float64(sum.Watches), kind)
	if !contact.IsZero() {
		s.peak(c.contact, prometheus.GaugeValue, now.Sub(contact).Seconds(), kind)
	}
	for reason, n := range relists {
		s.add(c.relists, prometheus.CounterValue, float64(n), kind, reason)
	}
}

// shown returns the scopes that have their own series. Those in trouble for the longest
// stay the same from scrape to scrape, so that an alert on one of them can wait.
func (c informerCollector) shown(scopes []state.Scope) []state.Scope {
	if c.most < 0 {
		return scopes
	}
	ill := slices.DeleteFunc(slices.Clone(scopes), func(x state.Scope) bool { return !inTrouble(x.State) })
	slices.SortFunc(ill, func(a, b state.Scope) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(scopeLabel(a), scopeLabel(b)))
	})
	return ill[:min(len(ill), cmp.Or(c.most, defaultMetricsScopes))]
}

// inTrouble reports whether a scope that stays in this state needs attention.
func inTrouble(s state.State) bool {
	switch s {
	case state.Stale, state.Forbidden, state.Unauthorized, state.NotServed,
		state.DecodingErrors, state.DoesNotFit, state.Misuse:
		return true
	}
	return false
}

func scopeLabel(x state.Scope) string {
	if x.NamespaceSelector != "" {
		return "in namespaces with labels " + x.NamespaceSelector
	}
	return x.Scope.String()
}
